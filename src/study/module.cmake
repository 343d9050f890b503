flyover_module(study
  HEADERS calibrate.hpp group_links.hpp measured_cluster.hpp measurement.hpp
          residual_ranges.hpp run_range.hpp statistics.hpp validate.hpp
  SOURCES calibrate.cpp group_links.cpp measured_cluster.cpp measurement.cpp node_of.cpp
          residual_ranges.cpp run_range.cpp statistics.cpp validate.cpp words.cpp)
