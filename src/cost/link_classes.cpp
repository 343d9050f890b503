#include "link_classes.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flyover {

namespace {

bool scale_up(LinkKind kind) {
  return kind == LinkKind::NvLink || kind == LinkKind::Xgmi;
}

LinkClass class_of(const Topology& topology, const Link& link) {
  if (link.kind == LinkKind::Pcie) return pcie_class();
  if (link.kind == LinkKind::CpuLink) return {"cpu", "cpu"};
  if (scale_up(link.kind)) {
    const NodeId node = topology.vertices[link.from].node;
    if (node != no_node) {
      return scale_up_class(topology.gpu_models[topology.nodes[node].gpu_model]);
    }
    const std::string name(to_string(link.kind));
    return {name, name};
  }
  return {topology.fabric_preset.empty() ? "network" : topology.fabric_preset, "network"};
}

// Above zero when `to` is further from the GPUs than `from`.
int direction(VertexKind from, VertexKind to) {
  const auto height = [](VertexKind kind) {
    switch (kind) {
      case VertexKind::Gpu:
        return 0;
      case VertexKind::NvSwitch:
      case VertexKind::PcieSwitch:
      case VertexKind::Host:
        return 1;
      case VertexKind::Cpu:
        return 2;
      case VertexKind::Nic:
        return 3;
      case VertexKind::Leaf:
      case VertexKind::Switch:
        return 4;
      case VertexKind::Spine:
        return 5;
      case VertexKind::Core:
        return 6;
    }
    return 0;
  };
  return height(to) - height(from);
}

}  // namespace

LinkClass pcie_class() {
  return {"pcie", "pcie"};
}

LinkClass scale_up_class(const GpuModel& gpu) {
  if (gpu.scale_up.empty()) return pcie_class();
  return {gpu.scale_up, link_family(gpu.scale_up)};
}

LinkClasses classify_links(const Topology& topology) {
  LinkClasses result;
  result.of_link.reserve(topology.links.size());
  for (const Link& link : topology.links) {
    const LinkClass wanted = class_of(topology, link);
    auto found = std::ranges::find(result.classes, wanted);
    if (found == result.classes.end()) {
      result.classes.push_back(wanted);
      found = result.classes.end() - 1;
    }
    result.of_link.push_back(static_cast<std::uint16_t>(found - result.classes.begin()));
  }
  return result;
}

std::string describe_link(const Topology& topology, LinkId id) {
  const Link& link = topology.links[id];
  const VertexKind from = topology.vertices[link.from].kind;
  const VertexKind to = topology.vertices[link.to].kind;
  const int way = direction(from, to);
  const std::string_view kind = to_string(link.kind);
  if (from == VertexKind::Nic || to == VertexKind::Nic) {
    if (link.kind != LinkKind::Pcie) {
      return fmt::format("nic {} ({})", from == VertexKind::Nic ? "out" : "in", kind);
    }
    return fmt::format("pcie {} nic", from == VertexKind::Nic ? "from" : "to");
  }
  if (from == VertexKind::Gpu || to == VertexKind::Gpu) {
    if (way == 0) return std::string(kind);
    return fmt::format("{} {}", kind, way > 0 ? "out" : "in");
  }
  if (way == 0) return std::string(kind);
  return fmt::format("{} {}", kind, way > 0 ? "up" : "down");
}

}  // namespace flyover
