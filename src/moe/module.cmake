flyover_module(moe
  HEADERS copies.hpp
  SOURCES copies.cpp)
