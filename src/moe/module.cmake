flyover_module(moe
  HEADERS balance.hpp copies.hpp placement.hpp popularity.hpp
  SOURCES balance.cpp copies.cpp count_law.cpp gate_sampler.cpp gauss_rule.cpp placement.cpp popularity.cpp routing_check.cpp)
