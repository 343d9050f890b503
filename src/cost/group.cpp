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

void plan_network(const Topology& topology, const Router& router, const NcclTuning& tuning,
                  std::span<const std::uint32_t> ranks, const std::vector<std::uint32_t>& members,
                  TunerGroup& group) {
  std::vector<VertexId> nics;
  for (const std::uint32_t member : members) {
    const auto own = router.nics(ranks[member]);
    nics.insert(nics.end(), own.begin(), own.end());
  }
  std::ranges::sort(nics);
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  group.nics = static_cast<std::uint32_t>(nics.size());
  for (const VertexId nic : nics) {
    const double planned = nic_port_bandwidth(topology, nic) * tuning.network_share;
    group.nic_bandwidth =
        group.nic_bandwidth == 0 ? planned : std::min(group.nic_bandwidth, planned);
  }
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

  TunerGroup& tuner = facts.tuner;
  tuner.ranks = static_cast<std::uint32_t>(ranks.size());
  tuner.nodes = facts.domains;
  tuner.local_ranks = facts.members;
  tuner.architecture = facts.architecture;
  tuner.nvlink = facts.link.family == "nvlink";
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
