flyover_module(moe
  HEADERS copies.hpp placement.hpp
  SOURCES copies.cpp count_law.cpp gate_sampler.cpp placement.cpp routing_check.cpp)
