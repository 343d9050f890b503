#include "flyover/study/group_links.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flyover {

namespace {

bool has_scale_up_link(const Topology& topology, std::uint32_t rank) {
  return std::ranges::any_of(topology.out(topology.gpus[rank]), [&](LinkId link) {
    const LinkKind kind = topology.links[link].kind;
    return kind == LinkKind::NvLink || kind == LinkKind::Xgmi || kind == LinkKind::Torus;
  });
}

}  // namespace

GroupLinks group_links(const Topology& topology, std::span<const std::uint32_t> ranks) {
  std::set<NodeId> domains;
  std::set<std::string> generations;
  std::set<std::string> gpus;
  for (const std::uint32_t rank : ranks) {
    domains.insert(topology.node_of_rank(rank));
    const GpuModel& gpu = topology.gpu_model(rank);
    gpus.insert(gpu.name);
    generations.insert(has_scale_up_link(topology, rank) ? gpu.scale_up : "pcie");
  }
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
