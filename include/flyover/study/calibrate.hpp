#pragma once

// The few parameters that a site differs in, from tables that were measured on it.
//
// The fit is the most probable point under priors whose widths are how far sites differ, with
// residuals log(predicted / measured) of which outliers count little. The uncertainty of a
// parameter is that of the posterior's normal approximation there. docs/models/calibration.md has
// the equations, the priors and their reasons.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/study/measurement.hpp"
#include "flyover/study/validate.hpp"

namespace flyover {

struct CalibrationRow {
  Bytes bytes;
  double us = 0;          // Above zero.
  double resolution = 0;  // Half of the last printed digit, as a share of the time.
};

// One measured table of one collective on one group.
struct CalibrationTable {
  std::string name;  // For messages and the params file.
  CollectiveOp op = CollectiveOp::AllReduce;
  std::string dtype;                 // As CollectiveCall has it.
  std::vector<std::uint32_t> ranks;  // GPU indices in group order, two or more.
  std::uint32_t root = 0;            // Position in `ranks`.
  std::vector<CalibrationRow> rows;
};
// The rows of a record that can be compared, in order of size.
[[nodiscard]] CalibrationTable calibration_table(const Measurement& record, CollectiveOp op,
                                                 std::string dtype,
                                                 std::vector<std::uint32_t> ranks);

// How far sites differ in what the rules do not know of.
struct SitePrior {
  const SiteParameterInfo* parameter = nullptr;
  double width = 0;  // Standard deviation: of the logarithm; seconds for `launch`.
  std::string_view reason;
};
// In the order of site_parameters().
[[nodiscard]] std::span<const SitePrior> site_priors();

struct Calibration {
  SiteParameters site;
  std::vector<ErrorSummary> before;  // Errors of the rows' times, as size_classes().
  std::vector<ErrorSummary> after;
};

// The model has the fitted parameters afterwards; what it had before does not matter. Throws
// InputError when there are no rows, and what CostModel::choose throws. Milliseconds for a table.
Calibration calibrate(CostModel& model, std::span<const CalibrationTable> tables);

// Those rows of a table that ascends in size: smallest, middle, largest; all when there are no
// more.
[[nodiscard]] std::vector<std::size_t> three_rows(std::size_t rows);
// Calibrates on these rows of the table alone, which must ascend in size.
Calibration calibrate_on_three_rows(CostModel& model, const CalibrationTable& table);

}  // namespace flyover
