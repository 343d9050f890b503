#pragma once

// Sweep files: docs/formats/sweep.md.

#include <span>

#include "flyover/io/document.hpp"
#include "flyover/study/sweep_config.hpp"

namespace flyover::io {

// Throws InputError, with the place and the nearest right word, for what is missing, unknown or
// impossible; names in expressions are checked against the inputs that vary, derived values, and
// `outputs`. Whether paths and prices exist shows when a point is made.
[[nodiscard]] SweepConfig read_sweep_config(const Document& document,
                                            std::span<const SweepOutput> outputs = sweep_outputs());

}  // namespace flyover::io
