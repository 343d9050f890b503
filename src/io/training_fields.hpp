#pragma once

// What jobs state and stacks have defaults for, under the same keys.

#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/training_options.hpp"

namespace flyover::io {

// The keys of training options that both have, and of "overlap".
[[nodiscard]] const std::vector<std::string_view>& option_keys();
[[nodiscard]] const std::vector<std::string_view>& overlap_keys();

// Those that `parent` states; the others stay.
void read_options(const Field& parent, TrainingOptions& options);
void read_overlap(const Field& field, Overlap& overlap);

struct RecomputeChoice {
  Recompute recompute = Recompute::None;
  std::vector<std::string> modules;
};
// "none", "selective", "full", or a list of modules.
[[nodiscard]] RecomputeChoice read_recompute(const Field& field);

}  // namespace flyover::io
