flyover_module(moe
  HEADERS balance.hpp copies.hpp limits.hpp placement.hpp planner.hpp popularity.hpp
  SOURCES arrangements.cpp balance.cpp copies.cpp count_law.cpp exchange_flows.cpp expert_homes.cpp fused.cpp gate_sampler.cpp gauss_rule.cpp kernel_limits.cpp
          limits.cpp link_shares.cpp placement.cpp planner.cpp popularity.cpp reach.cpp routing_check.cpp sum_of_two_law.cpp token_counter.cpp)
