#pragma once

// The table of algorithms: what the CLI lists, the cost model chooses from and the tests run
// through. To add one: a file in src/collective/ and a line in the table in algorithms.cpp.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/collective/schedule.hpp"
#include "flyover/collective/summary.hpp"

namespace flyover {

struct CollectiveShape {
  CollectiveOp op = CollectiveOp::AllReduce;
  GroupShape group;
  // Copies of the pattern, each with 1/channels of the data, rotated so that channel c enters a
  // domain on its c-th rail. Trees over several domains make a pair of each, one for either tree of
  // a double binary tree, numbered 2c and 2c + 1. Patterns of single messages (all-to-all, scatter,
  // gather, sendrecv) and the barrier have one channel whatever this says; where the network's
  // switches reduce, CollNetDirect and NVLS have one per head, that is per share of the data.
  std::uint32_t channels = 1;
  std::uint32_t root = 0;
  bool in_switch_reduction = false;   // Every domain of the group has NVLS.
  bool in_network_reduction = false;  // The network's switches reduce (SHARP), and may.
};

struct Algorithm {
  AlgorithmId id;
  CollectiveOp op;
  std::string_view summary;  // One line for `flyover list algorithms`.
  // All three require shape.op == op, a rail for every rank, a root inside the group and 1 to 32767
  // channels; the last two also that the shape is supported. A single rank has nothing to send.
  //
  // "" when the algorithm can run on this shape, else the reason why not ("needs NVLS in every
  // domain").
  std::string (*unsupported)(const CollectiveShape& shape);
  // The chunk-by-chunk program for `bytes`; bytes that do not divide evenly go one by one to the
  // first blocks. Throws InputError when there are 2^32 transfers or more.
  Schedule (*schedule)(const CollectiveShape& shape, Bytes bytes);
  // The same, summarised, independent of the size.
  Summary (*summarise)(const CollectiveShape& shape);
  // The summary of `domains` domains, two or more, that are like the one of the shape. Null, or
  // none, where nobody has worked it out.
  std::optional<FoldedSummary> (*fold)(const CollectiveShape& shape,
                                       std::uint32_t domains) = nullptr;
};

// Every algorithm of every collective, in a fixed order.
[[nodiscard]] std::span<const Algorithm> algorithms();
// Those of one collective.
[[nodiscard]] std::vector<const Algorithm*> algorithms(CollectiveOp op);
[[nodiscard]] const Algorithm* find_algorithm(CollectiveOp op, AlgorithmId id);  // nullptr: none

}  // namespace flyover
