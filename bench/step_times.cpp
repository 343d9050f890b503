// Times of published training steps as the step model has them, for stacks that a fit tries. Stays
// alive between evaluations, so that clusters and their messages are built once. What
// scripts/fit/steps.py asks, so that no equation is written twice.
//
//   flyover_step_times --list    One line per record of quality A or B, tab-separated: id, group,
//                                source, measured seconds ("" when not known), stack, GPU, GPUs,
//                                model, precision, quality, and why it is skipped ("" when it
//                                isn't).
//   flyover_step_times           For every line of standard input one line of seconds,
//                                tab-separated, in the same order; "null" for skipped records.
//
// A line of input is a JSON object of changes: {"nemo-25#/slowdowns/0/gemm": 1.2, "torchtitan":
// {"host": {"layer": "90 us"}}}. Changes do not add up over lines.

#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/training_left_out.hpp"
#include "flyover/io/training_results_reader.hpp"
#include "flyover/study/training_validation.hpp"

namespace {

using namespace flyover;

struct Case {
  TrainingRecord record;
  std::optional<RecordedJob> job;
  std::string skipped;
};

std::vector<Case> cases_of(const TrainingCatalogue& catalogue) {
  std::vector<Case> cases;
  for (TrainingRecord& record : io::shipped_training_results()) {
    if (record.quality == 'C') continue;
    Case& added = cases.emplace_back();
    try {
      added.job = training_job_of(record, catalogue);
    } catch (const InputError& error) {
      added.skipped = error.problem();
    }
    added.record = std::move(record);
  }
  return cases;
}

void list(const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    const TrainingRecord& record = entry.record;
    fmt::print("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", record.id, record.group,
               record.source, record.step_seconds ? fmt::format("{}", *record.step_seconds) : "",
               entry.job ? entry.job->job.stack.name : "", record.hardware.gpu,
               record.hardware.gpus.value_or(0), record.model_name, record.precision,
               record.quality, entry.skipped);
  }
}

io::StackChanges changes_of(const std::string& line) {
  io::StackChanges changes;
  const auto tree = nlohmann::ordered_json::parse(line);
  for (const auto& [place, value] : tree.items()) changes.emplace_back(place, value.dump());
  return changes;
}

void answer(std::vector<Case>& cases, RecordEstimator& estimator, const std::string& line) {
  const std::map<std::string, SoftwareStack> stacks = io::changed_stacks(changes_of(line));
  std::string out;
  for (Case& entry : cases) {
    if (!out.empty()) out += '\t';
    if (!entry.job) {
      out += "null";
      continue;
    }
    entry.job->job.stack = stacks.at(entry.job->job.stack.name);
    try {
      out += fmt::format("{}", to_seconds(estimator.estimate(*entry.job).time));
    } catch (const InputError&) {
      out += "null";
    }
  }
  fmt::print("{}\n", out);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const TrainingCatalogue catalogue = io::training_catalogue();
    std::vector<Case> cases = cases_of(catalogue);
    if (count == 2 && std::string_view(arguments[1]) == "--list") {
      list(cases);
      return 0;
    }
    if (count > 1) {
      std::fputs("usage: flyover_step_times [--list]\n", stderr);
      return 2;
    }
    RecordEstimator estimator(catalogue);
    for (std::string line; std::getline(std::cin, line);) answer(cases, estimator, line);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
