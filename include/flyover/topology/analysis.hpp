#pragma once

// What `flyover topo` prints: counts, tiers, oversubscription, diameter and bisection.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

struct TierInfo {
  LinkKind kind{};
  // Pairs of opposite links, lanes not counted apart; fabric links by Topology::ports_per_cable.
  std::uint64_t cables = 0;
  std::uint64_t down = 0;                   // Of those, out of service.
  Bandwidth per_cable_low, per_cable_high;  // One direction.
  Bandwidth total;                          // One direction of every cable in service.
};

struct TopologyInfo {
  std::map<std::string, std::uint64_t> vertices;  // By kind name; "node" too.
  std::vector<TierInfo> tiers;
  std::map<std::string, double>
      oversubscription;  // By switch tier: downlinks ÷ uplinks, the worst.
  // The most links on a shortest path between the NICs (without a fabric: the GPUs) of two GPUs.
  std::uint32_t diameter = 0;
  // The most that the first half of the nodes (of one node: of the GPUs) can send to the second
  // half, by max-flow over the links in service, and what its GPUs could inject.
  Bandwidth bisection;
  Bandwidth bisection_injection;
  bool connected = true;
  std::string disconnected_from, disconnected_to;  // Two names that cannot talk, when not.
};

[[nodiscard]] TopologyInfo analyse(const Topology& topology);

// The two GPUs that no path joins (scale-up, PCIe or NIC, relays by GPUs of the same node allowed),
// if any, and why.
[[nodiscard]] std::optional<std::pair<VertexId, VertexId>> find_disconnected(
    const Topology& topology);

}  // namespace flyover
