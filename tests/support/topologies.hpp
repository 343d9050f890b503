#pragma once

// Small clusters for tests, and a way to draw odd ones by hand.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "flyover/topology/builders.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::test {

// Eight GPUs on four NVSwitches (5, 4, 4, 5 lanes of 25 GB/s), eight NICs of 50 GB/s; two GPUs and
// two NICs on each of four PCIe switches, two of those on each of two sockets. 200 ns per NVLink
// hop, 300 ns per PCIe hop.
[[nodiscard]] NodeSpec switched_node();
// Every pair of GPUs joined by one xGMI link of 50 GB/s; NICs as switched_node().
[[nodiscard]] NodeSpec mesh_node();
// The hybrid cube mesh of a DGX-1: every GPU has links to four others. Four NICs.
[[nodiscard]] NodeSpec cube_mesh_node();
// GPUs on PCIe alone: eight of them, two PCIe switches, two sockets, two NICs.
[[nodiscard]] NodeSpec pcie_node();
// GPUs with nothing between them but the NVSwitches, and a NIC each.
[[nodiscard]] NodeSpec bare_node(std::uint32_t gpus);

// `count` nodes joined by a fabric of NICs' speed with 500 ns per cable; `change` adjusts it.
[[nodiscard]] Topology cluster(const NodeSpec& node, std::uint32_t count, FabricKind fabric,
                               const std::function<void(FabricSpec&)>& change = {});

// By name, as vertex_name() has it. Links: both directions of every cable between the two.
[[nodiscard]] VertexId vertex(const Topology& topology, std::string_view name);
[[nodiscard]] std::vector<LinkId> links_between(const Topology& topology, std::string_view from,
                                                std::string_view to);  // One direction.
void take_down(Topology& topology, std::string_view name);
void take_down(Topology& topology, std::string_view from, std::string_view to);
void scale_bandwidth(Topology& topology, std::string_view from, std::string_view to, double factor);

// A topology drawn by hand. Vertices of a node must be added one after the other, nodes in order.
class Sketch {
 public:
  Sketch& node(std::string_view name, bool in_switch_reduction = false);
  // In the node begun last, or (`fabric`) in none.
  VertexId add(VertexKind kind, std::string_view name, std::uint32_t rail = 0);
  VertexId fabric(VertexKind kind, std::string_view name);
  void cable(VertexId a, VertexId b, LinkKind kind, Bandwidth bandwidth, Duration latency);
  [[nodiscard]] Topology build(RoutingPolicy policy = RoutingPolicy::Adaptive);

 private:
  Topology topology_;
};

}  // namespace flyover::test
