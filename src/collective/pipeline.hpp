#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/collective/algorithms.hpp"

namespace flyover {

// A tree over the ranks of a group; a chain is a tree too.
struct RankTree {
  std::vector<std::uint32_t> parent;  // Per rank; none at the root.
  std::vector<std::uint32_t> order;   // All ranks, parents before their children.
};

enum class Flow : std::uint8_t {
  Up,      // Children's blocks are reduced into their parents'.
  Down,    // Parents' blocks are copied to their children.
  UpDown,  // First up, then, block by block, down again.
};

// Data that flows in equal shares along trees, one tree a channel, cut into `chunks` blocks that
// follow one another.
[[nodiscard]] Schedule pipeline_schedule(const CollectiveShape& shape, Bytes bytes,
                                         std::span<const RankTree> trees, Flow flow,
                                         std::uint32_t chunks);
[[nodiscard]] Summary pipeline_summary(const CollectiveShape& shape,
                                       std::span<const RankTree> trees, Flow flow,
                                       std::uint32_t chunks);

}  // namespace flyover
