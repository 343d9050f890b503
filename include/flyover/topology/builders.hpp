#pragma once

// From a short description of a cluster to its graph.

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/topology/hardware.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

enum class FabricKind : std::uint8_t {
  None,           // One node, or nodes that cannot talk.
  SingleSwitch,   // Every NIC on one non-blocking switch.
  LeafSpine,      // Two tiers; a node's NICs all on its own leaf.
  FatTree,        // Three tiers of equal radix (k-ary Clos).
  RailOptimized,  // NIC r of every node of a unit on leaf r of the unit; spines; cores when needed.
  RailOnly,       // NIC r of every node on rail switch r; rails are not joined.
  MultiPlane,     // NIC r in plane r; each plane its own two-tier fat tree (DeepSeek).
  Dragonfly,
  Torus,          // Nodes form a 2-D or 3-D torus; GPUs (one per node) or NICs are its routers.
};

struct FabricSpec {
  FabricKind kind = FabricKind::None;
  std::string preset;            // Network generation: "ndr", "hdr", "xdr", "roce-400", ...
  Bandwidth link_bandwidth;      // Switch-to-switch cables; default: the NIC's.
  Duration link_latency{};       // NIC-to-switch and switch-to-switch cable, with the forwarding.
  std::uint32_t radix = 64;      // Ports of a switch at link_bandwidth.
  std::uint32_t nodes_per_unit = 32;  // RailOptimized; LeafSpine: nodes per leaf (0: from radix).
  double oversubscription = 1.0;      // Leaf downlinks ÷ uplinks, 1 is non-blocking.
  double core_oversubscription = 1.0;  // Spine downlinks ÷ uplinks, three tiers.
  std::uint32_t spines = 0;            // 0: derived.
  std::uint32_t cores = 0;             // 0: derived.
  std::uint32_t planes = 0;            // MultiPlane; 0: one per NIC of a node.
  // Dragonfly: routers per group (a), hosts per router (p), global links per router (h).
  std::uint32_t group_routers = 0, router_hosts = 0, router_globals = 0;
  std::vector<std::uint32_t> torus;    // Extents.
  RoutingPolicy routing = RoutingPolicy::Adaptive;
  std::uint64_t seed = 0;
};

struct NodeGroup {
  NodeSpec spec;
  std::uint32_t count = 1;
};

struct ClusterSpec {
  std::string name;
  std::vector<NodeGroup> nodes;  // Unequal islands are legal.
  FabricSpec fabric;
};

// Builds and indexes the graph. Throws InputError when the parts do not fit together (a torus whose
// extents do not multiply to the nodes, a radix too small, ...), naming the numbers.
[[nodiscard]] Topology build_topology(const ClusterSpec& spec);

// Applies one override of a topology file to everything that `selector` matches:
// "nic[node=3,index=2]", "link[kind=leaf-spine]", "link[kind=nvlink,node=0]", "node[index=4]",
// "leaf[index=0]", "gpu[node=1]". Keys: kind, node, index, rail, unit, and for links also from and to
// (vertex names). Several values: "index=0|2|5-7". Throws InputError when it matches nothing.
struct Override {
  std::string selector;
  std::optional<bool> up;              // A vertex or link taken out of service; a node: all of it.
  std::optional<Bandwidth> bandwidth;  // Links; of a NIC or node: the links at its network port.
  std::optional<double> factor;        // Of nominal bandwidth, above 0 and at most 1.
  std::optional<Duration> latency;
};
void apply_override(Topology& topology, const Override& change);

[[nodiscard]] std::string_view to_string(FabricKind kind);  // "rail-optimized", ...
[[nodiscard]] std::optional<FabricKind> fabric_kind(std::string_view name);
// One line each for `flyover list fabrics`.
struct FabricInfo {
  FabricKind kind;
  std::string_view name;
  std::string_view summary;
};
[[nodiscard]] std::span<const FabricInfo> fabrics();

}  // namespace flyover
