#pragma once

// What `flyover validate --training` prints and writes.

#include <cstddef>
#include <string>
#include <vector>

#include "flyover/study/training_validation.hpp"

namespace flyover::cli {

struct TrainingReport {
  std::vector<ValidatedStep> steps;
  TrainingSummary shipped;  // Predicted with the shipped parameters.
  // Each group with parameters that were fitted without it; absent when none are shipped.
  std::optional<TrainingSummary> left_out;
};

[[nodiscard]] std::string training_json(const TrainingReport& report);
[[nodiscard]] std::string training_text(const TrainingReport& report, std::size_t width);

}  // namespace flyover::cli
