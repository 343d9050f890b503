#include "flyover/topology/analysis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

using Graph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Edge = std::pair<std::uint32_t, std::uint32_t>;

// Parallel edges become one: no question asked of the graph depends on them.
Graph make_graph(std::vector<Edge> edges, std::size_t vertices) {
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return Graph(boost::edges_are_sorted, edges.begin(), edges.end(),
               static_cast<std::uint32_t>(vertices));
}

Edge ends(const Link& link) {
  return {static_cast<std::uint32_t>(link.from), static_cast<std::uint32_t>(link.to)};
}

bool in_service(const Topology& topology, const Link& link) {
  return link.up && topology.vertices[link.from].up && topology.vertices[link.to].up;
}

bool in_fabric(const Topology& topology, const Link& link) {
  return topology.vertices[link.from].node == no_node && topology.vertices[link.to].node == no_node;
}

bool within_node(const Topology& topology, const Link& link) {
  const NodeId node = topology.vertices[link.from].node;
  return node != no_node && node == topology.vertices[link.to].node;
}

// A NIC's link to the network, in either direction.
bool at_port(const Topology& topology, const Link& link) {
  return !in_fabric(topology, link) && !within_node(topology, link);
}

bool is_scale_up(LinkKind kind) {
  return kind == LinkKind::NvLink || kind == LinkKind::Xgmi;
}

// --- connectivity --------------------------------------------------------------------------------

std::vector<std::uint32_t> components(const Graph& graph) {
  std::vector<std::uint32_t> component(boost::num_vertices(graph));
  boost::strong_components(graph, boost::make_iterator_property_map(
                                      component.begin(), boost::get(boost::vertex_index, graph)));
  return component;
}

// Islands of GPUs of one node, and the islands of switches that each can enter and leave.
struct Islands {
  std::vector<std::uint32_t> of;               // Per vertex.
  std::vector<std::set<std::uint32_t>> reach;  // Per island inside a node: islands of the fabric.
};

Islands find_islands(const Topology& topology) {
  std::vector<Edge> edges;
  bool direct = false;  // Cables from node to node, without a switch: GPUs or NICs forward.
  for (const Link& link : topology.links) {
    if (!in_service(topology, link)) continue;
    if (!at_port(topology, link)) edges.push_back(ends(link));
    const bool both =
        topology.vertices[link.from].node != no_node && topology.vertices[link.to].node != no_node;
    direct = direct || (both && !within_node(topology, link));
  }
  if (direct) {
    for (const Link& link : topology.links) {
      if (in_service(topology, link) && at_port(topology, link)) edges.push_back(ends(link));
    }
  }
  Islands islands;
  islands.of = components(make_graph(std::move(edges), topology.vertices.size()));
  islands.reach.resize(topology.vertices.size());
  std::set<Edge> leaves, enters;
  for (const Link& link : topology.links) {
    if (direct || !in_service(topology, link) || !at_port(topology, link)) continue;
    const auto [from, to] = ends(link);
    if (topology.vertices[link.from].node != no_node) {
      leaves.emplace(islands.of[from], islands.of[to]);
    } else {
      enters.emplace(islands.of[to], islands.of[from]);
    }
  }
  for (const auto& [inside, fabric] : leaves) {
    if (enters.contains({inside, fabric})) islands.reach[inside].insert(fabric);
  }
  return islands;
}

// --- distances -----------------------------------------------------------------------------------

// The farthest of `targets` that `from` reaches.
class Distances {
 public:
  explicit Distances(const Graph& graph) : graph_(graph), distance_(boost::num_vertices(graph)) {}

