#pragma once

// From a short description of a cluster to its graph.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/topology/hardware.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

enum class FabricKind : std::uint8_t {
  None,           // One node, or nodes that cannot talk.
  SingleSwitch,   // Every NIC on one non-blocking switch.
  LeafSpine,      // Two tiers; a node's NICs all on its own leaf.
  FatTree,        // Three tiers of equal radix (k-ary Clos); leaves filled in order of the NICs.
  RailOptimized,  // NIC r of every node of a unit on leaf r of the unit; spines; cores when needed.
  RailOnly,       // NIC r of every node on rail switch r; rails are not joined.
  MultiPlane,     // NIC r in plane r; each plane its own two-tier fat tree (DeepSeek).
  Dragonfly,
  Torus,  // Nodes form a 2-D or 3-D torus of one router each: a switch below its NICs, or its only
          // GPU.
};

// Counts that are 0 are derived, so that the fabric is no larger than its nodes need.
//
// Clos fabrics follow one rule, which gives the published tables of the DGX SuperPODs (H100, B300),
// of DeepSeek's planes and of a k-ary fat tree (all checked in tests/unit/topology/clos_test.cpp):
//   leaves   each takes the NICs of one rail (or node) of a full unit; a unit is cabled in full
//   even
//            when it lacks nodes. More leaves when the ports do not suffice.
//   uplinks  of a leaf: rate of its NIC ports ÷ (link rate x oversubscription), rounded up.
//   spines   the fewest that have ports for all uplinks and over which the uplinks of a leaf divide
//            evenly (3 units of 8 leaves with 32 uplinks: 12 suffice, 16 divide). One leaf needs
//            none.
//   cores    when there are more leaves than a spine has ports. Units then form pods of as many
//   leaves
//            as a spine has downlinks; spine j of every pod belongs to core group j, which has the
//            fewest cores by the same two conditions.
struct FabricSpec {
  FabricKind kind = FabricKind::None;
  std::string preset;        // Network generation: "ndr", "hdr", "xdr", "roce-400", ...
  Bandwidth link_bandwidth;  // Switch-to-switch cables; default: the NIC port's.
  Duration link_latency{};   // NIC-to-switch and switch-to-switch cable, with the forwarding.
  std::uint32_t radix = 64;  // Ports of a switch at link_bandwidth.
  // Its switches can reduce (SHARP of Quantum InfiniBand); not on a dragonfly or torus.
  bool in_network_reduction = false;
  std::uint32_t nodes_per_unit = 0;    // RailOptimized; LeafSpine, FatTree: nodes per leaf.
  double oversubscription = 1.0;       // Leaf downlinks ÷ uplinks, 1 is non-blocking.
  double core_oversubscription = 1.0;  // Spine downlinks ÷ uplinks, three tiers.
  std::uint32_t tiers = 0;             // RailOptimized: 2 or 3; 0: as few as possible.
  std::uint32_t units_per_pod = 0;     // Three tiers.
  std::uint32_t spines = 0;            // Of each plane, and of each pod when there are three tiers.
  std::uint32_t cores = 0;             // Of each plane.
  // MultiPlane: planes, NIC of rail r in plane r mod planes; 0: one per rail.
  std::uint32_t planes = 0;
  // RailOptimized: ports of a NIC, each on its own plane of leaves and spines at an equal share of
  // the NIC's rate (twin-planar DGX B300 Ethernet, dual-plane HPN).
  std::uint32_t nic_ports = 1;
  std::uint32_t ports_per_cable = 1;  // Of twin-port cables; for counts only.
  // Fabric managers' ports, one to a leaf, present while the last unit has an empty place.
  std::uint32_t manager_ports = 0;
  // Dragonfly: routers per group (a), hosts per router (p), global links per router (h).
  std::uint32_t group_routers = 0, router_hosts = 0, router_globals = 0;
  std::vector<std::uint32_t> torus;  // Extents.
  RoutingPolicy routing = RoutingPolicy::Adaptive;
  std::uint64_t seed = 0;
  // Clos fabrics under adaptive routing: the spines of a pod, all cores, and the cables to them
  // become one switch and one cable each where every leaf has as many cables to every spine, and
  // every spine to every core of its group. Packets sprayed over them load all alike, so that
  // transfers take as long; only the fabric's size no longer grows with its radix.
  bool trunks = false;
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
// "leaf[index=0]", "gpu[node=1]". Several values: "index=0|2|5-7". Without keys: all of that kind.
//
// Keys of vertices: node, index, rail, unit. Keys of links: kind; node, rail, unit (of either end);
// from, to (vertex names: that direction); index (counts the cables that the other keys match).
// A cable that goes down is down in both directions; rates and latencies change in the directions
// matched. A vertex that goes down takes its links with it. Throws InputError for a selector that
// is malformed or matches nothing.
struct Override {
  std::string selector;
  std::optional<bool> up;              // A vertex or link taken out of service; a node: all of it.
  std::optional<Bandwidth> bandwidth;  // Bought anew: changes the nominal rate too.
  std::optional<double> factor;        // Degraded to this share of nominal, above 0 and at most 1.
  std::optional<Duration> latency;
  // The last three change, for a NIC or node, the links at its network ports; for any other vertex,
  // every link at it.

  // A GPU, or every GPU of a node, that reaches this share of the FLOP rates (of every data type)
  // or of the memory bandwidth that it was bought with, above 0 and at most 1. What is not given
  // stays as it is.
  std::optional<double> compute_factor = {};
  std::optional<double> memory_factor = {};
};
void apply_override(Topology& topology, const Override& change);
// Whether it means the same where parallel switches and cables are one (NodeSpec::trunks,
// FabricSpec::trunks). Throws InputError for a selector that is malformed.
[[nodiscard]] bool fits_trunks(const Override& change);

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
