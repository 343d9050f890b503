#pragma once

// Which expert lies in which slot, copies of busy experts included.

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// DeepSeek's EPLB, exactly (github.com/deepseek-ai/EPLB, eplb.py; MOE.md 3.2): the expert of every
// slot, slots of a GPU and GPUs of a node in a row. `load`: by expert, above or equal to zero.
//
//   1. Groups of experts to nodes: by falling load, each to the node with the least load that has
//      room (as many groups to each).
//   2. In each node: one slot per expert, then one more to the expert with most load per slot,
//      until the node's slots are full.
//   3. Slots to the GPUs of the node, each with load / slots of its expert, as in 1.
//
// Equal loads in order of index. One item per node or GPU stays in order. `groups` = `nodes` = 1 is
// the global policy. Requires that groups divide experts, nodes divide groups, slots and gpus, and
// gpus divide slots, which are as many as the experts or more.
struct EplbShape {
  std::uint32_t slots = 0;
  std::uint32_t groups = 1;
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 1;
};
[[nodiscard]] std::vector<std::uint32_t> eplb(std::span<const double> load, const EplbShape& shape);

// The expert of every slot of a group, by `routing.placement`; slot s is on rank
// s / (slots / ranks). Loads are loads_of_popularity, or equal. Throws InputError as expert_copies
// does.
[[nodiscard]] std::vector<std::uint32_t> expert_slots(const ExpertRouting& routing,
                                                      const ExpertGroup& group);

}  // namespace flyover
