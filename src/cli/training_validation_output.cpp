#include "cli/training_validation_output.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/version.hpp"
#include "flyover/report/table.hpp"

namespace flyover::cli {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t listed_errors = 10;  // The largest ones, on the terminal.

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

// Seconds of every part; they add up to the step.
ordered_json breakdown_json(const StepEstimate& estimate) {
  ordered_json out = ordered_json::object();
  for (std::size_t i = 0; i < step_parts; ++i) {
    const auto part = static_cast<StepPart>(i);
    out[std::string(to_string(part))] = to_seconds(estimate[part]);
  }
  return out;
}

ordered_json step_json(const ValidatedStep& step) {
  ordered_json out = {
      {"id", step.id}, {"group", step.group}, {"measured_step_s", or_null(step.measured_seconds)}};
  out["predicted_step_s"] =
      step.predicted ? ordered_json(to_seconds(step.predicted->time)) : ordered_json(nullptr);
  out["left_out_step_s"] = or_null(step.left_out_seconds);
  out["error"] = or_null(step_error(step, StepFit::Shipped));
  out["quality"] = std::string(1, step.quality);
  out["source"] = step.source;
  out["gpu"] = step.gpu;
  out["gpus"] = step.gpus;
  out["model"] = step.model;
  out["precision"] = step.precision;
  out["stack"] = step.stack.empty() ? ordered_json(nullptr) : ordered_json(step.stack);
  out["layout"] = step.layout.empty() ? ordered_json(nullptr) : ordered_json(step.layout);
  out["breakdown"] = nullptr;
  if (step.predicted) {
    out["tokens_per_s_per_gpu"] = step.predicted->tokens_per_second_per_gpu;
    out["mfu"] = step.predicted->mfu;
    out["limit"] = step.predicted->limit();
    out["breakdown"] = breakdown_json(*step.predicted);
  }
  out["assumptions"] = step.assumptions;
  out["skipped"] = or_null(step.skipped);
  return out;
}

ordered_json error_json(const ErrorSummary& errors) {
  return {{"records", errors.rows},
          {"median", errors.median},
          {"percentile_90", errors.percentile90},
          {"signed_median", errors.signed_median}};
}

ordered_json errors_json(const std::map<std::string, ErrorSummary>& by_name) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, errors] : by_name) out[name] = error_json(errors);
  return out;
}

std::size_t of_quality(const std::map<char, std::size_t>& counts, char quality) {
  const auto found = counts.find(quality);
  return found == counts.end() ? 0 : found->second;
}

ordered_json summary_json(const TrainingSummary& summary) {
  ordered_json out = {{"records", summary.records}, {"predicted", summary.predicted}};
  out["by_quality"] = ordered_json::object();
  for (const auto& [quality, records] : summary.records_of_quality) {
    ordered_json& entry = out["by_quality"][std::string(1, quality)];
    entry = {{"records", records},
             {"predicted", of_quality(summary.predicted_of_quality, quality)}};
    const auto errors = summary.by_quality.find(quality);
    entry["error"] =
        errors == summary.by_quality.end() ? ordered_json(nullptr) : error_json(errors->second);
  }
  out["by_source"] = errors_json(summary.by_source);
  out["by_gpu"] = errors_json(summary.by_gpu);
  out["by_model"] = errors_json(summary.by_model);
  out["by_precision"] = errors_json(summary.by_precision);
  out["by_stack"] = errors_json(summary.by_stack);
  out["families"] = ordered_json::array();
  for (const LayoutFamily& family : summary.families) {
    out["families"].push_back({{"name", family.name},
                               {"layouts", family.layouts},
                               {"rank_correlation", family.rank_correlation},
                               {"best_gap", family.best_gap}});
  }
  out["skipped"] = ordered_json::object();
  for (const auto& [reason, count] : summary.skipped) out["skipped"][reason] = count;
  return out;
}

using ByName = std::map<std::string, ErrorSummary> TrainingSummary::*;

void add_errors(const TrainingReport& report, std::string_view kind, ByName of, TextTable& table) {
  for (const auto& [name, errors] : report.shipped.*of) {
    std::vector<std::string> cells = {std::string(kind),
                                      name,
                                      std::to_string(errors.rows),
                                      percent(errors.median),
                                      percent(errors.percentile90),
                                      signed_percent(errors.signed_median)};
    if (report.left_out) {
      const auto left_out = ((*report.left_out).*of).find(name);
      if (left_out != ((*report.left_out).*of).end()) {
        cells.push_back(percent(left_out->second.median));
        cells.push_back(percent(left_out->second.percentile90));
        cells.push_back(signed_percent(left_out->second.signed_median));
      }
    }
    table.rows.push_back(std::move(cells));
  }
}

