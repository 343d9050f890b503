#include "flyover/topology/builders.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric/fabric.hpp"
#include "flyover/base/error.hpp"
#include "node.hpp"

namespace flyover {

namespace {

using Join = void (*)(Topology&, const FabricSpec&, const NicPorts&);

void join_nothing(Topology&, const FabricSpec&, const NicPorts&) {}

// One line per fabric: the readers, `flyover list fabrics` and the builder go by this table.
struct Entry {
  FabricInfo info;
  Join join = nullptr;
};

constexpr std::array fabric_table{
    Entry{{FabricKind::None, "none", "no network: one node, or nodes that cannot talk"},
          join_nothing},
    Entry{{FabricKind::SingleSwitch, "single-switch", "every NIC on one non-blocking switch"},
          join_single_switch},
    Entry{{FabricKind::LeafSpine, "leaf-spine", "two tiers; all NICs of a node on its own leaf"},
          join_leaf_spine},
    Entry{{FabricKind::FatTree, "fat-tree", "three tiers of equal switches (k-ary Clos)"},
          join_fat_tree},
    Entry{{FabricKind::RailOptimized, "rail-optimized",
           "NIC r of every node of a unit on leaf r; spines, cores when needed (SuperPOD)"},
          join_rail_optimized},
    Entry{{FabricKind::RailOnly, "rail-only", "one network per rail, not joined to each other"},
          join_rail_only},
    Entry{{FabricKind::MultiPlane, "multi-plane",
           "NIC r in plane r; each plane is its own two-tier fat tree (DeepSeek)"},
          join_multi_plane},
    Entry{{FabricKind::Dragonfly, "dragonfly",
           "groups of fully joined routers with global cables between groups"},
          join_dragonfly},
    Entry{{FabricKind::Torus, "torus", "nodes in a 2-D or 3-D ring mesh (TPU pods)"}, join_torus},
};

constexpr auto fabric_infos = [] {
  std::array<FabricInfo, fabric_table.size()> infos{};
  for (std::size_t i = 0; i < infos.size(); ++i) infos[i] = fabric_table[i].info;
  return infos;
}();

template <class T>
std::uint32_t index_in(std::vector<T>& pool, const T& item) {
  const auto found = std::ranges::find(pool, item);
  const auto place = static_cast<std::uint32_t>(found - pool.begin());
  if (found == pool.end()) pool.push_back(item);
  return place;
}

NicPorts nic_ports(const Topology& topology, const std::vector<Bandwidth>& nic_bandwidth) {
  NicPorts ports;
  ports.reserve(topology.gpus.size());
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const Vertex& vertex = topology.vertices[VertexId{v}];
    if (vertex.kind != VertexKind::Nic) continue;
    const auto node = static_cast<std::uint32_t>(index(vertex.node));
    ports.push_back({.nic = VertexId{v},
                     .node = node,
                     .rail = vertex.rail,
                     .bandwidth = nic_bandwidth[topology.nodes[vertex.node].type]});
  }
  return ports;
}

void check_fabric(const FabricSpec& spec) {
  const auto check = [&](bool holds, std::string_view problem) {
    if (!holds) refuse_fabric(spec, problem);
  };
  check(spec.radix >= 2, "a switch needs at least two ports");
  check(spec.oversubscription > 0 && spec.core_oversubscription > 0,
        "oversubscription must be above zero");
  check(spec.tiers == 0 || spec.tiers == 2 || spec.tiers == 3, "expected 2 or 3 tiers");
  check(spec.nic_ports > 0 && spec.ports_per_cable > 0, "expected at least one port");
}

void join_nodes(Topology& topology, const ClusterSpec& cluster,
                const std::vector<NodeSpec>& types) {
  FabricSpec spec = cluster.fabric;
  check_fabric(spec);
  std::vector<Bandwidth> nic_bandwidth;
  for (const NodeSpec& type : types) {
    const bool reachable = type.nics > 0 || spec.kind == FabricKind::Torus;
    if (!reachable && topology.nodes.size() > 1) {
      refuse_fabric(spec, fmt::format("node type \"{}\" has no NICs to join it by", type.name));
    }
    nic_bandwidth.push_back(type.nic_bandwidth);
  }
  const NicPorts nics = nic_ports(topology, nic_bandwidth);
  if (spec.kind == FabricKind::Torus) {
    const bool mixed = std::ranges::any_of(
        types, [&](const NodeSpec& type) { return (type.nics == 0) != nics.empty(); });
    if (mixed) refuse_fabric(spec, "either all nodes have NICs or none has");
  } else if (nics.empty()) {
    return;
  }
  if (spec.link_bandwidth == Bandwidth{}) {
    for (const NodeSpec& type : types) {
      spec.link_bandwidth =
          std::max(spec.link_bandwidth, nics.empty() ? type.lane_bandwidth
                                                     : type.nic_bandwidth * (1.0 / spec.nic_ports));
    }
    if (spec.link_bandwidth == Bandwidth{}) refuse_fabric(spec, "its cables need a bandwidth");
  }
  const Entry& entry = *std::ranges::find_if(
      fabric_table, [&](const Entry& candidate) { return candidate.info.kind == spec.kind; });
  entry.join(topology, spec, nics);
}

}  // namespace

