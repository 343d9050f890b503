#include "cli/validation_output.hpp"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/version.hpp"
#include "flyover/report/table.hpp"

namespace flyover::cli {

namespace {

using nlohmann::ordered_json;

constexpr const char* range_note =
    "low_us and high_us: 80 % of measurements of the same link generation, algorithm and size lie "
    "between (docs/models/uncertainty.md); shipped sets are judged by other sites' rows only";

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

ordered_json error_json(const ErrorSummary& errors) {
  return {{"rows", errors.rows},
          {"median", errors.median},
          {"percentile_90", errors.percentile90},
          {"signed_median", errors.signed_median}};
}

ordered_json sizes_json(const std::vector<ErrorSummary>& by_size) {
  ordered_json out = ordered_json::object();
  for (std::size_t i = 0; i < by_size.size(); ++i) {
    out[std::string(size_classes()[i].name)] = error_json(by_size[i]);
  }
  return out;
}

// Null where no row could be in its range.
ordered_json coverage_json(const ValidationSummary& summary) {
  const auto share = [](double covered, std::size_t rows) {
    return rows == 0 ? ordered_json(nullptr) : ordered_json(covered);
  };
  ordered_json out = {{"all", share(summary.coverage, summary.rows)}};
  for (std::size_t i = 0; i < summary.coverage_by_size.size(); ++i) {
    out[std::string(size_classes()[i].name)] =
        share(summary.coverage_by_size[i], summary.by_size[i].rows);
  }
  return out;
}

ordered_json peak_summary_json(const PeakSummary& peaks) {
  ordered_json out = {
      {"sets", peaks.sets}, {"median", peaks.median}, {"within_5_percent", peaks.within_5_percent}};
  out["rank_correlation"] =
      peaks.rank_correlation ? ordered_json(*peaks.rank_correlation) : ordered_json(nullptr);
  return out;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

// `left_out` is the same row predicted without its site, or null.
ordered_json row_json(const PredictedRow& row, const PredictedRow* left_out) {
  ordered_json out = {{"bytes", row.bytes.count()},
                      {"measured_us", or_null(row.measured_us)},
                      {"predicted_us", row.predicted_us},
                      {"low_us", row.low_us},
                      {"high_us", row.high_us},
                      {"algorithm", to_string(row.algorithm)},
                      {"protocol", to_string(row.protocol)},
                      {"channels", row.channels},
                      {"bottleneck", row.bottleneck},
                      {"counted", row.counted}};
  if (left_out != nullptr) out["left_out_us"] = left_out->predicted_us;
  return out;
}

ordered_json set_json(const ValidatedSet& set, const ValidatedSet* left_out) {
  ordered_json out = {{"id", set.id},
                      {"health", to_string(set.health)},
                      {"collective", set.collective},
                      {"site", set.site},
                      {"gpu", set.gpu},
                      {"n_gpus", set.gpus},
                      {"links", set.generation},
                      {"library", set.library},
                      {"stack", set.stack}};
  out["rows"] = ordered_json::array();
  for (std::size_t i = 0; i < set.rows.size(); ++i) {
    out["rows"].push_back(
        row_json(set.rows[i], left_out == nullptr ? nullptr : &left_out->rows.at(i)));
  }
  out["peak"] = nullptr;
  if (set.peak) {
    out["peak"] = {{"measured_GBps", set.peak->measured_GBps},
                   {"predicted_GBps", set.peak->predicted_GBps}};
  }
  out["error"] =
      set.skipped ? ordered_json(nullptr) : error_json(summarise_errors(all_errors(set)));
  out["assumptions"] = set.assumptions;
  out["apart"] = or_null(set.apart);
  out["skipped"] = or_null(set.skipped);
  return out;
}

ordered_json summary_json(const ValidationSummary& summary) {
  ordered_json out = {{"sets", summary.sets},   {"counted", summary.counted},
                      {"apart", summary.apart}, {"skipped", summary.skipped},
                      {"rows", summary.rows},   {"uncounted_rows", summary.uncounted_rows},
                      {"range", range_note},    {"coverage", coverage_json(summary)}};
  out["error"] = error_json(summary.overall);
  out["by_size"] = sizes_json(summary.by_size);
  out["by_collective"] = ordered_json::object();
  for (const auto& [name, by_size] : summary.by_collective) {
    out["by_collective"][name] = sizes_json(by_size);
  }
  out["peak"] = peak_summary_json(summary.peaks);
  out["peak_by_collective"] = ordered_json::object();
  for (const auto& [name, peaks] : summary.peaks_by_collective) {
    out["peak_by_collective"][name] = peak_summary_json(peaks);
  }
  return out;
}

std::vector<std::string> peak_cells(const ValidatedSet& set) {
  if (!set.peak) return {"", "", ""};
  return {fmt::format("{:.1f}", set.peak->measured_GBps),
          fmt::format("{:.1f}", set.peak->predicted_GBps),
          signed_percent(set.peak->predicted_GBps / set.peak->measured_GBps - 1)};
}

// Medians by size class, then all of the set.
std::vector<std::string> set_cells(const ValidatedSet& set) {
  std::vector<std::string> cells = {set.id};
  for (std::size_t size = 0; size < size_classes().size(); ++size) {
    const ErrorSummary errors = summarise_errors(all_errors(set, size));
    cells.push_back(errors.rows == 0 ? "" : percent(errors.median));
  }
  const ErrorSummary all = summarise_errors(all_errors(set));
  cells.push_back(all.rows == 0 ? "" : percent(all.percentile90));
  cells.push_back(all.rows == 0 ? "" : signed_percent(all.signed_median));
  const std::vector<std::string> peak = peak_cells(set);
  cells.insert(cells.end(), peak.begin(), peak.end());
  return cells;
}

// One that is not counted: fewer figures, and why.
std::vector<std::string> apart_cells(const ValidatedSet& set) {
  const ErrorSummary all = summarise_errors(all_errors(set));
  std::vector<std::string> cells = {set.id, all.rows == 0 ? "" : signed_percent(all.signed_median)};
  const std::vector<std::string> peak = peak_cells(set);
  cells.insert(cells.end(), peak.begin(), peak.end());
  cells.push_back(*set.apart);
  return cells;
}

// How well the model does on what it was fitted to, on sites it has not seen, and on sites of which
// it has seen three rows.
std::string outlook_table(const ValidationReport& report, std::size_t width) {
  TextTable table{{{"median error of time", true}}, {}};
  for (const SizeClass& size : size_classes()) table.columns.push_back({std::string(size.name)});
  table.columns.push_back({"90th, larger"});
  table.columns.push_back({"peaks within 5 %"});
  const auto add = [&](const std::string& name, const ValidationSummary& summary) {
    std::vector<std::string> cells = {name};
    for (const ErrorSummary& errors : summary.by_size) {
      cells.push_back(errors.rows == 0 ? "" : percent(errors.median));
    }
    const ErrorSummary& large = summary.by_size.back();
    cells.push_back(large.rows == 0 ? "" : percent(large.percentile90));
    cells.push_back(summary.peaks.sets == 0 ? "" : percent(summary.peaks.within_5_percent));
    table.rows.push_back(std::move(cells));
  };
  add("shipped parameters", report.shipped.summary);
  if (report.left_out) add("its site left out of the fit", report.left_out->summary);
  if (report.calibrated) add("left out, then three rows", report.calibrated->summary);
  return render(table, width);
}

std::string error_table(const ValidationSummary& summary, std::size_t width) {
  TextTable table{
      {{"error of time", true}, {"size", true}, {"rows"}, {"median"}, {"90th"}, {"signed"}}, {}};
  const auto add = [&](const std::string& name, std::string_view size, const ErrorSummary& errors) {
    if (errors.rows == 0) return;
    table.rows.push_back({name, std::string(size), std::to_string(errors.rows),
                          percent(errors.median), percent(errors.percentile90),
                          signed_percent(errors.signed_median)});
  };
  const auto add_classes = [&](const std::string& name, const std::vector<ErrorSummary>& by_size) {
    for (std::size_t i = 0; i < by_size.size(); ++i) add(name, size_classes()[i].name, by_size[i]);
  };
  add("all", "all", summary.overall);
  add_classes("all", summary.by_size);
  for (const auto& [name, by_size] : summary.by_collective) add_classes(name, by_size);
  return render(table, width);
}

std::string peak_table(const ValidationSummary& summary, std::size_t width) {
  TextTable table{{{"peak bus bandwidth", true},
                   {"sets"},
                   {"median error"},
                   {"within 5 %"},
                   {"rank correlation"}},
                  {}};
  const auto add = [&](const std::string& name, const PeakSummary& peaks) {
    if (peaks.sets == 0) return;
    table.rows.push_back(
        {name, std::to_string(peaks.sets), percent(peaks.median), percent(peaks.within_5_percent),
         peaks.rank_correlation ? fmt::format("{:.3f}", *peaks.rank_correlation) : "-"});
  };
  add("all", summary.peaks);
  for (const auto& [name, peaks] : summary.peaks_by_collective) add(name, peaks);
  return render(table, width);
}

}  // namespace

std::string validation_json(const ValidationReport& report) {
  ordered_json out = {{"format", "flyover-validation-1"}, {"flyover", version()}};
  out["sets"] = ordered_json::array();
  const std::vector<ValidatedSet>& sets = report.shipped.sets;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    out["sets"].push_back(
        set_json(sets[i], report.left_out ? &report.left_out->sets.at(i) : nullptr));
  }
  out["summary"] = summary_json(report.shipped.summary);
  const auto add = [&](const char* name, const std::optional<Validation>& validation) {
    out["summary"][name] = nullptr;
    if (!validation) return;
    const ValidationSummary& summary = validation->summary;
    out["summary"][name] = {{"rows", summary.rows},
                            {"error", error_json(summary.overall)},
                            {"by_size", sizes_json(summary.by_size)},
                            {"peak", peak_summary_json(summary.peaks)}};
  };
  add("left_out", report.left_out);
  if (report.left_out) {
    out["summary"]["left_out"]["coverage"] = coverage_json(report.left_out->summary);
  }
  add("calibrated_on_three_rows", report.calibrated);
  return out.dump(2) + '\n';
}

std::string validation_text(const ValidationReport& report, std::size_t width) {
  const Validation& validation = report.shipped;
  TextTable counted{{{"median error of time", true},
                     {"<=32K"},
                     {"<=1M"},
                     {"<=32M"},
                     {"larger"},
                     {"90th"},
                     {"signed"},
                     {"peak GB/s"},
                     {"predicted"},
                     {"error"}},
                    {}};
  TextTable apart{
      {{"not counted", true}, {"signed"}, {"peak GB/s"}, {"predicted"}, {"error"}, {"why", true}},
      {}};
  TextTable skipped{{{"skipped", true}, {"why", true}}, {}};
  for (const ValidatedSet& set : validation.sets) {
    if (set.skipped) {
      skipped.rows.push_back({set.id, *set.skipped});
      continue;
    }
    if (set.apart) {
      apart.rows.push_back(apart_cells(set));
    } else {
      counted.rows.push_back(set_cells(set));
    }
  }
  std::string out;
  for (const TextTable* table : {&counted, &apart, &skipped}) {
    if (!table->rows.empty()) out += render(*table, width) + '\n';
  }
  const ValidationSummary& summary = validation.summary;
  out += outlook_table(report, width) + '\n';
  out += error_table(summary, width) + '\n';
  if (summary.peaks.sets > 0) out += peak_table(summary, width) + '\n';
  if (summary.rows > 0) {
    const ValidationSummary& honest = report.left_out ? report.left_out->summary : summary;
    out += fmt::format("{} of the counted rows lie in their range{}, of 80 % that should\n",
                       percent(honest.coverage), report.left_out ? " when left out" : "");
  }
  out += fmt::format("{} sets: {} counted, {} not counted, {} skipped\n", summary.sets,
                     summary.counted, summary.apart, summary.skipped);
  return out;
}

}  // namespace flyover::cli
