#pragma once

// A topology as text for other tools and for people.

#include <string>

#include "flyover/topology/topology.hpp"

namespace flyover::io {

// The explicit form, which load_topology reads back to an equal graph.
[[nodiscard]] std::string topology_json(const Topology& topology);

// Graphviz and GraphML, one edge per link direction.
[[nodiscard]] std::string topology_dot(const Topology& topology);
[[nodiscard]] std::string topology_graphml(const Topology& topology);

// A layered drawing: one row per tier, from the core switches down to the GPUs. A row of more than
// 64 vertices is drawn as groups with counts. Cables between two boxes are one line; a legend names
// the colour of each kind.
[[nodiscard]] std::string topology_svg(const Topology& topology);

}  // namespace flyover::io
