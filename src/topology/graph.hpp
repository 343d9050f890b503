#pragma once

// The two steps of which every builder is made.

#include <cstdint>
#include <utility>

#include "flyover/topology/topology.hpp"

namespace flyover {

// A cable's rate in each direction, and its other properties.
struct Cable {
  LinkKind kind = LinkKind::Other;
  Bandwidth bandwidth;
  Duration latency{};
  std::uint32_t lanes = 1;
  std::uint32_t cables = 1;
};

inline VertexId add_vertex(Topology& topology, const Vertex& vertex) {
  return topology.vertices.push_back(vertex);
}

// Adds both directions, next to each other.
inline void connect(Topology& topology, VertexId a, VertexId b, const Cable& cable) {
  Link link;
  link.from = a;
  link.to = b;
  link.bandwidth = link.nominal = cable.bandwidth;
  link.latency = cable.latency;
  link.kind = cable.kind;
  link.lanes = cable.lanes;
  link.cables = cable.cables;
  topology.links.push_back(link);
  std::swap(link.from, link.to);
  topology.links.push_back(link);
}

}  // namespace flyover
