flyover_module(collective
  HEADERS algorithms.hpp collective.hpp schedule.hpp summary.hpp
  SOURCES
    algorithms.cpp check.cpp collective.cpp placement.cpp schedule_writer.cpp summary.cpp
    domain_tree.cpp pipeline.cpp
    network_sum.cpp
    all_pairs.cpp one_shot.cpp
    collnet_chain.cpp collnet_direct.cpp direct.cpp hierarchical.cpp nvls.cpp nvls_network.cpp nvls_tree.cpp pairwise.cpp pat.cpp recursive.cpp ring.cpp
    rooted_ring.cpp tree.cpp)
