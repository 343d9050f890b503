flyover_module(workload
  HEADERS collective_op.hpp operation_graph.hpp
  SOURCES collective_op.cpp operation_graph.cpp)
