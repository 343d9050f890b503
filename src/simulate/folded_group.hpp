#pragma once

// Collectives on many alike nodes at the cost of the edges between nodes: what happens inside a
// node is followed once, what goes from one to another once for each way in which two nodes may
// lie.

#include <cstdint>
#include <span>

#include "flyover/cost/pattern.hpp"
#include "flyover/routing/router.hpp"
#include "simulate/blocks.hpp"

namespace flyover {

// Whether there is a point in it: in a tree, over several blocks.
[[nodiscard]] bool folds(const Blocks& blocks, std::span<const std::uint32_t> ranks);

// Knows how to lay algorithms that fold (Algorithm::fold) on a group that has members at the same
// places of two or more blocks of one kind, in a tree. Borrows all that it is given; looks at the
// group when first asked. `scratch` must be empty whenever it is asked.
[[nodiscard]] PatternTracer folding_tracer(const Router& router, const Blocks& blocks,
                                           LoadMap& scratch, std::span<const std::uint32_t> ranks);

}  // namespace flyover
