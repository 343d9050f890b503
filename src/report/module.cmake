flyover_module(report
  HEADERS range.hpp summary.hpp table.hpp
  SOURCES range.cpp summary.cpp table.cpp)