void refuse_fabric(const FabricSpec& spec, std::string_view problem) {
  throw InputError(fmt::format("fabric \"{}\": {}", to_string(spec.kind), problem));
}

Topology build_topology(const ClusterSpec& spec) {
  Topology topology;
  topology.name = spec.name;
  std::vector<NodeSpec> types;
  Topology pattern;  // One node of each group.
  std::size_t vertices = 0, links = 0, nodes = 0, gpus = 0;
  for (const NodeGroup& group : spec.nodes) {
    if (group.count == 0) {
      throw InputError(fmt::format("node \"{}\": expected at least one of them", group.spec.name));
    }
    check_node(group.spec);
    const std::uint32_t type = index_in(types, group.spec);
    const std::uint32_t model = index_in(topology.gpu_models, group.spec.gpu);
    add_node(pattern, group.spec, type, model);
    const Node& node = *(pattern.nodes.end() - 1);
    nodes += group.count;
    gpus += std::size_t{node.gpus} * group.count;
    vertices += std::size_t{node.vertices} * group.count;
    // Of a fabric of three tiers, both directions. Memory that is not used is not taken.
    links += (node.links + std::size_t{6} * group.spec.nics * std::min(spec.fabric.nic_ports, 8U)) *
             group.count;
  }
  topology.nodes.reserve(nodes);
  topology.gpus.reserve(gpus);
  topology.vertices.reserve(vertices + vertices / 8);
  topology.links.reserve(links);
  for (std::uint32_t group = 0; group < spec.nodes.size(); ++group) {
    for (std::uint32_t i = 0; i < spec.nodes[group].count; ++i) {
      add_copy(topology, pattern, NodeId{group});
    }
  }
  if (topology.nodes.empty()) throw InputError("expected at least one node");
  for (const NodeSpec& type : types) {
    for (const std::string& note : type.notes) {
      topology.notes.push_back(fmt::format("{}: {}", type.name, note));
    }
  }
  topology.fabric = to_string(spec.fabric.kind);
  topology.fabric_preset = spec.fabric.preset;
  topology.in_network_reduction =
      spec.fabric.in_network_reduction && spec.fabric.kind != FabricKind::None &&
      spec.fabric.kind != FabricKind::Torus && spec.fabric.kind != FabricKind::Dragonfly;
  topology.routing =
      spec.fabric.kind == FabricKind::Torus ? RoutingPolicy::DimensionOrder : spec.fabric.routing;
  topology.routing_seed = spec.fabric.seed;
  topology.ports_per_cable = spec.fabric.ports_per_cable;
  if (spec.fabric.kind != FabricKind::None) join_nodes(topology, spec, types);
  topology.index_links();
  return topology;
}

std::string_view to_string(FabricKind kind) {
  for (const Entry& entry : fabric_table) {
    if (entry.info.kind == kind) return entry.info.name;
  }
  require(false, "every fabric has a name");
  return {};
}

std::optional<FabricKind> fabric_kind(std::string_view name) {
  for (const Entry& entry : fabric_table) {
    if (entry.info.name == name) return entry.info.kind;
  }
  return std::nullopt;
}

std::span<const FabricInfo> fabrics() {
  return fabric_infos;
}

}  // namespace flyover
