#include "link_classes.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace flyover {

namespace {

bool scale_up(LinkKind kind) {
  return kind == LinkKind::NvLink || kind == LinkKind::Xgmi;
}

// Of a link of this kind; of a scale-up link, one outside of nodes.
LinkClass class_of(const Topology& topology, LinkKind kind) {
  if (kind == LinkKind::Pcie) return pcie_class();
  if (kind == LinkKind::CpuLink) return {"cpu", "cpu"};
  if (scale_up(kind)) {
    const std::string name(to_string(kind));
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

LinkClasses::LinkClasses(const Topology& topology) : topology_(topology) {
  for (const GpuModel& gpu : topology.gpu_models) {
    of_gpu_model_.push_back(enter(scale_up_class(gpu)));
  }
  for (std::size_t kind = 0; kind < link_kinds; ++kind) {
    of_kind_[kind] = enter(class_of(topology, static_cast<LinkKind>(kind)));
  }
}

std::size_t LinkClasses::enter(LinkClass wanted) {
  const auto found = std::ranges::find(classes_, wanted);
  const auto place = static_cast<std::size_t>(found - classes_.begin());
  if (found == classes_.end()) classes_.push_back(std::move(wanted));
  return place;
}

std::size_t LinkClasses::of(LinkId id) const {
  const Link& link = topology_.links[id];
  if (scale_up(link.kind)) {
    const NodeId node = topology_.vertices[link.from].node;
    if (node != no_node) return of_gpu_model_[topology_.nodes[node].gpu_model];
  }
  return of_kind_[static_cast<std::size_t>(link.kind)];
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
