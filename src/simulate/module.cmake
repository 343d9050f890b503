flyover_module(simulate
  HEADERS chunk_replay.hpp replay.hpp result.hpp
  SOURCES cast.cpp chunk_replay.cpp colour_refinement.cpp deadlock.cpp joint_graph.cpp ledger.cpp messages.cpp plans.cpp program.cpp
          rank_classes.cpp recurrence.cpp replay.cpp resources.cpp run.cpp sensitivity.cpp statistics.cpp timeline.cpp)
