#pragma once

// One Clos network (or one plane of several): leaves in order of their units, spines, cores.

#include "fabric.hpp"

namespace flyover {

struct ClosLeaf {
  std::uint32_t rail = 0;
  std::uint32_t unit = 0;
  std::vector<NicPort> nics;  // Empty for a leaf whose nodes are not there yet.
};

struct ClosPlan {
  std::vector<ClosLeaf> leaves;  // Unit by unit.
  std::uint32_t leaves_per_unit = 1;
  double full_load = 0;         // Bytes/s into a leaf of a full unit from its NICs.
  std::uint32_t nic_ports = 1;  // A NIC's rate is divided by this.
  std::uint32_t tiers = 0;      // 2, 3, or 0 for as few as possible.
};

struct ClosCounters {
  std::uint32_t leaves = 0, spines = 0, cores = 0;
};

// Builds the plan and returns the ids of its leaves. `counters` number the switches across planes.
std::vector<VertexId> build_clos(Topology& topology, const FabricSpec& spec, const ClosPlan& plan,
                                 ClosCounters& counters);

// The NICs, at `nic_bandwidth` per port, that fit below one leaf with its uplinks; at least one.
[[nodiscard]] std::uint32_t nics_per_leaf(const FabricSpec& spec, Bandwidth nic_bandwidth);

}  // namespace flyover
