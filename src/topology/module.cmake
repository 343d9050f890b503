flyover_module(topology
  HEADERS analysis.hpp builders.hpp hardware.hpp topology.hpp
  SOURCES analysis.cpp builders.cpp fabric/clos.cpp fabric/clos_fabrics.cpp fabric/dragonfly.cpp
          fabric/torus.cpp node.cpp overrides.cpp topology.cpp)
