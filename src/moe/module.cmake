flyover_module(moe
<<<<<<< HEAD
  HEADERS copies.hpp limits.hpp placement.hpp planner.hpp
  SOURCES copies.cpp count_law.cpp exchange_flows.cpp fused.cpp gate_sampler.cpp kernel_limits.cpp limits.cpp link_shares.cpp placement.cpp planner.cpp routing_check.cpp)
=======
  HEADERS balance.hpp copies.hpp placement.hpp popularity.hpp
  SOURCES arrangements.cpp balance.cpp copies.cpp count_law.cpp expert_homes.cpp gate_sampler.cpp gauss_rule.cpp placement.cpp popularity.cpp reach.cpp
          routing_check.cpp sum_of_two_law.cpp token_counter.cpp)
>>>>>>> 85fd42cc9dd898b45ff555e213367211e20514ea
