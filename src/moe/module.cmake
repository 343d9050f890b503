flyover_module(moe
  HEADERS balance.hpp copies.hpp limits.hpp placement.hpp planner.hpp popularity.hpp
  SOURCES balance.cpp copies.cpp count_law.cpp exchange_flows.cpp fused.cpp gate_sampler.cpp kernel_limits.cpp limits.cpp link_shares.cpp placement.cpp planner.cpp popularity.cpp routing_check.cpp)
