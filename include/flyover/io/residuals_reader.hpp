#pragma once

#include "flyover/io/document.hpp"
#include "flyover/study/residual_ranges.hpp"

namespace flyover::io {

// docs/formats/residuals.md. Throws InputError, with the place, for what does not follow it.
[[nodiscard]] Residuals read_residuals(const Document& document);

// Those of configs/residuals.json, compiled in.
[[nodiscard]] ResidualRanges shipped_ranges();

}  // namespace flyover::io
