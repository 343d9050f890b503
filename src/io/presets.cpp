#include "flyover/io/presets.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/embedded.hpp"
#include "hardware_reader.hpp"

namespace flyover::io {

namespace {

struct Catalogue {
  PresetKind kind;
  std::string_view path;
  std::string_view what;  // In messages.
};

constexpr std::array catalogues{
    Catalogue{PresetKind::Gpu, "hardware/gpus.json", "GPU"},
    Catalogue{PresetKind::Node, "hardware/nodes.json", "node preset"},
    Catalogue{PresetKind::Network, "hardware/fabrics.json", "network preset"},
    Catalogue{PresetKind::Cluster, "hardware/clusters.json", "cluster preset"},
};

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

std::vector<std::string> aliases_of(const Field& entry) {
  std::vector<std::string> aliases;
  if (!entry.has("aliases")) return aliases;
  for (const Field& alias : entry["aliases"].elements()) aliases.push_back(alias.text());
  return aliases;
}

std::string node_summary(const NodeSpec& node) {
  std::string text = fmt::format("{} x {}", node.gpus, node.gpu.name);
  if (node.nics > 0) {
    text += fmt::format(", {} x {:g} Gb/s", node.nics, node.nic_bandwidth.per_second() * 8e-9);
  }
  return text;
}

}  // namespace

struct Presets::Impl {
  Impl() {
    for (const Catalogue& catalogue : catalogues) {
      files.push_back(
          Document::parse(std::string(catalogue.path), std::string(embedded_file(catalogue.path))));
    }
  }

  [[nodiscard]] static const Catalogue& catalogue(PresetKind kind) {
    return *std::ranges::find(catalogues, kind, &Catalogue::kind);
  }

  [[nodiscard]] Field entries(PresetKind kind) const {
    return files[static_cast<std::size_t>(&catalogue(kind) - catalogues.data())].root()["entries"];
  }

  // The name in the file of an entry or of the one that has this alias; "" when there is none.
  [[nodiscard]] std::string canonical(PresetKind kind, std::string_view name) const {
    const Field all = entries(kind);
    for (const std::string& key : all.keys()) {
      if (same_word(key, name)) return key;
      for (const std::string& alias : aliases_of(all[key])) {
        if (same_word(alias, name)) return key;
      }
    }
    return "";
  }

  [[nodiscard]] std::vector<std::string> names(PresetKind kind) const {
    std::vector<std::string> names;
    const Field all = entries(kind);
    for (const std::string& key : all.keys()) {
      names.push_back(key);
      for (std::string& alias : aliases_of(all[key])) names.push_back(std::move(alias));
    }
    return names;
  }

  [[nodiscard]] std::pair<std::string, Field> find(PresetKind kind, std::string_view name) const {
    const std::string key = canonical(kind, name);
    if (key.empty()) {
      const std::vector<std::string> known = names(kind);
      const std::string meant = did_you_mean(name, known);
      throw InputError(fmt::format("\"{}\" is not a known {}{}", name, catalogue(kind).what,
                                   meant.empty() ? "; see flyover list presets" : meant));
    }
    return {key, entries(kind)[key]};
  }

  std::vector<Document> files;
};

Presets::Presets() : impl_(std::make_unique<Impl>()) {}
Presets::~Presets() = default;
Presets::Presets(Presets&&) noexcept = default;

GpuModel Presets::gpu(std::string_view name) const {
  const auto [key, entry] = impl_->find(PresetKind::Gpu, name);
  GpuModel model;
  model.name = key;
  return read_gpu_members(entry, model);
}

NodeSpec Presets::node(std::string_view name) const {
  const auto [key, entry] = impl_->find(PresetKind::Node, name);
  NodeSpec node;
  node.name = key;
  node = read_node_members(entry, *this, node);
  node.notes = read_notes(entry);
  return node;
}

FabricSpec Presets::network(std::string_view name) const {
  const auto [key, entry] = impl_->find(PresetKind::Network, name);
  FabricSpec network;
  network.preset = key;
  network.link_bandwidth = read_bandwidth(entry["bandwidth"], Carrier::FabricCable);
  network.link_latency = entry["latency"].duration();
  network.radix = entry["radix"].count(2);
  network.in_network_reduction =
      entry.has("in_network_reduction") && entry["in_network_reduction"].boolean();
  return network;
}

ClusterPreset Presets::cluster(std::string_view name) const {
  const auto [key, entry] = impl_->find(PresetKind::Cluster, name);
  ClusterPreset cluster;
  cluster.node = read_node(entry["node"], *this);
  cluster.nodes = entry["nodes"].count();
  cluster.fabric = read_fabric_members(entry["fabric"], *this, {});
  cluster.notes = read_notes(entry);
  return cluster;
}

bool Presets::has(PresetKind kind, std::string_view name) const {
  return !impl_->canonical(kind, name).empty();
}

std::vector<PresetInfo> Presets::list(PresetKind kind) const {
  std::vector<PresetInfo> infos;
  const Field all = impl_->entries(kind);
  for (const std::string& key : all.keys()) {
    const Field entry = all[key];
    PresetInfo info;
    info.kind = kind;
    info.name = key;
    info.aliases = aliases_of(entry);
    info.source = entry["source"].text();
    switch (kind) {
      case PresetKind::Gpu: {
        const GpuModel model = gpu(key);
        info.summary = fmt::format("{}, {} at {}", model.architecture, to_string(model.memory),
                                   to_string(model.memory_bandwidth));
        break;
      }
      case PresetKind::Node:
        info.summary = node_summary(node(key));
        break;
      case PresetKind::Network: {
        const FabricSpec spec = network(key);
        info.summary = fmt::format("{:g} Gb/s cables, {} per link and switch, {} ports",
                                   spec.link_bandwidth.per_second() * 8e-9,
                                   to_string(spec.link_latency), spec.radix);
        break;
      }
      case PresetKind::Cluster: {
        const ClusterPreset preset = cluster(key);
        info.summary = fmt::format("{} nodes of {} on {} {}", preset.nodes, preset.node.name,
                                   preset.fabric.preset, to_string(preset.fabric.kind));
        break;
      }
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<std::string> Presets::topology_names() const {
  std::vector<std::string> names = impl_->names(PresetKind::Node);
  const std::vector<std::string> clusters = impl_->names(PresetKind::Cluster);
  names.insert(names.end(), clusters.begin(), clusters.end());
  return names;
}

std::string Presets::network_for(Bandwidth nic) const {
  const Field all = impl_->entries(PresetKind::Network);
  for (const std::string& key : all.keys()) {
    if (all[key]["bandwidth"].bandwidth() == nic) return key;
  }
  return "";
}

}  // namespace flyover::io
