#include "flyover/routing/summit.hpp"

namespace flyover {

namespace {

int tier(VertexKind kind) {
  switch (kind) {
    case VertexKind::Core:
      return 3;
    case VertexKind::Spine:
      return 2;
    default:
      return 1;
  }
}

bool climbs(const Topology& topology, const Link& link, NodeId from) {
  const Vertex& low = topology.vertices[link.from];
  const Vertex& high = topology.vertices[link.to];
  if (low.node == from || high.node == from) return true;
  if (low.node != no_node || high.node != no_node) return false;
  return tier(high.kind) >= tier(low.kind);
}

}  // namespace

SummitCut cut_at_summit(const Topology& topology, const Route& route, NodeId from) {
  SummitCut cut;
  static_cast<PathInfo&>(cut.up) = route;
  static_cast<PathInfo&>(cut.down) = route;
  cut.up.latency = route.latency / 2;
  cut.down.latency = route.latency - cut.up.latency;
  for (const Hop& hop : route.hops) {
    Route& part = climbs(topology, topology.links[hop.link], from) ? cut.up : cut.down;
    part.hops.push_back(hop);
  }
  return cut;
}

bool is_trunk(const Topology& topology, LinkId link) {
  const Link& cable = topology.links[link];
  return topology.vertices[cable.from].node == no_node &&
         topology.vertices[cable.to].node == no_node;
}

}  // namespace flyover
