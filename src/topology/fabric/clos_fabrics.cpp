// The fabrics that are Clos networks differ only in which NIC goes to which leaf of which plane.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "../graph.hpp"
#include "clos.hpp"
#include "flyover/base/error.hpp"

namespace flyover {

namespace {

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

Bandwidth fastest(const NicPorts& nics) {
  return std::ranges::max_element(nics, {}, &NicPort::bandwidth)->bandwidth;
}

// The most NICs that any node has, or that any node has on one rail.
std::uint32_t most_per_node(const NicPorts& nics, bool by_rail) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
  std::uint32_t most = 0;
  for (const NicPort& nic : nics) {
    most = std::max(most, ++counts[{nic.node, by_rail ? nic.rail : 0}]);
  }
  return most;
}

std::uint32_t rails_of(const NicPorts& nics) {
  return std::ranges::max_element(nics, {}, &NicPort::rail)->rail + 1;
}

std::uint32_t nodes_of(const Topology& topology) {
  return static_cast<std::uint32_t>(topology.nodes.size());
}

// One rail or plane of its own: a single switch while its NICs fit, then leaves filled with whole
// nodes and joined by spines.
void build_plane(Topology& topology, const FabricSpec& spec, const NicPorts& nics,
                 std::uint32_t rail, ClosCounters& counters) {
  const double port = fastest(nics).per_second() / spec.link_bandwidth.per_second();
  ClosPlan plan;
  plan.tiers = 2;
  if (spec.nodes_per_unit == 0 && static_cast<double>(nics.size()) * port <= spec.radix) {
    plan.leaves.push_back({.rail = rail, .unit = 0, .nics = nics});
    build_clos(topology, spec, plan, counters);
    return;
  }
  const std::uint32_t per_node = most_per_node(nics, false);
  const std::uint32_t unit = spec.nodes_per_unit > 0
                                 ? spec.nodes_per_unit
                                 : std::max(1U, nics_per_leaf(spec, fastest(nics)) / per_node);
  for (std::uint32_t u = 0; u < ceil_div(nodes_of(topology), unit); ++u) {
    plan.leaves.push_back({.rail = rail, .unit = u, .nics = {}});
  }
  for (const NicPort& nic : nics) plan.leaves[nic.node / unit].nics.push_back(nic);
  plan.full_load = static_cast<double>(unit) * per_node * fastest(nics).per_second();
  build_clos(topology, spec, plan, counters);
}

}  // namespace

void join_single_switch(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  ClosPlan plan;
  plan.leaves.push_back({.rail = 0, .unit = 0, .nics = nics});
  ClosCounters counters;
  build_clos(topology, spec, plan, counters);
}

void join_leaf_spine(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  const std::uint32_t per_node = most_per_node(nics, false);
  const std::uint32_t unit =
      spec.nodes_per_unit > 0
          ? spec.nodes_per_unit
          : std::clamp(nics_per_leaf(spec, fastest(nics)) / per_node, 1U, nodes_of(topology));
  ClosPlan plan;
  plan.tiers = 2;
  plan.full_load = static_cast<double>(unit) * per_node * fastest(nics).per_second();
  for (std::uint32_t u = 0; u < ceil_div(nodes_of(topology), unit); ++u) {
    plan.leaves.push_back({.rail = 0, .unit = u, .nics = {}});
  }
  for (const NicPort& nic : nics) plan.leaves[nic.node / unit].nics.push_back(nic);
  ClosCounters counters;
  build_clos(topology, spec, plan, counters);
}

