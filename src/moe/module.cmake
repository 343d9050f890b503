flyover_module(moe
  HEADERS copies.hpp limits.hpp planner.hpp
  SOURCES copies.cpp exchange_flows.cpp fused.cpp kernel_limits.cpp limits.cpp link_shares.cpp planner.cpp)
