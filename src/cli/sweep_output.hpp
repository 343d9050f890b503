#pragma once

// What `flyover sweep` prints of a sweep's rows.

#include <cstddef>
#include <string>

#include "flyover/io/sweep_store.hpp"
#include "flyover/study/sweep_config.hpp"

namespace flyover::cli {

// Counts, reasons, the best points, the front that no point beats, what matters, answers. The same
// text for the same rows.
[[nodiscard]] std::string sweep_text(const SweepConfig& config, const io::StoredSweep& sweep,
                                     std::size_t width);

// "12,345 of 100,000 points, 812/s, 1 min 48 s left"
[[nodiscard]] std::string progress_text(const SweepProgress& progress);

}  // namespace flyover::cli
