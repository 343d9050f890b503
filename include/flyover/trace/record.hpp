#pragma once

// What happened when, as it happens: plain records that readers of a run draw from.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"

namespace flyover {

// A row of a timeline: one stream of one rank, or one class of links. Slices of a track never
// overlap.
struct Track {
  // "rank 3 (node0/gpu3)", "rank 8 (node1/gpu0), stands for 24 ranks: 8-31", "links"
  std::string process;
  std::string name;                  // "compute", "comm", "nvlink"
  std::uint32_t rank = 0xffffffffU;  // Of a rank's track.
};

struct Slice {
  std::uint32_t track = 0;
  Time begin;
  Time end;
  std::string name;      // "mlp", "wait for grads"
  std::string category;  // "compute", "delay", "wait", a group family such as "tp", "p2p";
                         // "elided": what repeats and was not recorded again
  std::string detail;    // One line about a call, may be empty.
};

// From `at` on, until the next of its track, this share of the capacity of a class of links is in
// use. Nothing is until the first.
struct LoadChange {
  std::uint32_t track = 0;
  Time at;
  double share = 0;
};

struct Trace {
  std::vector<Track> tracks;
  std::vector<Slice> slices;  // In order of track, then begin.
  // In order of track, then time; of a track that changes too often, means over a 10,000th of the
  // run.
  std::vector<LoadChange> loads;
  std::vector<std::string> notes;  // What was left out and why.
};

}  // namespace flyover
