#include "fabric.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace flyover::routing {

namespace {

bool is_fabric_switch(const Vertex& v) {
  if (v.node != no_node) return false;
  switch (v.kind) {
    case VertexKind::Leaf:
    case VertexKind::Spine:
    case VertexKind::Core:
    case VertexKind::Switch:
    case VertexKind::NvSwitch:
      return true;
    default:
      return false;
  }
}

bool can_be_port(const Vertex& v) {
  return v.kind == VertexKind::Nic || v.kind == VertexKind::Gpu;
}

// Sorts the cables by the port at their `end` and deals them out as its `cables`, each port's in
// the order in which they were.
std::vector<Arc> deal_out(std::span<const Arc> arcs, std::uint32_t Arc::*end,
                          std::vector<Port>& ports, std::span<const Arc> Port::*cables) {
  std::vector<std::uint32_t> next(ports.size() + 1, 0);
  for (const Arc& arc : arcs) ++next[arc.*end + 1];
  for (std::size_t p = 0; p < ports.size(); ++p) next[p + 1] += next[p];
  std::vector<Arc> sorted(arcs.size());
  for (std::size_t p = 0; p < ports.size(); ++p) {
    ports[p].*cables = std::span(sorted).subspan(next[p], next[p + 1] - next[p]);
  }
  for (const Arc& arc : arcs) sorted[next[arc.*end]++] = arc;
  return sorted;
}

}  // namespace

bool in_service(const Topology& topology, const Link& link) {
  return link.up && link.bandwidth.per_second() > 0 && topology.vertices[link.from].up &&
         topology.vertices[link.to].up;
}

bool is_scale_up(const Topology& topology, const Link& link) {
  if (link.kind != LinkKind::NvLink && link.kind != LinkKind::Xgmi) return false;
  const auto joins_gpus = [](VertexKind kind) {
    return kind == VertexKind::Gpu || kind == VertexKind::NvSwitch || kind == VertexKind::Switch;
  };
  return joins_gpus(topology.vertices[link.from].kind) &&
         joins_gpus(topology.vertices[link.to].kind);
}

bool is_network(const Topology& topology, const Link& link) {
  const NodeId from = topology.vertices[link.from].node;
  return from == no_node || from != topology.vertices[link.to].node || link.kind == LinkKind::Torus;
}

Fabric::Fabric(const Topology& topology) {
  number_vertices(topology);
  connect(topology);
  number_targets();
}

void Fabric::number_vertices(const Topology& topology) {
  fabric_of_.assign(topology.vertices.size(), none);
  port_of_.assign(topology.vertices.size(), none);
  const auto enter = [this](VertexId v, bool transit) {
    std::uint32_t& number = fabric_of_[index(v)];
    if (number == none) {
      number = static_cast<std::uint32_t>(vertices_.size());
      vertices_.push_back(v);
      transit_.push_back(0);
    }
    if (transit) transit_[number] = 1;
  };
  std::size_t nics = 0;
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const Vertex& vertex = topology.vertices[VertexId{v}];
    if (is_fabric_switch(vertex)) enter(VertexId{v}, true);
    if (vertex.kind == VertexKind::Nic) ++nics;
  }
  ports_.reserve(nics);
  for (std::uint32_t l = topology.links_of_nodes(); l < topology.links.size(); ++l) {
    const Link& link = topology.links[LinkId{l}];
    if (!is_network(topology, link)) continue;
    for (const VertexId v : {link.from, link.to}) {
      const Vertex& vertex = topology.vertices[v];
      if (!can_be_port(vertex) || port_of_[index(v)] != none) continue;
      port_of_[index(v)] = static_cast<std::uint32_t>(ports_.size());
      ports_.push_back({.vertex = v, .rail = vertex.rail});
    }
    // A cable from port to port makes both of them vertices of the fabric; only a torus passes
    // through.
    if (can_be_port(topology.vertices[link.from]) && can_be_port(topology.vertices[link.to])) {
      enter(link.from, link.kind == LinkKind::Torus);
      enter(link.to, link.kind == LinkKind::Torus);
    }
  }
}

void Fabric::connect(const Topology& topology) {
  const std::uint32_t first = topology.links_of_nodes();
  std::vector<Arc> arcs, up, down;
  arcs.reserve(topology.links.size() - first);
  up.reserve(ports_.size());
  down.reserve(ports_.size());
  std::vector<char> leaves(ports_.size(), 0), enters(ports_.size(), 0);
  for (std::uint32_t l = first; l < topology.links.size(); ++l) {
    const Link& link = topology.links[LinkId{l}];
    if (!is_network(topology, link) || !in_service(topology, link)) continue;
    const std::uint32_t from = fabric_of_[index(link.from)];
    const std::uint32_t to = fabric_of_[index(link.to)];
    const std::uint32_t from_port = port_of_[index(link.from)];
    const std::uint32_t to_port = port_of_[index(link.to)];
    Arc arc{from, to, l, link.bandwidth.per_second(), link.latency};
    if (from != none && to != none) {
      arcs.push_back(arc);
    } else if (from_port != none && to != none) {
      arc.from = from_port;
      up.push_back(arc);
    } else if (to_port != none && from != none) {
      arc.to = to_port;
      down.push_back(arc);
    } else {
      continue;  // To a CPU or a PCIe switch of another node: not a network.
    }
    if (from_port != none) {
      ports_[from_port].bandwidth += arc.bandwidth;
      leaves[from_port] = 1;
    }
    if (to_port != none) enters[to_port] = 1;
  }
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    ports_[p].self = fabric_of_[index(ports_[p].vertex)];
    ports_[p].usable = leaves[p] != 0 && enters[p] != 0;
  }
  up_ = deal_out(up, &Arc::from, ports_, &Port::up);
  down_ = deal_out(down, &Arc::to, ports_, &Port::down);
  graph_ = Digraph(arcs, std::move(transit_));
}

// Ports that hang on the same switches are one destination: the paths to them are the same.
void Fabric::number_targets() {
  std::vector<std::uint32_t> target_of_vertex(vertices_.size(), none);
  std::map<std::vector<std::uint32_t>, std::uint32_t> target_of_set;
  std::vector<std::uint32_t> roots;
  for (Port& port : ports_) {
    roots.clear();
    if (port.self != none) {
      roots.push_back(port.self);
    } else {
      for (const Arc& arc : port.down) roots.push_back(arc.from);
      std::sort(roots.begin(), roots.end());
      roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    }
    if (roots.empty()) continue;
    std::uint32_t& target = roots.size() == 1
                                ? target_of_vertex[roots.front()]
                                : target_of_set.try_emplace(roots, none).first->second;
    if (target == none) {
      target = targets();
      roots_.push_back(roots);
    }
    port.target = target;
  }
}

}  // namespace flyover::routing
