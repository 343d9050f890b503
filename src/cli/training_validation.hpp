#pragma once

#include <string>

#include "cli/training_validation_output.hpp"

namespace flyover::cli {

// Predicts the training results of a folder, or the shipped ones when it is "". Only those whose id
// contains `only`; throws InputError when there are none.
[[nodiscard]] TrainingReport validate_training(const std::string& folder, const std::string& only);

}  // namespace flyover::cli
