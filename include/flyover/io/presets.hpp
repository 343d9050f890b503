#pragma once

// Hardware by name: configs/hardware/*.json, compiled in. Every entry names its source.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/topology/builders.hpp"

namespace flyover::io {

enum class PresetKind : std::uint8_t { Gpu, Node, Network, Cluster };

struct PresetInfo {
  PresetKind kind = PresetKind::Node;
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;  // One line: "8 x H100-SXM, NVLink 450 GB/s, 8 x 400 Gb/s".
  std::string source;
};

struct ClusterPreset {
  NodeSpec node;
  std::uint32_t nodes = 1;  // When no count is asked for.
  FabricSpec fabric;
  std::vector<std::string> notes;
};

// Lookups ignore case and know aliases. An unknown name is an InputError that offers the nearest
// one.
class Presets {
 public:
  Presets();
  ~Presets();
  Presets(Presets&&) noexcept;

  [[nodiscard]] GpuModel gpu(std::string_view name) const;
  [[nodiscard]] NodeSpec node(std::string_view name) const;
  // Kind None; the rest as the network generation sets it.
  [[nodiscard]] FabricSpec network(std::string_view name) const;
  [[nodiscard]] ClusterPreset cluster(std::string_view name) const;

  [[nodiscard]] bool has(PresetKind kind, std::string_view name) const;
  // In order of the file.
  [[nodiscard]] std::vector<PresetInfo> list(PresetKind kind) const;
  // Of nodes and clusters, aliases too: what may stand for a topology.
  [[nodiscard]] std::vector<std::string> topology_names() const;
  // The network generation for NICs of this rate, or "" when there is none.
  [[nodiscard]] std::string network_for(Bandwidth nic) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover::io