std::string error_table(const TrainingReport& report, std::size_t width) {
  TextTable table{
      {{"step time, quality A", true}, {"", true}, {"records"}, {"median"}, {"90th"}, {"signed"}},
      {}};
  if (report.left_out) {
    for (const char* title : {"left out", "90th", "signed"}) table.columns.push_back({title});
  }
  add_errors(report, "source", &TrainingSummary::by_source, table);
  add_errors(report, "gpu", &TrainingSummary::by_gpu, table);
  add_errors(report, "model", &TrainingSummary::by_model, table);
  add_errors(report, "precision", &TrainingSummary::by_precision, table);
  add_errors(report, "stack", &TrainingSummary::by_stack, table);
  return render(table, width);
}

std::string family_table(const TrainingSummary& summary, std::size_t width) {
  TextTable table{
      {{"layouts of", true}, {"layouts"}, {"rank correlation"}, {"predicted best, over best"}}, {}};
  for (const LayoutFamily& family : summary.families) {
    table.rows.push_back({family.name, std::to_string(family.layouts),
                          fmt::format("{:.2f}", family.rank_correlation),
                          signed_percent(family.best_gap)});
  }
  return render(table, width);
}

std::string largest_errors(const std::vector<ValidatedStep>& steps, std::size_t width) {
  std::vector<std::pair<double, const ValidatedStep*>> errors;
  for (const ValidatedStep& step : steps) {
    if (step.quality != 'A') continue;
    if (const auto error = step_error(step, StepFit::Shipped)) errors.emplace_back(*error, &step);
  }
  std::ranges::stable_sort(
      errors, [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  errors.resize(std::min(errors.size(), listed_errors));
  TextTable table{
      {{"largest errors", true}, {"error"}, {"measured s"}, {"predicted s"}, {"limit", true}}, {}};
  for (const auto& [error, step] : errors) {
    table.rows.push_back({step->id, signed_percent(error),
                          fmt::format("{:.3f}", *step->measured_seconds),
                          fmt::format("{:.3f}", to_seconds(step->predicted->time)),
                          std::string(step->predicted->limit())});
  }
  return render(table, width);
}

std::string quality_table(const TrainingReport& report, std::size_t width) {
  TextTable table{{{"step time", true},
                   {"quality", true},
                   {"records"},
                   {"predicted"},
                   {"median"},
                   {"90th"},
                   {"signed"}},
                  {}};
  const auto add = [&](const std::string& name, const TrainingSummary& summary) {
    for (const auto& [quality, records] : summary.records_of_quality) {
      std::vector<std::string> cells = {
          name, std::string(1, quality), std::to_string(records),
          std::to_string(of_quality(summary.predicted_of_quality, quality))};
      const auto errors = summary.by_quality.find(quality);
      if (errors != summary.by_quality.end()) {
        cells.push_back(percent(errors->second.median));
        cells.push_back(percent(errors->second.percentile90));
        cells.push_back(signed_percent(errors->second.signed_median));
      }
      table.rows.push_back(std::move(cells));
    }
  };
  add("shipped parameters", report.shipped);
  if (report.left_out) add("its group left out of the fit", *report.left_out);
  return render(table, width);
}

}  // namespace

std::string training_json(const TrainingReport& report) {
  ordered_json out = {{"flyover", std::string(version())}};
  out["results"] = ordered_json::array();
  for (const ValidatedStep& step : report.steps) out["results"].push_back(step_json(step));
  out["summary"] = summary_json(report.shipped);
  if (report.left_out) out["summary"]["left_out"] = summary_json(*report.left_out);
  return out.dump(1) + '\n';
}

std::string training_text(const TrainingReport& report, std::size_t width) {
  std::string out;
  const TrainingSummary& summary = report.shipped;
  if (!summary.skipped.empty()) {
    TextTable skipped{{{"skipped", true}, {"records"}}, {}};
    for (const auto& [reason, count] : summary.skipped) {
      skipped.rows.push_back({reason, std::to_string(count)});
    }
    out += render(skipped, width) + '\n';
  }
  if (!summary.by_source.empty()) {
    out += error_table(report, width) + '\n' + largest_errors(report.steps, width) + '\n';
  }
  const TrainingSummary& honest = report.left_out ? *report.left_out : summary;
  if (!honest.families.empty()) out += family_table(honest, width) + '\n';
  out += quality_table(report, width) + '\n';
  out += fmt::format("{} results: {} predicted, {} skipped\n", summary.records, summary.predicted,
                     summary.records - summary.predicted);
  return out;
}

}  // namespace flyover::cli
