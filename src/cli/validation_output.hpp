#pragma once

// What `flyover validate` prints and writes.

#include <optional>
#include <string>

#include "flyover/study/validate.hpp"

namespace flyover::cli {

struct ValidationReport {
  Validation shipped;  // Predicted with the shipped parameters.
  // Each site with the parameters that were fitted without it; absent with --library, whose
  // parameters nobody fitted without a site.
  std::optional<Validation> left_out;
  std::optional<Validation> calibrated;  // Those, calibrated on three rows of each set.
};

[[nodiscard]] std::string validation_json(const ValidationReport& report);
[[nodiscard]] std::string validation_text(const ValidationReport& report, std::size_t width);

}  // namespace flyover::cli