  std::uint32_t farthest(std::uint32_t from, const std::vector<std::uint32_t>& targets) {
    constexpr std::uint32_t unreached = 0xffffffffU;
    std::ranges::fill(distance_, unreached);
    distance_[from] = 0;
    queue_.assign(1, from);
    for (std::size_t next = 0; next < queue_.size(); ++next) {
      const std::uint32_t v = queue_[next];
      for (auto [edge, end] = boost::out_edges(v, graph_); edge != end; ++edge) {
        const std::uint32_t to = boost::target(*edge, graph_);
        if (distance_[to] != unreached) continue;
        distance_[to] = distance_[v] + 1;
        queue_.push_back(to);
      }
    }
    std::uint32_t most = 0;
    for (const std::uint32_t target : targets) {
      if (distance_[target] != unreached) most = std::max(most, distance_[target]);
    }
    return most;
  }

 private:
  const Graph& graph_;
  std::vector<std::uint32_t> distance_;
  std::vector<std::uint32_t> queue_;
};

std::uint32_t find_diameter(const Topology& topology) {
  const bool networked = std::ranges::any_of(topology.links, [&](const Link& link) {
    return in_service(topology, link) && at_port(topology, link) &&
           (topology.vertices[link.from].kind == VertexKind::Nic ||
            topology.vertices[link.to].kind == VertexKind::Nic);
  });
  std::vector<Edge> edges;
  for (const Link& link : topology.links) {
    if (in_service(topology, link) && !(networked && within_node(topology, link))) {
      edges.push_back(ends(link));
    }
  }
  const Graph graph = make_graph(std::move(edges), topology.vertices.size());
  const VertexKind kind = networked ? VertexKind::Nic : VertexKind::Gpu;
  std::vector<std::uint32_t> terminals;
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    if (topology.vertices[VertexId{v}].kind == kind) terminals.push_back(v);
  }
  // NICs below the same switches see the same distances, so one of them speaks for all.
  std::set<std::vector<std::uint32_t>> asked;
  Distances distances(graph);
  std::uint32_t diameter = 0;
  for (const std::uint32_t terminal : terminals) {
    if (networked) {
      std::vector<std::uint32_t> neighbours;
      for (auto [v, end] = boost::adjacent_vertices(terminal, graph); v != end; ++v) {
        neighbours.push_back(static_cast<std::uint32_t>(*v));
      }
      if (!asked.insert(std::move(neighbours)).second) continue;
    }
    diameter = std::max(diameter, distances.farthest(terminal, terminals));
  }
  return diameter;
}

// --- bisection -----------------------------------------------------------------------------------

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
// Whole bytes per second: max-flow on integers ends, and ends exactly.
using Capacity = std::int64_t;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_index_t, long,
                    boost::property<boost::vertex_color_t, boost::default_color_type,
                                    boost::property<boost::vertex_distance_t, long,
                                                    boost::property<boost::vertex_predecessor_t,
                                                                    Traits::edge_descriptor>>>>,
    boost::property<
        boost::edge_capacity_t, Capacity,
        boost::property<boost::edge_residual_capacity_t, Capacity,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// Flow between two merged groups of vertices. Vertex 0 is the source and 1 the sink.
class FlowNetwork {
 public:
  void add(std::uint32_t from, std::uint32_t to, Bandwidth bandwidth) {
    if (from != to) capacity_[{from, to}] += std::llround(bandwidth.per_second());
  }

  [[nodiscard]] Bandwidth max_flow() const {
    if (capacity_.empty()) return {};
    std::uint32_t vertices = 2;
    for (const auto& [edge, capacity] : capacity_) {
      vertices = std::max({vertices, edge.first + 1, edge.second + 1});
    }
    FlowGraph graph(vertices);
    const auto capacities = boost::get(boost::edge_capacity, graph);
    const auto reverses = boost::get(boost::edge_reverse, graph);
    const auto add_edge = [&](std::uint32_t a, std::uint32_t b) {
      const auto found = capacity_.find({a, b});
      const auto edge = boost::add_edge(a, b, graph).first;
      capacities[edge] = found == capacity_.end() ? 0 : found->second;
      return edge;
    };
    for (const auto& [edge, capacity] : capacity_) {
      const auto [a, b] = edge;
      if (a > b && capacity_.contains({b, a})) continue;  // Came with the other direction.
      const auto there = add_edge(a, b);
      const auto back = add_edge(b, a);
      reverses[there] = back;
      reverses[back] = there;
    }
    return Bandwidth{static_cast<double>(boost::boykov_kolmogorov_max_flow(graph, 0UL, 1UL))};
  }

