#include "group.hpp"

#include <algorithm>

#include "link_classes.hpp"
#include "mesh.hpp"

namespace flyover {

namespace {

bool scale_up(const Link& link) {
  return link.kind == LinkKind::NvLink || link.kind == LinkKind::Xgmi;
}

// Ring neighbours decide: one pair on PCIe slows all.
LinkClass joining_class(const Topology& topology, const Router& router, const Library& library,
                        std::span<const std::uint32_t> ranks,
                        const std::vector<std::vector<std::uint32_t>>& domains) {
  LinkClass own = scale_up_class(topology.gpu_model(ranks.front()));
  if (own == pcie_class()) return own;
  for (const auto& members : domains) {
    if (library.mesh_rings) {
      std::vector<std::uint32_t> member_ranks;
      member_ranks.reserve(members.size());
      for (const std::uint32_t member : members) member_ranks.push_back(ranks[member]);
      if (!direct_pairs(topology, member_ranks).empty()) continue;
    }
    for (std::size_t i = 1; i < members.size(); ++i) {
      const PathKind kind = router.path_kind(ranks[members[i - 1]], ranks[members[i]]);
      if (kind != PathKind::ScaleUp) return pcie_class();
    }
  }
  return own;
}

double planned_node_bandwidth(const Topology& topology, const NcclTuning& tuning,
                              std::uint32_t rank, const LinkClass& link) {
  double total = 0;
  const auto lane = tuning.lane_speeds.find(link.name);
  for (const LinkId id : topology.out(topology.gpus[rank])) {
    const Link& out = topology.links[id];
    if (!out.up) continue;
    const double nominal = out.nominal.per_second() / 1e9;
    if (link == pcie_class()) {
      if (out.kind == LinkKind::Pcie) total += nominal * tuning.pcie_share;
    } else if (scale_up(out)) {
      total +=
          lane == tuning.lane_speeds.end() ? nominal * tuning.pcie_share : out.lanes * lane->second;
    }
  }
  return total;
}

double nic_port_bandwidth(const Topology& topology, VertexId nic) {
  double total = 0;
  for (const LinkId id : topology.out(nic)) {
    const Link& out = topology.links[id];
    if (out.up && out.kind != LinkKind::Pcie && !scale_up(out)) total += out.nominal.per_second();
  }
  return total / 1e9;
}

// What a table says of a network by its generation or, failing that, its kind.
template <class Table>
auto by_network(const Table& table, const std::string& generation) {
  auto found = table.find(generation);
  return found != table.end() ? found : table.find(link_family(generation));
}

bool joins_nics(const Topology& topology, const NcclTuning& tuning, double port) {
  if (tuning.joined_port > 0 && port <= tuning.joined_port) return true;
  const std::string& generation = topology.fabric_preset;
  return std::ranges::any_of(tuning.joined_networks, [&](const std::string& name) {
    return name == generation || name == link_family(generation);
  });
}

// NICs as NCCL sees them: those that one GPU has for itself may show as one.
void plan_network(const Topology& topology, const Router& router, const NcclTuning& tuning,
                  std::span<const std::uint32_t> ranks, const std::vector<std::uint32_t>& members,
                  TunerGroup& group) {
  struct Device {
    VertexId first{};
    double bandwidth = 0;
  };
  std::vector<Device> devices;
  for (const std::uint32_t member : members) {
    const auto own = router.nics(ranks[member]);
    double together = 0;
    bool join = own.size() > 1;
    for (const VertexId nic : own) {
      const double port = nic_port_bandwidth(topology, nic);
      join = join && joins_nics(topology, tuning, port);
      together += port;
    }
    if (join) {
      devices.push_back({own.front(), together});
      continue;
    }
    for (const VertexId nic : own) devices.push_back({nic, nic_port_bandwidth(topology, nic)});
  }
  std::ranges::sort(devices, {}, &Device::first);
  const auto same = [](const Device& a, const Device& b) { return a.first == b.first; };
  devices.erase(std::unique(devices.begin(), devices.end(), same), devices.end());
  group.nics = static_cast<std::uint32_t>(devices.size());
  if (devices.empty()) return;
  group.nic_bandwidth =
      std::ranges::min(devices, {}, &Device::bandwidth).bandwidth * tuning.network_share;
  const auto latency = by_network(tuning.plugin_latencies, topology.fabric_preset);
  if (latency != tuning.plugin_latencies.end()) group.plugin_latency = latency->second;
}

bool has_switches(const Topology& topology, const Node& node) {
  for (std::uint32_t i = 0; i < node.vertices; ++i) {
    const VertexId vertex{static_cast<std::uint32_t>(node.first_vertex) + i};
    if (topology.vertices[vertex].kind == VertexKind::NvSwitch) return true;
  }
  return false;
}

}  // namespace

GroupShape group_shape(const Topology& topology, const Router& router,
                       std::span<const std::uint32_t> ranks) {
  GroupShape shape;
  shape.domain.reserve(ranks.size());
  shape.rail.reserve(ranks.size());
  for (const std::uint32_t rank : ranks) {
    shape.domain.push_back(static_cast<std::uint32_t>(topology.node_of_rank(rank)));
    shape.rail.push_back(router.rail(rank));
  }
  return shape;
}

GroupFacts examine_group(const Topology& topology, const Router& router, const Library& library,
                         std::span<const std::uint32_t> ranks) {
  GroupFacts facts;
  facts.shape = group_shape(topology, router, ranks);
  const auto domains = by_domain(facts.shape);
  const auto fullest = std::ranges::max_element(
      domains, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  facts.domains = static_cast<std::uint32_t>(domains.size());
  facts.members = static_cast<std::uint32_t>(fullest->size());
  facts.rails = static_cast<std::uint32_t>(entry_rails(facts.shape).front().size());
  facts.architecture = topology.gpu_model(ranks.front()).architecture;
  facts.gpu = topology.gpu_model(ranks.front()).name;
  facts.link = joining_class(topology, router, library, ranks, domains);
  facts.in_switch_reduction = std::ranges::all_of(domains, [&](const auto& members) {
    return router.has_in_switch_reduction(ranks[members.front()]);
  });

  facts.in_network_reduction = topology.in_network_reduction && library.settings.collnet;

  TunerGroup& tuner = facts.tuner;
  tuner.ranks = static_cast<std::uint32_t>(ranks.size());
  tuner.nodes = facts.domains;
  tuner.local_ranks = facts.members;
  tuner.architecture = facts.architecture;
  tuner.nvlink = facts.link.family == "nvlink";
  tuner.collnet = facts.in_network_reduction;
  const NodeId first = topology.node_of_rank(ranks.front());
  if (first != no_node) {
    tuner.cpu_vendor = topology.nodes[first].cpu_vendor;
    tuner.switched = has_switches(topology, topology.nodes[first]);
  }
  if (library.tuning) {
    tuner.node_bandwidth =
        planned_node_bandwidth(topology, *library.tuning, ranks[fullest->front()], facts.link);
    if (facts.domains > 1) {
      plan_network(topology, router, *library.tuning, ranks, *fullest, tuner);
    }
  }
  return facts;
}

}  // namespace flyover
