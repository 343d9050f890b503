flyover_module(simulate
  HEADERS chunk_replay.hpp replay.hpp result.hpp
  SOURCES chunk_replay.cpp deadlock.cpp ledger.cpp messages.cpp plans.cpp program.cpp replay.cpp resources.cpp
          sensitivity.cpp statistics.cpp timeline.cpp)
