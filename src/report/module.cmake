flyover_module(report
  HEADERS summary.hpp table.hpp
  SOURCES summary.cpp table.cpp)
