#pragma once

// The step model against published training results: what it predicts for every record, and how
// far it is off. docs/formats/training-results.md explains each figure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/layout/step_estimate.hpp"
#include "flyover/study/training_job_of.hpp"
#include "flyover/study/validate.hpp"

namespace flyover {

// Estimates jobs of records. Clusters, with their routes and messages, are built once each and
// shared by all jobs on them: the first job of a cluster costs its edges, later ones a millisecond
// or less. Copies what it needs of the catalogue. Not safe to share between threads.
class RecordEstimator {
 public:
  explicit RecordEstimator(const TrainingCatalogue& catalogue);
  ~RecordEstimator();
  RecordEstimator(RecordEstimator&&) noexcept;

  // Throws InputError when kernels or GPU cannot do what the job asks for.
  [[nodiscard]] StepEstimate estimate(const RecordedJob& job);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct ValidatedStep {
  std::string id;
  std::string group;
  std::string source;
  std::string kind;
  std::string model;  // As the record names it.
  std::string gpu;    // As the record names it.
  std::uint32_t gpus = 0;
  std::string precision;
  std::string stack;
  char quality = 'C';
  std::optional<double> measured_seconds;
  std::optional<StepEstimate> predicted;
  // With parameters that were fitted without the record's group.
  std::optional<double> left_out_seconds;
  std::string layout;    // In one line: "tp 8, pp 4, ...".
  std::string family;    // What records of one family share.
  double sequences = 0;  // Per step.
  std::vector<std::string> assumptions;
  std::optional<std::string> skipped;  // The reason, when nothing is predicted.
};

// Every record, in order. Nothing that a record says is an error: what cannot be predicted is
// skipped.
[[nodiscard]] std::vector<ValidatedStep> predict_steps(std::span<const TrainingRecord> records,
                                                       const TrainingCatalogue& catalogue,
                                                       RecordEstimator& estimator);

// Layouts, with their precisions, of one model, sequence, GPU, number of GPUs and kind of run, four
// or more of them. Records of one layout count once, with their median time per sequence.
struct LayoutFamily {
  std::string name;
  std::size_t layouts = 0;
  double rank_correlation = 0;  // Spearman's, of measured and predicted time.
  // By how much the layout that is predicted best is measured slower than the measured best.
  double best_gap = 0;
};

// Which prediction is judged.
enum class StepFit : std::uint8_t { Shipped, LeftOut };

struct TrainingSummary {
  std::size_t records = 0;
  std::size_t predicted = 0;
  std::map<char, std::size_t> records_of_quality;
  std::map<char, std::size_t> predicted_of_quality;
  std::map<std::string, std::size_t> skipped;  // By reason.
  // Errors of the step's time, of records whose time is known. By quality; of quality A by the
  // rest.
  std::map<char, ErrorSummary> by_quality;
  std::map<std::string, ErrorSummary> by_source;
  std::map<std::string, ErrorSummary> by_gpu;
  std::map<std::string, ErrorSummary> by_model;
  std::map<std::string, ErrorSummary> by_precision;
  std::map<std::string, ErrorSummary> by_stack;
  std::vector<LayoutFamily> families;  // Of quality A, by name.
};
[[nodiscard]] TrainingSummary summarise_steps(std::span<const ValidatedStep> steps, StepFit fit);

// predicted / measured - 1; nothing where either is missing.
[[nodiscard]] std::optional<double> step_error(const ValidatedStep& step, StepFit fit);

}  // namespace flyover
