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
  std::string process;               // "rank 3 (node0/gpu3)", "links"
  std::string name;                  // "compute", "comm", "nvlink"
  std::uint32_t rank = 0xffffffffU;  // Of a rank's track.
};

struct Slice {
  std::uint32_t track = 0;
  Time begin;
  Time end;
  std::string name;      // "mlp", "all_reduce ar (ring, Simple)", "62 %"
  std::string category;  // "compute", "startup", "wait", a group family such as "tp", "load";
                         // "elided": what repeats and was not recorded again
  std::string detail;    // One line of arguments, may be empty.
  double value = 0;      // Category "load": the share of the class's capacity in use.
};

struct Trace {
  std::vector<Track> tracks;
  std::vector<Slice> slices;       // In order of track, then begin.
  std::vector<std::string> notes;  // What was left out and why.
};

}  // namespace flyover
