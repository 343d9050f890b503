#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "flyover/simulate/result.hpp"

namespace flyover {

// The terminal summary of a run: time, breakdown, collectives, resources, bottleneck, warnings.
[[nodiscard]] std::string summary(const Result& result, std::size_t width);

// Runs side by side: what each part takes, and by how much the whole differs from the first run.
[[nodiscard]] std::string comparison(const std::vector<std::string>& names,
                                     const std::vector<Result>& results, std::size_t width);

}  // namespace flyover
