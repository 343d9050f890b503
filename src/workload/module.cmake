flyover_module(workload
  HEADERS collective_op.hpp expert_exchange.hpp operation_graph.hpp repetition.hpp
  SOURCES collective_op.cpp expert_exchange.cpp operation_graph.cpp repetition.cpp)
