#pragma once

#include "flyover/io/document.hpp"
#include "flyover/io/presets.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::io {

// Reads a topology that lists its "vertices" and "edges" into an indexed graph.
[[nodiscard]] Topology read_explicit_graph(const Field& root, const Presets& presets);

}  // namespace flyover::io
