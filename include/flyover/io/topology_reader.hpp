#pragma once

// Topologies from presets and files; docs/formats/topology.md has every key.

#include <cstdint>
#include <span>
#include <string>

#include "flyover/io/document.hpp"
#include "flyover/topology/builders.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::io {

// Trunks: switches and cables that are always loaded alike are one (NodeSpec::trunks,
// FabricSpec::trunks), unless an override is about one of them. For replays; those who count or
// draw want Cables.
enum class FabricDetail : std::uint8_t { Cables, Trunks };

struct TopologyInput {
  Topology topology;
  std::string name;    // As the user gave it: "dgx-h100:16", "cluster.json", "<stdin>".
  std::string digest;  // Of the text and every setting; of a preset, of its name and count.
};

// `argument` is a preset of a node or cluster with an optional number of nodes ("dgx-h100",
// "superpod-h100:127"), a JSON file, or "-" for standard input. Settings override values of the
// file, or of {"preset": ..., "nodes": ...}. Throws InputError; an unknown name offers the nearest.
[[nodiscard]] TopologyInput load_topology_input(const std::string& argument,
                                                std::span<const Setting> settings = {},
                                                FabricDetail detail = FabricDetail::Cables);
[[nodiscard]] Topology load_topology(const std::string& argument,
                                     std::span<const Setting> settings = {},
                                     FabricDetail detail = FabricDetail::Cables);

// The document behind an argument, settings not applied: what a sweep varies.
[[nodiscard]] Document topology_document(const std::string& argument);
[[nodiscard]] Topology read_topology(const Document& document,
                                     FabricDetail detail = FabricDetail::Cables);

}  // namespace flyover::io
