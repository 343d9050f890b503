#pragma once

// Readers of the parts that presets and topology files share. Each starts from `base` and replaces
// what the field states.

#include "flyover/io/document.hpp"
#include "flyover/io/presets.hpp"
#include "flyover/topology/builders.hpp"

namespace flyover::io {

// A name, or an object: {"preset": name, and what differs}.
[[nodiscard]] GpuModel read_gpu(const Field& field, const Presets& presets);
[[nodiscard]] NodeSpec read_node(const Field& field, const Presets& presets);
// As read_node for the entry of a list, which may have "count".
[[nodiscard]] NodeGroup read_node_group(const Field& field, const Presets& presets);

[[nodiscard]] GpuModel read_gpu_members(const Field& field, GpuModel base);
[[nodiscard]] NodeSpec read_node_members(const Field& field, const Presets& presets, NodeSpec base);
[[nodiscard]] FabricSpec read_fabric_members(const Field& field, const Presets& presets,
                                             FabricSpec base);

// What one cable or bus can carry; more is bits written as bytes, or the sum of many.
enum class Carrier { Nic, Lane, ScaleUpOfGpu, FabricCable, Bus, Memory };
[[nodiscard]] Duration read_link_latency(const Field& field);
[[nodiscard]] Bandwidth read_bandwidth(const Field& field, Carrier carrier);

[[nodiscard]] std::vector<std::string> read_notes(const Field& field);

}  // namespace flyover::io
