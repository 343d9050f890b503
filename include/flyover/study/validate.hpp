#pragma once

// The model against measurements: what it predicts for every row of every record, and how far it is
// off. docs/models/validation.md explains each figure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/cost/protocol.hpp"
#include "flyover/study/measured_cluster.hpp"
#include "flyover/study/measurement.hpp"

namespace flyover {

// Sites differ by size, so errors are reported by class.
struct SizeClass {
  std::string_view name;  // "up to 32 KiB", "up to 1 MiB", "up to 32 MiB", "larger"
  Bytes last;
};
[[nodiscard]] std::span<const SizeClass> size_classes();
[[nodiscard]] std::size_t size_class(Bytes bytes);

struct PredictedRow {
  Bytes bytes;
  std::optional<double> measured_us;
  // False when there is no time, or only a bandwidth with too few digits (5 % or more lie between
  // two of them).
  bool counted = false;
  double predicted_us = 0;
  double low_us = 0;  // The range in which 80 % of such measurements lie (residual_ranges.hpp).
  double high_us = 0;
  AlgorithmId algorithm = AlgorithmId::Ring;
  Protocol protocol = Protocol::Simple;
  std::uint32_t channels = 0;
  std::string bottleneck;
};

struct Peak {
  double measured_GBps = 0;   // NOLINT(readability-identifier-naming): largest bus bandwidth of a
  double predicted_GBps = 0;  // NOLINT(readability-identifier-naming)  row that is counted.
};

struct ValidatedSet {
  std::string id;
  std::string site;
  Health health = Health::Unknown;
  std::string collective;  // As the record names it where we do not know the word.
  std::uint32_t gpus = 0;
  std::string gpu;            // As the record names it.
  std::string gpu_model;      // As the catalogue does.
  std::uint32_t domains = 0;  // Over which the GPUs spread.
  std::string generation;     // "nvlink4", or "nvlink4 + ndr" across domains.
  std::string library;
  std::string stack;  // Of the library, as the record says that its calls were started.
  std::vector<PredictedRow> rows;
  std::vector<std::string> assumptions;
  std::optional<std::string> skipped;  // The reason, when there are no rows.
  // The reason why errors do not count: "degraded", "health is not known", other kernels, ...
  std::optional<std::string> apart;
  std::optional<Peak> peak;  // When a counted row has 128 MiB or more.
};

struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;        // Of |predicted / measured - 1|.
  double percentile90 = 0;  // Of the same.
  double signed_median = 0;
};
[[nodiscard]] ErrorSummary summarise_errors(const std::vector<double>& relative_errors);

struct PeakSummary {
  std::size_t sets = 0;
  double median = 0;
  double within_5_percent = 0;             // Share of the sets.
  std::optional<double> rank_correlation;  // Of peaks across systems; needs 3 sets.
};

struct ValidationSummary {
  std::size_t sets = 0;
  std::size_t counted = 0;
  std::size_t apart = 0;
  std::size_t skipped = 0;
  std::size_t rows = 0;
  // Of counted sets: for want of digits, or because they were calibrated on.
  std::size_t uncounted_rows = 0;
  // Rows that count and whose time lies in their range, as shares; by size class as size_classes().
  double coverage = 0;
  std::vector<double> coverage_by_size;
  ErrorSummary overall;
  std::vector<ErrorSummary> by_size;                               // As size_classes().
  std::map<std::string, std::vector<ErrorSummary>> by_collective;  // By size class each.
  PeakSummary peaks;
  std::map<std::string, PeakSummary> peaks_by_collective;
};

struct Validation {
  std::vector<ValidatedSet> sets;  // In the order of the records, every one.
  ValidationSummary summary;
};

// What is known of a record's site before its rows are predicted.
enum class SiteFit : std::uint8_t {
  None,
  // Its smallest, middle and largest row (calibrate_on_three_rows), which then do not count. A
  // record without further rows is skipped.
  ThreeRows
};

// Predicts every record. Nothing that a record says is an error: what cannot be predicted is
// skipped.
[[nodiscard]] std::vector<ValidatedSet> predict(std::span<const Measurement> records,
                                                const HardwareCatalogue& catalogue,
                                                SiteFit fit = SiteFit::None);
[[nodiscard]] ValidationSummary summarise_validation(std::span<const ValidatedSet> sets);

// Whether its errors say something about the model: neither skipped nor apart.
[[nodiscard]] bool counts(const ValidatedSet& set);
// Relative errors of the rows that count; of all sizes, or of one class.
[[nodiscard]] std::vector<double> counted_errors(const ValidatedSet& set,
                                                 std::optional<std::size_t> size_class = {});
// Of a set, also one that stands apart.
[[nodiscard]] std::vector<double> all_errors(const ValidatedSet& set,
                                             std::optional<std::size_t> size_class = {});

}  // namespace flyover
