#include "flyover/moe/placement.hpp"

#include <algorithm>
#include <numeric>

#include "flyover/base/error.hpp"
#include "flyover/moe/popularity.hpp"
#include "moe/routing_check.hpp"

namespace flyover {

namespace {

// Items in packs of equal size: the items of every pack, in the order in which it got them.
std::vector<std::vector<std::uint32_t>> packed(std::span<const double> weight,
                                               std::uint32_t packs) {
  const std::size_t room = weight.size() / packs;
  std::vector<std::vector<std::uint32_t>> pack(packs);
  std::vector<std::uint32_t> order(weight.size());
  std::iota(order.begin(), order.end(), 0U);
  if (room == 1) {
    for (const std::uint32_t item : order) pack[item].push_back(item);
    return pack;
  }
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::uint32_t item) { return weight[item]; });
  std::vector<double> load(packs, 0);
  for (const std::uint32_t item : order) {
    std::uint32_t best = packs;
    for (std::uint32_t p = 0; p < packs; ++p) {
      if (pack[p].size() < room && (best == packs || load[p] < load[best])) best = p;
    }
    pack[best].push_back(item);
    load[best] += weight[item];
  }
  return pack;
}

}  // namespace

std::vector<std::uint32_t> eplb(std::span<const double> load, const EplbShape& shape) {
  const auto experts = static_cast<std::uint32_t>(load.size());
  require(experts > 0 && shape.groups > 0 && shape.nodes > 0 && shape.gpus > 0 &&
              experts % shape.groups == 0 && shape.groups % shape.nodes == 0 &&
              shape.gpus % shape.nodes == 0 && shape.slots % shape.gpus == 0 &&
              shape.slots >= experts,
          "experts, groups, slots and GPUs that divide");
  const std::uint32_t group_size = experts / shape.groups;
  const std::uint32_t node_slots = shape.slots / shape.nodes;
  std::vector<double> group_load(shape.groups, 0);
  for (std::uint32_t e = 0; e < experts; ++e) group_load[e / group_size] += load[e];

  std::vector<std::uint32_t> slots;
  slots.reserve(shape.slots);
  for (const auto& groups : packed(group_load, shape.nodes)) {
    std::vector<std::uint32_t> expert;  // Of the node's.
    for (const std::uint32_t g : groups) {
      for (std::uint32_t i = 0; i < group_size; ++i) expert.push_back(g * group_size + i);
    }
    std::vector<std::uint32_t> held(node_slots);  // By slot, an index of `expert`.
    std::iota(held.begin(), held.end(), 0U);
    std::vector<double> copies(expert.size(), 1);
    for (auto slot = static_cast<std::uint32_t>(expert.size()); slot < node_slots; ++slot) {
      std::uint32_t busiest = 0;
      for (std::uint32_t i = 1; i < expert.size(); ++i) {
        if (load[expert[i]] / copies[i] > load[expert[busiest]] / copies[busiest]) busiest = i;
      }
      held[slot] = busiest;
      ++copies[busiest];
    }
    std::vector<double> weight;
    weight.reserve(held.size());
    for (const std::uint32_t i : held) weight.push_back(load[expert[i]] / copies[i]);
    for (const auto& gpu : packed(weight, shape.gpus / shape.nodes)) {
      for (const std::uint32_t slot : gpu) slots.push_back(expert[held[slot]]);
    }
  }
  return slots;
}

std::vector<std::uint32_t> expert_slots(const ExpertRouting& routing, const ExpertGroup& group) {
  moe::check_routing(routing, group);
  const std::uint32_t slots = moe::slots_of(routing);
  if (routing.placement == Placement::InOrder) {
    std::vector<std::uint32_t> expert(slots);
    for (std::uint32_t s = 0; s < slots; ++s) expert[s] = s % routing.experts;
    return expert;
  }
  const std::vector<double> load = routing.popularity.empty()
                                       ? std::vector<double>(routing.experts, 1)
                                       : loads_of_popularity(routing.popularity, routing.chosen);
  if (routing.placement == Placement::Global) {
    return eplb(load, {.slots = slots, .groups = 1, .nodes = 1, .gpus = group.ranks()});
  }
  const std::vector<std::uint32_t> by_node = eplb(
      load,
      {.slots = slots, .groups = routing.groups, .nodes = group.nodes(), .gpus = group.ranks()});
  // The members of a node need not be in a row.
  const std::uint32_t of_rank = slots / group.ranks();
  std::vector<std::uint32_t> expert(slots);
  std::size_t next = 0;
  for (const auto& members : group.members) {
    for (const std::uint32_t rank : members) {
      for (std::uint32_t i = 0; i < of_rank; ++i) expert[rank * of_rank + i] = by_node[next++];
    }
  }
  return expert;
}

}  // namespace flyover
