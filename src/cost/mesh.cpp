#include "mesh.hpp"

#include <algorithm>
#include <map>

namespace flyover {

namespace {

bool joins_gpus(const Topology& topology, const Link& link) {
  return link.up && (link.kind == LinkKind::NvLink || link.kind == LinkKind::Xgmi) &&
         topology.vertices[link.to].kind == VertexKind::Gpu;
}

bool connected(std::span<const DirectPair> pairs, std::size_t members) {
  std::vector<std::uint32_t> reached = {pairs.front().from};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    for (const DirectPair& pair : pairs) {
      if (pair.from == reached[next] && std::ranges::find(reached, pair.to) == reached.end()) {
        reached.push_back(pair.to);
      }
    }
  }
  return reached.size() == members;
}

}  // namespace

std::vector<DirectPair> direct_pairs(const Topology& topology,
                                     std::span<const std::uint32_t> ranks) {
  if (ranks.size() < 3) return {};
  std::map<VertexId, std::uint32_t> rank_of;
  for (const std::uint32_t rank : ranks) rank_of.emplace(topology.gpus[rank], rank);

  std::vector<DirectPair> pairs;
  double total = 0;
  for (const std::uint32_t rank : ranks) {
    std::size_t neighbours = 0;
    for (const LinkId id : topology.out(topology.gpus[rank])) {
      const Link& link = topology.links[id];
      if (!joins_gpus(topology, link)) continue;
      const auto peer = rank_of.find(link.to);
      if (peer == rank_of.end()) continue;
      pairs.push_back({rank, peer->second, link.bandwidth.per_second()});
      total += link.bandwidth.per_second();
      ++neighbours;
    }
    if (neighbours < 2) return {};
  }
  if (!connected(pairs, ranks.size())) return {};
  for (DirectPair& pair : pairs) pair.share /= total;
  return pairs;
}

}  // namespace flyover
