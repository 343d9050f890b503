#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flyover/workload/expert_exchange.hpp"

namespace flyover::moe {

// How many experts of each group a token chooses, when all experts are alike. Groups are then
// alike too, and so are experts in a group: given the counts, which group has which and which
// experts of a group they are is equally likely all over. So the counts, largest first, say all.
struct CountLaw {
  struct Outcome {
    std::vector<std::uint32_t> counts;  // Descending, above zero.
    double probability = 0;
  };
  std::uint32_t groups = 1;
  std::uint32_t group_size = 0;
  std::vector<Outcome> outcomes;
};

// Of routing that passed check_routing and has no popularity. TopK and Hash: one group of all.
// GroupMax, and group gates that keep all groups: the chain of MOE.md 1.6. GroupSumOfTwo, of
// uniform scores: an integral (docs/models/moe-routing.md), some 5 ms, once per process for equal
// arguments.
[[nodiscard]] CountLaw count_law(const ExpertRouting& routing);

// Experts of one group of which a set of slots holds these shares of the replicas; those that it
// holds none of are left out. Ascending.
using GroupShares = std::vector<double>;

// The probability that one of a token's choices falls on the set, when each goes to one of its
// expert's replicas, equally likely and independently of the others. `touched`: by group of which
// the set holds something, in any order.
//
// Of a group with s experts, x chosen: all x stay away with probability
// e_x(1 - share_1, ..., 1 - share_s) / C(s, x), e_x the elementary symmetric polynomial (with
// shares of 1 for a experts: C(s-a, x) / C(s, x)). Groups are then summed over all arrangements of
// the counts.
[[nodiscard]] double hit_probability(const CountLaw& law, std::span<const GroupShares> touched);

}  // namespace flyover::moe
