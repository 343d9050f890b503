flyover_module(moe
  HEADERS balance.hpp copies.hpp placement.hpp popularity.hpp
  SOURCES arrangements.cpp balance.cpp copies.cpp count_law.cpp expert_homes.cpp gate_sampler.cpp gauss_rule.cpp placement.cpp popularity.cpp reach.cpp
          routing_check.cpp sum_of_two_law.cpp token_counter.cpp)
