flyover_module(base
  HEADERS error.hpp ids.hpp quantity.hpp text.hpp units.hpp version.hpp
  SOURCES error.cpp quantity.cpp text.cpp units.cpp version.cpp)
