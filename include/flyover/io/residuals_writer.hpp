#pragma once

#include <string>

#include "flyover/study/residual_ranges.hpp"

namespace flyover::io {

// The file of docs/formats/residuals.md: indented JSON, a line per class, a final newline.
[[nodiscard]] std::string residuals_json(const Residuals& residuals);

}  // namespace flyover::io
