#include "flyover/study/group_links.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flyover {

namespace {

// The scale-up links of a GPU in words.
std::string scale_up_links(const Topology& topology, std::uint32_t rank) {
  std::set<VertexId> neighbours;
  for (const LinkId link : topology.out(topology.gpus[rank])) {
    const LinkKind kind = topology.links[link].kind;
    if (kind == LinkKind::NvLink || kind == LinkKind::Xgmi || kind == LinkKind::Torus) {
      neighbours.insert(topology.links[link].to);
    }
  }
  if (neighbours.empty()) return "pcie";
  const bool bridge =
      neighbours.size() == 1 && topology.vertices[*neighbours.begin()].kind == VertexKind::Gpu;
  return topology.gpu_model(rank).scale_up + (bridge ? " bridge" : "");
}

}  // namespace

GroupLinks group_links(const Topology& topology, std::span<const std::uint32_t> ranks) {
  std::vector<NodeId> domains;
  std::set<std::string> generations;
  std::set<std::string> gpus;
  std::set<std::pair<std::uint32_t, const GpuModel*>> known;  // Types of nodes and their GPUs.
  for (const std::uint32_t rank : ranks) {
    const NodeId node = topology.node_of_rank(rank);
    if (domains.empty() || domains.back() != node) domains.push_back(node);
    const GpuModel& gpu = topology.gpu_model(rank);
    // In explicit graphs the GPUs of a node may differ in their links.
    const bool explicit_links = topology.nodes[node].links == 0;
    if (!known.emplace(topology.nodes[node].type, &gpu).second && !explicit_links) continue;
    gpus.insert(gpu.name);
    generations.insert(scale_up_links(topology, rank));
  }
  std::ranges::sort(domains);
  domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
  GroupLinks out{fmt::format("{}", fmt::join(generations, " and ")),
                 fmt::format("{}", fmt::join(gpus, " and ")),
                 static_cast<std::uint32_t>(domains.size())};
  if (domains.size() > 1) {
    out.links +=
        " + " + (topology.fabric_preset.empty() ? "unnamed network" : topology.fabric_preset);
  }
  return out;
}

}  // namespace flyover
