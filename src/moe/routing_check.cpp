#include "moe/routing_check.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover::moe {

namespace {

template <class... Args>
void expect(bool holds, fmt::format_string<Args...> problem, Args&&... args) {
  if (!holds) throw InputError(fmt::format(problem, std::forward<Args>(args)...));
}

void check_groups(const ExpertRouting& routing, std::string_view whose) {
  expect(routing.groups > 0, "{} needs groups of experts", whose);
  expect(routing.experts % routing.groups == 0,
         "{} needs groups of equal size: {} experts do not divide into {} groups", whose,
         routing.experts, routing.groups);
}

void check_gate(const ExpertRouting& routing) {
  expect(routing.experts > 0 && routing.chosen > 0,
         "a token needs experts to choose from, got {} of {}", routing.chosen, routing.experts);
  expect(routing.chosen <= routing.experts, "{} experts cannot be chosen from {}", routing.chosen,
         routing.experts);
  if (routing.gate == Gate::TopK || routing.gate == Gate::Hash) return;
  check_groups(routing, fmt::format("the gate {}", to_string(routing.gate)));
  expect(routing.groups_chosen >= 1 && routing.groups_chosen <= routing.groups,
         "the gate chooses 1 to {} of {} groups, not {}", routing.groups, routing.groups,
         routing.groups_chosen);
  const std::uint32_t size = routing.experts / routing.groups;
  expect(routing.chosen <= std::uint64_t{size} * routing.groups_chosen,
         "{} experts cannot be chosen from {} groups of {}", routing.chosen, routing.groups_chosen,
         size);
  expect(routing.gate != Gate::GroupSumOfTwo || size >= 2,
         "the gate {} adds two scores of each group: {} groups of {} experts have one",
         to_string(routing.gate), routing.groups, routing.experts);
}

void check_popularity(const ExpertRouting& routing) {
  if (routing.popularity.empty()) return;
  expect(routing.popularity.size() == routing.experts,
         "the popularity of {} experts is given, and there are {}", routing.popularity.size(),
         routing.experts);
  double sum = 0;
  for (const double p : routing.popularity) {
    expect(std::isfinite(p) && p >= 0, "a popularity must be a number of at least 0, not {}", p);
    sum += p;
  }
  expect(std::isfinite(sum) && sum > 0, "some expert must have a popularity above 0");
  const bool limited = routing.gate == Gate::GroupMax || routing.gate == Gate::GroupSumOfTwo;
  const std::uint32_t groups = limited ? routing.groups : 1;
  std::vector<std::uint32_t> alive(groups, 0);
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    if (routing.popularity[e] > 0) ++alive[e / (routing.experts / groups)];
  }
  std::ranges::sort(alive);
  std::uint32_t sure = 0;
  for (std::uint32_t g = 0; g < (limited ? routing.groups_chosen : 1); ++g) sure += alive[g];
  expect(sure >= routing.chosen,
         "{} experts cannot be chosen when only {} have a popularity above 0{}", routing.chosen,
         sure, limited ? fmt::format(" in some {} groups", routing.groups_chosen) : "");
}

void check_slots(const ExpertRouting& routing, const ExpertGroup& group) {
  expect(group.ranks() > 0, "an expert-parallel group needs ranks");
  const std::uint32_t slots = slots_of(routing);
  expect(slots >= routing.experts, "{} slots cannot hold {} experts", slots, routing.experts);
  expect(slots % group.ranks() == 0, "{} {} do not divide over {} ranks", slots,
         routing.slots == 0 ? "experts" : "slots", group.ranks());
  if (routing.placement != Placement::Hierarchical) return;
  check_groups(routing, "hierarchical placement");
  for (const auto& members : group.members) {
    expect(members.size() == group.members[0].size(),
           "hierarchical placement needs nodes with as many ranks each, got {} and {}",
           group.members[0].size(), members.size());
  }
  expect(routing.groups % group.nodes() == 0,
         "hierarchical placement needs as many groups in each node: {} groups do not divide over "
         "{} nodes; \"global\" does not need that",
         routing.groups, group.nodes());
}

}  // namespace

void check_routing(const ExpertRouting& routing, const ExpertGroup& group) {
  check_gate(routing);
  check_popularity(routing);
  check_slots(routing, group);
}

}  // namespace flyover::moe