void join_fat_tree(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  const std::uint32_t capacity = spec.nodes_per_unit > 0
                                     ? spec.nodes_per_unit * most_per_node(nics, false)
                                     : nics_per_leaf(spec, fastest(nics));
  ClosPlan plan;
  plan.tiers = 3;
  plan.full_load = static_cast<double>(std::min<std::size_t>(capacity, nics.size())) *
                   fastest(nics).per_second();
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const auto leaf = static_cast<std::uint32_t>(i / capacity);
    if (leaf == plan.leaves.size()) plan.leaves.push_back({.rail = 0, .unit = leaf, .nics = {}});
    plan.leaves[leaf].nics.push_back(nics[i]);
  }
  ClosCounters counters;
  build_clos(topology, spec, plan, counters);
}

void join_rail_optimized(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  const Bandwidth port = fastest(nics) * (1.0 / spec.nic_ports);
  const std::uint32_t capacity = nics_per_leaf(spec, port);
  const std::uint32_t rails = rails_of(nics);
  const std::uint32_t per_rail = most_per_node(nics, true);  // NICs of one node on one rail.
  const std::uint32_t nodes = nodes_of(topology);
  const std::uint32_t unit =
      spec.nodes_per_unit > 0 ? spec.nodes_per_unit : std::clamp(capacity / per_rail, 1U, nodes);
  const std::uint32_t units = ceil_div(nodes, unit);
  const std::uint32_t leaves_per_rail = ceil_div(unit * per_rail, capacity);
  const std::uint32_t per_leaf = ceil_div(unit * per_rail, leaves_per_rail);

  ClosPlan plan;
  plan.leaves_per_unit = rails * leaves_per_rail;
  plan.full_load = per_leaf * port.per_second();
  plan.nic_ports = spec.nic_ports;
  plan.tiers = spec.tiers;
  for (std::uint32_t u = 0; u < units; ++u) {
    for (std::uint32_t l = 0; l < plan.leaves_per_unit; ++l) {
      plan.leaves.push_back({.rail = l / leaves_per_rail, .unit = u, .nics = {}});
    }
  }
  std::vector<std::uint32_t> filled(std::size_t{units} * rails,
                                    0);  // NICs so far by unit and rail.
  for (const NicPort& nic : nics) {
    const std::uint32_t u = nic.node / unit;
    const std::uint32_t place = filled[std::size_t{u} * rails + nic.rail]++;
    plan.leaves[std::size_t{u} * plan.leaves_per_unit + std::size_t{nic.rail} * leaves_per_rail +
                place / per_leaf]
        .nics.push_back(nic);
  }

  ClosCounters counters;
  std::vector<VertexId> leaves;
  for (std::uint32_t plane = 0; plane < spec.nic_ports; ++plane) {
    const std::vector<VertexId> ids = build_clos(topology, spec, plan, counters);
    leaves.insert(leaves.end(), ids.begin(), ids.end());
  }
  if (nodes % unit == 0) return;
  const std::size_t last_unit = std::size_t{units - 1} * plan.leaves_per_unit;
  for (std::uint32_t m = 0; m < std::min(spec.manager_ports, plan.leaves_per_unit); ++m) {
    const VertexId host = add_vertex(topology, {.kind = VertexKind::Host, .index = m});
    connect(topology, host, leaves[last_unit + m],
            {.kind = LinkKind::HostLeaf, .bandwidth = port, .latency = spec.link_latency});
  }
}

void join_rail_only(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  FabricSpec by_rail = spec;
  by_rail.planes = rails_of(nics);
  join_multi_plane(topology, by_rail, nics);
}

void join_multi_plane(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  const std::uint32_t planes = spec.planes > 0 ? spec.planes : rails_of(nics);
  std::vector<NicPorts> by_plane(planes);
  for (const NicPort& nic : nics) by_plane[nic.rail % planes].push_back(nic);
  ClosCounters counters;
  for (std::uint32_t p = 0; p < planes; ++p) {
    if (by_plane[p].empty()) {
      refuse_fabric(spec, fmt::format("no NIC for plane {}: there are {} planes but {} rails", p,
                                      planes, rails_of(nics)));
    }
    build_plane(topology, spec, by_plane[p], p, counters);
  }
}

}  // namespace flyover