 private:
  std::map<Edge, Capacity> capacity_;
};

constexpr std::uint32_t source = 0;
constexpr std::uint32_t sink = 1;

// From the first half of the nodes, each merged into one source, to the others. Inside, a node is
// taken to be no limit.
void bisect_nodes(const Topology& topology, TopologyInfo& info) {
  const std::uint32_t half = static_cast<std::uint32_t>(topology.nodes.size() / 2);
  const auto place = [&](VertexId v) {
    const NodeId node = topology.vertices[v].node;
    if (node == no_node) return static_cast<std::uint32_t>(v) + 2;
    return index(node) < half ? source : sink;
  };
  FlowNetwork network;
  for (const Link& link : topology.links) {
    if (!in_service(topology, link)) continue;
    network.add(place(link.from), place(link.to), link.bandwidth);
    const bool leaves_node =
        at_port(topology, link) && topology.vertices[link.from].node != no_node;
    if (leaves_node && place(link.from) == source) {
      info.bisection_injection = info.bisection_injection + link.bandwidth;
    }
  }
  info.bisection = network.max_flow();
}

// From the first half of a node's GPUs to the others: over the scale-up links where they join the
// two halves, since traffic then stays off PCIe.
void bisect_gpus(const Topology& topology, TopologyInfo& info) {
  const std::size_t half = topology.gpus.size() / 2;
  if (half == 0) return;
  std::vector<std::uint32_t> place(topology.vertices.size());
  for (std::uint32_t v = 0; v < place.size(); ++v) place[v] = v + 2;
  for (std::size_t g = 0; g < topology.gpus.size(); ++g) {
    place[index(topology.gpus[g])] = g < half ? source : sink;
  }
  for (const bool scale_up_only : {true, false}) {
    FlowNetwork network;
    Bandwidth injection;
    for (const Link& link : topology.links) {
      if (!in_service(topology, link) || (scale_up_only && !is_scale_up(link.kind))) continue;
      network.add(place[index(link.from)], place[index(link.to)], link.bandwidth);
      if (place[index(link.from)] == source) injection = injection + link.bandwidth;
    }
    info.bisection = network.max_flow();
    info.bisection_injection = injection;
    if (info.bisection > Bandwidth{}) return;
  }
}

// --- counts --------------------------------------------------------------------------------------

bool is_network(LinkKind kind) {
  return kind == LinkKind::HostLeaf || kind == LinkKind::LeafSpine || kind == LinkKind::SpineCore ||
         kind == LinkKind::Local || kind == LinkKind::Global || kind == LinkKind::Torus;
}

std::vector<TierInfo> find_tiers(const Topology& topology) {
  struct Sum {
    std::uint64_t links = 0, down = 0;
    double low = 0, high = 0, total = 0;
  };
  std::map<LinkKind, Sum> sums;
  for (const Link& link : topology.links) {
    Sum& sum = sums[link.kind];
    const double rate = link.bandwidth.per_second();
    sum.low = sum.links == 0 ? rate : std::min(sum.low, rate);
    sum.high = std::max(sum.high, rate);
    ++sum.links;
    if (in_service(topology, link)) {
      sum.total += rate;
    } else {
      ++sum.down;
    }
  }
  std::vector<TierInfo> tiers;
  for (const auto& [kind, sum] : sums) {
    const std::uint32_t ports = is_network(kind) ? topology.ports_per_cable : 1;
    const std::uint64_t per_cable = 2ULL * ports;  // Two directions make a cable.
    tiers.push_back({.kind = kind,
                     .cables = (sum.links + per_cable - 1) / per_cable,
                     .down = (sum.down + per_cable - 1) / per_cable,
                     .per_cable_low = Bandwidth{sum.low * ports},
                     .per_cable_high = Bandwidth{sum.high * ports},
                     .total = Bandwidth{sum.total / 2}});
  }
  return tiers;
}

