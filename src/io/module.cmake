flyover_module(io
  HEADERS document.hpp workload_reader.hpp
  SOURCES document.cpp json.cpp workload_reader.cpp)
