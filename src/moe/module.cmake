flyover_module(moe
  HEADERS copies.hpp limits.hpp placement.hpp planner.hpp
  SOURCES copies.cpp count_law.cpp exchange_flows.cpp fused.cpp gate_sampler.cpp kernel_limits.cpp limits.cpp link_shares.cpp placement.cpp planner.cpp routing_check.cpp)
