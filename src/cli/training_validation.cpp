#include "cli/training_validation.hpp"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/training_left_out.hpp"
#include "flyover/io/training_results_reader.hpp"

namespace flyover::cli {

namespace {

// With stacks as they were fitted without the record's group. A group that the fit does not know of
// has nothing to leave out.
void predict_left_out(const io::TrainingLeftOut& left_out,
                      const std::vector<TrainingRecord>& records, TrainingCatalogue catalogue,
                      RecordEstimator& estimator, std::vector<ValidatedStep>& steps) {
  std::map<std::string, std::vector<std::size_t>> by_group;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!steps[i].predicted) continue;
    if (left_out.knows(records[i].group)) {
      by_group[records[i].group].push_back(i);
    } else {
      steps[i].left_out_seconds = to_seconds(steps[i].predicted->time);
    }
  }
  for (const auto& [group, indices] : by_group) {
    catalogue.stacks = left_out.stacks(group);
    std::vector<TrainingRecord> of_group;
    for (const std::size_t i : indices) of_group.push_back(records[i]);
    const std::vector<ValidatedStep> predicted = predict_steps(of_group, catalogue, estimator);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (predicted[k].predicted) {
        steps[indices[k]].left_out_seconds = to_seconds(predicted[k].predicted->time);
      }
    }
  }
}

}  // namespace

TrainingReport validate_training(const std::string& folder, const std::string& only) {
  std::vector<TrainingRecord> records =
      folder.empty() ? io::shipped_training_results() : io::load_training_results(folder);
  if (!only.empty()) {
    std::erase_if(records,
                  [&](const TrainingRecord& r) { return r.id.find(only) == std::string::npos; });
    if (records.empty()) {
      throw InputError(fmt::format("--only: no training result's id contains \"{}\"", only));
    }
  }
  const TrainingCatalogue catalogue = io::training_catalogue();
  RecordEstimator estimator(catalogue);
  TrainingReport report;
  report.steps = predict_steps(records, catalogue, estimator);
  report.shipped = summarise_steps(report.steps, StepFit::Shipped);
  if (const auto left_out = io::TrainingLeftOut::shipped()) {
    predict_left_out(*left_out, records, catalogue, estimator, report.steps);
    report.left_out = summarise_steps(report.steps, StepFit::LeftOut);
  }
  return report;
}

}  // namespace flyover::cli
