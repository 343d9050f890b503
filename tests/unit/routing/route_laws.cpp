#include "route_laws.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

namespace flyover::test {

namespace {

std::string link_name(const Topology& topology, const Link& link) {
  return fmt::format("{} -> {}", vertex_name(topology, link.from), vertex_name(topology, link.to));
}

}  // namespace

std::string broken_law(const Topology& topology, const Route& route, std::uint32_t from,
                       std::uint32_t to) {
  const VertexId sender = topology.gpus[from], receiver = topology.gpus[to];
  const NodeId from_node = topology.vertices[sender].node,
               to_node = topology.vertices[receiver].node;
  std::map<VertexId, double> surplus;
  std::set<LinkId> links;
  for (const Hop& hop : route.hops) {
    const Link& link = topology.links[hop.link];
    if (!link.up || !topology.vertices[link.from].up || !topology.vertices[link.to].up) {
      return fmt::format("{} is out of service", link_name(topology, link));
    }
    if (hop.share <= 0 || hop.share > 1 + 1e-12) {
      return fmt::format("{} carries {}", link_name(topology, link), hop.share);
    }
    if (!links.insert(hop.link).second) {
      return fmt::format("{} appears twice", link_name(topology, link));
    }
    surplus[link.from] -= hop.share;
    surplus[link.to] += hop.share;
    for (const VertexId v : {link.from, link.to}) {
      const Vertex& vertex = topology.vertices[v];
      if (vertex.kind == VertexKind::Gpu && v != sender && v != receiver && !route.relayed &&
          topology.torus.empty()) {
        return fmt::format("passes {}", vertex_name(topology, v));
      }
      if (vertex.kind != VertexKind::Nic) continue;
      if (vertex.node != from_node && vertex.node != to_node) {
        return fmt::format("passes {} of a third node", vertex_name(topology, v));
      }
      if (from_node == to_node) return fmt::format("passes {}", vertex_name(topology, v));
    }
  }
  surplus[sender] += 1;
  surplus[receiver] -= 1;
  for (const auto& [v, bytes] : surplus) {
    if (std::abs(bytes) > 1e-12) {
      return fmt::format("{} keeps {}", vertex_name(topology, v), bytes);
    }
  }
  return "";
}

std::map<std::string, double> by_name(const Topology& topology, const Route& route) {
  std::map<std::string, double> shares;
  for (const Hop& hop : route.hops) {
    shares[link_name(topology, topology.links[hop.link])] += hop.share;
  }
  return shares;
}

double share_on(const Topology& topology, const Route& route, LinkKind kind) {
  double sum = 0;
  for (const Hop& hop : route.hops) sum += topology.links[hop.link].kind == kind ? hop.share : 0;
  return sum;
}

}  // namespace flyover::test
