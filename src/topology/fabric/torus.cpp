#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../graph.hpp"
#include "fabric.hpp"
#include "flyover/base/error.hpp"

namespace flyover {

namespace {

// The vertex of every node that the torus cables end at.
std::vector<VertexId> routers_of(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  std::vector<VertexId> routers;
  if (nics.empty()) {
    for (const Node& node : topology.nodes) {
      if (node.gpus != 1) {
        refuse_fabric(spec, fmt::format("node type \"{}\" has {} GPUs and no NICs; a torus without "
                                        "NICs joins nodes of one GPU",
                                        node.preset, node.gpus));
      }
      routers.push_back(topology.gpus[node.first_gpu]);
    }
    return routers;
  }
  for (std::uint32_t n = 0; n < topology.nodes.size(); ++n) {
    routers.push_back(
        add_vertex(topology, {.kind = VertexKind::Leaf, .index = n, .rail = 0, .unit = n}));
  }
  for (const NicPort& nic : nics) {
    connect(topology, nic.nic, routers[nic.node],
            {.kind = LinkKind::HostLeaf, .bandwidth = nic.bandwidth, .latency = spec.link_latency});
  }
  return routers;
}

}  // namespace

void join_torus(Topology& topology, const FabricSpec& spec, const NicPorts& nics) {
  std::uint64_t places = 1;
  for (const std::uint32_t extent : spec.torus) {
    if (extent == 0 || places > topology.nodes.size()) break;
    places *= extent;
  }
  if (spec.torus.size() < 2 || spec.torus.size() > 3 || places != topology.nodes.size()) {
    refuse_fabric(spec, fmt::format("expected two or three extents whose product is the number of "
                                    "nodes ({}), got [{}]",
                                    topology.nodes.size(), fmt::join(spec.torus, ", ")));
  }
  topology.torus = spec.torus;
  const std::vector<VertexId> routers = routers_of(topology, spec, nics);
  const Cable cable{
      .kind = LinkKind::Torus, .bandwidth = spec.link_bandwidth, .latency = spec.link_latency};
  for (std::uint64_t i = 0; i < places; ++i) {
    std::uint64_t stride = 1;
    for (const std::uint32_t extent : spec.torus) {
      const std::uint64_t position = i / stride % extent;
      // In a ring of two the wrap-around cable would double the direct one.
      const bool wraps = position + 1 == extent;
      if (extent > 1 && !(wraps && extent == 2)) {
        const std::uint64_t next = wraps ? i - position * stride : i + stride;
        connect(topology, routers[i], routers[next], cable);
      }
      stride *= extent;
    }
  }
}

}  // namespace flyover
