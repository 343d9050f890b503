#include "flyover/study/training_job_of.hpp"

#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "recorded_cluster.hpp"
#include "recorded_layout.hpp"

namespace flyover {

namespace {

// "2024-12 (9dec370)" as "2024-12", "NeMo container 25.09" as "2025-09", "2023" as "2023-12".
std::string date_of(const TrainingRecord& record) {
  static const std::regex month(R"((20\d\d)-(0[1-9]|1[0-2])(?!\d))");
  static const std::regex release(R"((?:^|[^\d.])([12]\d)\.(0[1-9]|1[0-2])(?!\d))");
  static const std::regex year(R"((?:^|\D)(20[12]\d)(?!\d))");
  std::smatch found;
  for (const std::string& text : {record.version, record.framework}) {
    if (std::regex_search(text, found, month)) return found[0];
    if (std::regex_search(text, found, release)) {
      return fmt::format("20{}-{}", found[1].str(), found[2].str());
    }
    if (std::regex_search(text, found, year)) return found[1].str() + "-12";
  }
  return "";
}

}  // namespace

const SoftwareStack& stack_of(const TrainingRecord& record, const TrainingCatalogue& catalogue,
                              std::vector<std::string>& assumptions) {
  const SoftwareStack* near = nullptr;
  const std::string date = date_of(record);
  for (const auto& [name, stack] : catalogue.stacks) {
    if (speaks_for(stack, record.framework, record.version)) return stack;
    const bool same = std::ranges::any_of(stack.frameworks, [&](const FrameworkMatch& match) {
      return record.framework.starts_with(match.name);
    });
    if (!same) continue;
    // The newest that is not newer; without one, the oldest.
    const auto fits = [&](const SoftwareStack& s) { return date.empty() || s.date <= date; };
    const bool better = near == nullptr || (fits(stack) && !fits(*near)) ||
                        (fits(stack) == fits(*near) && fits(stack) == (stack.date > near->date));
    if (better) near = &stack;
  }
  if (near == nullptr) {
    const auto found = catalogue.stacks.find(catalogue.default_stack);
    require(found != catalogue.stacks.end(), "a catalogue with its default stack");
    near = &found->second;
  }
  assumptions.push_back(
      fmt::format("no stack is known of {} {}: {}", record.framework, record.version, near->name));
  return *near;
}

RecordedJob training_job_of(const TrainingRecord& record, const TrainingCatalogue& catalogue) {
  if (record.kind == "chunk") throw InputError("a part of a step, not a step, was measured");
  if (record.kind == "inference") throw InputError("inference, not training");
  if (!record.model) {
    throw InputError(fmt::format("the architecture of {} is not known", record.model_name));
  }
  if (!record.sequence) throw InputError("the sequence length is not stated");
  if (!record.hardware.gpus) throw InputError("the number of GPUs is not stated");

  RecordedJob recorded;
  std::vector<std::string>& assumptions = recorded.assumptions;
  const SoftwareStack& stack = stack_of(record, catalogue, assumptions);
  TrainingJob& job = recorded.job;
  job.stack = stack;
  job.model = *record.model;
  job.sequence = *record.sequence;
  recorded.layout = recorded_layout(record, stack, assumptions);
  job.options = recorded_options(record, stack, assumptions);
  job.overlap = recorded_overlap(record, stack);
  const std::vector<std::string> objections =
      problems(recorded.layout, job.model, job.sequence, *record.hardware.gpus);
  if (!objections.empty()) {
    throw InputError(fmt::format("impossible layout: {}", fmt::join(objections, "; ")));
  }
  const std::string date = date_of(record);
  MeasuredCluster measured =
      recorded_cluster(record, date.empty() ? stack.date : date, catalogue.hardware);
  recorded.cluster = std::move(measured.cluster);
  recorded.library = std::move(measured.library);
  assumptions.insert(assumptions.end(), measured.assumptions.begin(), measured.assumptions.end());
  return recorded;
}

}  // namespace flyover
