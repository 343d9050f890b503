#pragma once

// What every fabric builder gets: the nodes, already built, and the ports of their NICs.

#include <cstdint>
#include <string_view>
#include <vector>

#include "flyover/topology/builders.hpp"

namespace flyover {

struct NicPort {
  VertexId nic{};
  std::uint32_t node = 0;
  std::uint32_t rail = 0;
  Bandwidth bandwidth;  // Of the whole NIC.
};

// In order of node and NIC.
using NicPorts = std::vector<NicPort>;

// Each appends switches and cables. `spec` has link_bandwidth filled in.
void join_single_switch(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_leaf_spine(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_fat_tree(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_rail_optimized(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_rail_only(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_multi_plane(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_dragonfly(Topology& topology, const FabricSpec& spec, const NicPorts& nics);
void join_torus(Topology& topology, const FabricSpec& spec, const NicPorts& nics);

[[noreturn]] void refuse_fabric(const FabricSpec& spec, std::string_view problem);

}  // namespace flyover
