#pragma once

// Clusters that the tests of this folder share, written out by hand.

#include <algorithm>
#include <cstdint>
#include <string>

#include "flyover/base/error.hpp"
#include "flyover/topology/analysis.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover::test {

using namespace flyover::literals;

// Eight GPUs on four NVSwitches, a NIC per GPU.
inline NodeSpec hgx() {
  NodeSpec node;
  node.name = "hgx";
  node.gpu.name = "H100-SXM";
  node.gpu.scale_up = "nvlink4";
  node.gpus = 8;
  node.scale_up = ScaleUp::Switched;
  node.lane_bandwidth = 25_GBps;
  node.links_per_switch = {5, 4, 4, 5};
  node.scale_up_latency = 250ns;
  node.in_switch_reduction = true;
  node.pcie_switches = 8;
  node.cpus = 2;
  node.pcie_bandwidth = 63_GBps;
  node.cpu_bandwidth = 22_GBps;
  node.pcie_latency = 150ns;
  node.nics = 8;
  node.nic_bandwidth = 400_Gbps;
  node.nic_model = "ConnectX-7";
  return node;
}

// One GPU with one NIC, nothing else.
inline NodeSpec single() {
  NodeSpec node;
  node.name = "single";
  node.gpu.name = "GPU";
  node.gpus = 1;
  node.nics = 1;
  node.nic_bandwidth = 400_Gbps;
  return node;
}

inline ClusterSpec cluster(const NodeSpec& node, std::uint32_t nodes, FabricSpec fabric) {
  ClusterSpec spec;
  spec.name = "test";
  spec.nodes = {{node, nodes}};
  spec.fabric = std::move(fabric);
  return spec;
}

inline FabricSpec fabric(FabricKind kind) {
  FabricSpec spec;
  spec.kind = kind;
  spec.link_latency = 450ns;
  return spec;
}

inline std::uint64_t count(const Topology& topology, VertexKind kind) {
  return static_cast<std::uint64_t>(std::ranges::count(topology.vertices, kind, &Vertex::kind));
}

// As `flyover topo` counts them.
inline std::uint64_t cables(const Topology& topology, LinkKind kind) {
  const auto links =
      static_cast<std::uint64_t>(std::ranges::count(topology.links, kind, &Link::kind));
  return links / 2 / topology.ports_per_cable;
}

template <class Act>
std::string input_error(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace flyover::test
