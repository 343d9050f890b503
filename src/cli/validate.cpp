#include "flyover/study/validate.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/measurement_reader.hpp"
#include "flyover/report/table.hpp"

namespace flyover::cli {

namespace {

using nlohmann::ordered_json;

constexpr const char* range_note =
    "low_us and high_us: 10 % and 90 % quantiles of measured / predicted in the shipped healthy "
    "sets "
    "of the same link generation, algorithm and size class (wider classes below 20 rows)";

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

ordered_json row_json(const PredictedRow& row) {
  return {{"bytes", row.bytes.count()},
          {"measured_us", or_null(row.measured_us)},
          {"predicted_us", row.predicted_us},
          {"low_us", row.low_us},
          {"high_us", row.high_us},
          {"algorithm", to_string(row.algorithm)},
          {"protocol", to_string(row.protocol)},
          {"channels", row.channels},
          {"bottleneck", row.bottleneck},
          {"counted", row.counted}};
}

ordered_json set_json(const ValidatedSet& set) {
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
  for (const PredictedRow& row : set.rows) out["rows"].push_back(row_json(row));
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
                      {"range", range_note}};
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

std::string json(const Validation& validation) {
  ordered_json out = {{"format", "flyover-validation-1"}, {"flyover", version()}};
  out["sets"] = ordered_json::array();
  for (const ValidatedSet& set : validation.sets) out["sets"].push_back(set_json(set));
  out["summary"] = summary_json(validation.summary);
  return out.dump(2) + '\n';
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

class Validate final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--data", folder_,
                   "Measurements in the shared format; default: the shipped ones")
        ->type_name("DIR");
    app.add_option("--only", only_, "Only sets whose id contains this text")->type_name("TEXT");
    app.add_option("--json", json_, "Write every row and the summary")->type_name("FILE");
  }

  void run(const Terminal& terminal) override {
    OutputFiles files;
    files.claim("--json", json_);
    const HardwareCatalogue catalogue = io::hardware_catalogue();
    const std::vector<Measurement> shipped = io::shipped_measurements();
    std::vector<Measurement> records = folder_.empty() ? shipped : io::load_measurements(folder_);
    if (!only_.empty()) {
      std::erase_if(records,
                    [&](const Measurement& m) { return m.id.find(only_) == std::string::npos; });
      if (records.empty()) {
        throw InputError(fmt::format("--only: no measurement's id contains \"{}\"", only_));
      }
    }
    Validation validation;
    validation.sets = predict(records, catalogue);
    apply_ranges(validation.sets, ResidualRanges(predict(shipped, catalogue)));
    validation.summary = summarise_validation(validation.sets);

    files.put("--json", [&] { return json(validation); });
    if (!terminal.quiet && !files.uses_standard_output()) print(text(validation, terminal.width));
    files.commit();
  }

 private:
  [[nodiscard]] static std::string text(const Validation& validation, std::size_t width) {
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
    out += error_table(summary, width) + '\n';
    if (summary.peaks.sets > 0) out += peak_table(summary, width) + '\n';
    out += fmt::format("{} sets: {} counted, {} not counted, {} skipped\n", summary.sets,
                       summary.counted, summary.apart, summary.skipped);
    return out;
  }

  std::string folder_;
  std::string only_;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<Validate>();
}

}  // namespace flyover::cli
