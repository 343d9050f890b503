flyover_module(workload
  HEADERS collective_op.hpp operation_graph.hpp repetition.hpp
  SOURCES collective_op.cpp operation_graph.cpp repetition.cpp)