std::map<std::string, double> find_oversubscription(const Topology& topology) {
  struct Tier {
    VertexKind kind;
    LinkKind below, above;
  };
  constexpr std::array tiers{Tier{VertexKind::Leaf, LinkKind::HostLeaf, LinkKind::LeafSpine},
                             Tier{VertexKind::Spine, LinkKind::LeafSpine, LinkKind::SpineCore}};
  std::map<std::string, double> worst;
  for (const Tier& tier : tiers) {
    for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
      if (topology.vertices[VertexId{v}].kind != tier.kind) continue;
      double down = 0, up = 0;
      for (const LinkId id : topology.in(VertexId{v})) {
        const Link& link = topology.links[id];
        if (link.kind == tier.below && in_service(topology, link)) {
          down += link.bandwidth.per_second();
        }
      }
      for (const LinkId id : topology.out(VertexId{v})) {
        const Link& link = topology.links[id];
        if (link.kind == tier.above && in_service(topology, link))
          up += link.bandwidth.per_second();
      }
      if (up == 0) continue;
      double& entry = worst[std::string(to_string(tier.kind))];
      entry = std::max(entry, down / up);
    }
  }
  return worst;
}

}  // namespace

std::optional<std::pair<VertexId, VertexId>> find_disconnected(const Topology& topology) {
  const Islands islands = find_islands(topology);
  // Islands that reach the same switches can talk, so one GPU of each distinct reach is compared;
  // an island that reaches none is alone.
  std::map<std::set<std::uint32_t>, VertexId> seen;
  std::optional<VertexId> alone;
  for (const VertexId gpu : topology.gpus) {
    const std::set<std::uint32_t>& reach = islands.reach[islands.of[index(gpu)]];
    const VertexId first = topology.gpus.front();
    const bool first_island = islands.of[index(gpu)] == islands.of[index(first)];
    if (!topology.vertices[gpu].up) {
      if (topology.gpus.size() > 1) return std::pair{gpu == first ? topology.gpus[1] : first, gpu};
      continue;
    }
    if (reach.empty()) {
      if (!first_island) return std::pair{first, gpu};
      if (!alone) alone = gpu;
    } else if (alone && islands.of[index(*alone)] != islands.of[index(gpu)]) {
      return std::pair{*alone, gpu};
    }
    seen.emplace(reach, gpu);
  }
  for (auto a = seen.begin(); a != seen.end(); ++a) {
    for (auto b = std::next(a); b != seen.end(); ++b) {
      if (islands.of[index(a->second)] == islands.of[index(b->second)]) continue;
      const bool meet = std::ranges::any_of(
          a->first, [&](std::uint32_t fabric) { return b->first.contains(fabric); });
      if (!meet) return std::minmax(a->second, b->second);
    }
  }
  return std::nullopt;
}

TopologyInfo analyse(const Topology& topology) {
  TopologyInfo info;
  info.vertices["node"] = topology.nodes.size();
  for (const Vertex& vertex : topology.vertices) {
    ++info.vertices[std::string(to_string(vertex.kind))];
  }
  info.tiers = find_tiers(topology);
  info.oversubscription = find_oversubscription(topology);
  info.diameter = find_diameter(topology);
  if (topology.nodes.size() > 1) {
    bisect_nodes(topology, info);
  } else {
    bisect_gpus(topology, info);
  }
  if (const auto apart = find_disconnected(topology)) {
    info.connected = false;
    info.disconnected_from = vertex_name(topology, apart->first);
    info.disconnected_to = vertex_name(topology, apart->second);
  }
  return info;
}

}  // namespace flyover
