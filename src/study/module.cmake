flyover_module(study
  HEADERS measured_cluster.hpp measurement.hpp statistics.hpp validate.hpp
  SOURCES measured_cluster.cpp measurement.cpp node_of.cpp statistics.cpp validate.cpp words.cpp)
