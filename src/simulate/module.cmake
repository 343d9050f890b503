flyover_module(simulate
  HEADERS chunk_replay.hpp replay.hpp result.hpp
  SOURCES blocks.cpp call_planner.cpp cast.cpp chunk_replay.cpp colour_refinement.cpp deadlock.cpp expert_stats.cpp folded_group.cpp footing.cpp
          group_loaders.cpp held_sms.cpp joint_graph.cpp kernels.cpp ledger.cpp likeness.cpp loader_writer.cpp messages.cpp pair_loaders.cpp plans.cpp
          program.cpp quotient.cpp rank_classes.cpp recurrence.cpp reduction.cpp replay.cpp resources.cpp run.cpp
          sensitivity.cpp statistics.cpp timeline.cpp)
