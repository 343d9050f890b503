#include "cli/sweep_output.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/report/table.hpp"
#include "flyover/study/sweep_analysis.hpp"

namespace flyover::cli {

namespace {

constexpr std::size_t most_reasons = 5;  // Of a status.
constexpr std::size_t most_of_front = 20;
constexpr std::size_t most_effects = 12;

// To four digits; whole numbers and words as they are.
std::string shown(const SweepValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.4g}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return to_string(value);
}

std::string shown(const PointResult& row, const std::string& name) {
  const SweepValue* value = find(row.inputs, name);
  if (value == nullptr) value = find(row.outputs, name);
  return value == nullptr ? "-" : shown(*value);
}

// Reasons that differ in numbers alone are one.
std::string kind_of(const std::string& reason) {
  std::string kind;
  bool in_number = false;
  for (const char c : reason) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) kind += c;
    if (digit && !in_number) kind += '#';
    in_number = digit;
  }
  return kind;
}

class Report {
 public:
  Report(const SweepConfig& config, const io::StoredSweep& sweep, std::size_t width)
      : config_(config),
        rows_(sweep.rows),
        width_(width) {
    for (const SweepAxis& axis : config.space.axes) inputs_.push_back(axis.name);
    for (const auto& [name, expression] : config.space.derived) inputs_.push_back(name);
  }

  std::string text() {
    counts();
    best();
    front();
    effects();
    answers();
    notes();
    return std::move(text_);
  }

 private:
  // --- Counts ---

  void counts() {
    struct Kind {
      std::uint64_t points = 0;
      const std::string* example = nullptr;
    };
    std::map<PointStatus, std::uint64_t> by_status;
    std::map<PointStatus, std::map<std::string, Kind>> reasons;
    for (const PointResult& row : rows_) {
      ++by_status[row.status];
      if (row.status == PointStatus::Done || row.status == PointStatus::Excluded) continue;
      Kind& kind = reasons[row.status][kind_of(row.reason)];
      if (kind.points++ == 0) kind.example = &row.reason;
    }
    std::vector<std::string> parts;
    for (const auto& [status, points] : by_status) {
      parts.push_back(fmt::format("{} {}", points, to_string(status)));
    }
    text_ += fmt::format("{}{} points: {}\n", config_.name.empty() ? "" : config_.name + ": ",
                         rows_.size(), fmt::join(parts, ", "));
    if (config_.evaluate == SweepEvaluation::Adaptive) {
      text_ += fmt::format(
          "replays saved: {} of {}, excluded because they cannot be among the {} "
          "best\n",
          by_status[PointStatus::Excluded],
          by_status[PointStatus::Excluded] + by_status[PointStatus::Done], config_.top);
    }
    for (const auto& [status, kinds] : reasons) {
      std::vector<const Kind*> sorted;
      for (const auto& [words, kind] : kinds) sorted.push_back(&kind);
      std::ranges::stable_sort(sorted,
                               [](const Kind* a, const Kind* b) { return a->points > b->points; });
      TextTable table{{{std::string(to_string(status))}, {"because", true}}, {}};
      for (std::size_t i = 0; i < std::min(sorted.size(), most_reasons); ++i) {
        table.rows.push_back({std::to_string(sorted[i]->points), *sorted[i]->example});
      }
      text_ += '\n' + render(table, 0);
      if (sorted.size() > most_reasons) {
        text_ += fmt::format("and {} other reasons\n", sorted.size() - most_reasons);
      }
    }
  }

  // --- Tables of points ---

  // Columns for these values; those that no row has are left out.
  void points(const std::vector<std::size_t>& rows, const std::vector<std::string>& first) {
    std::vector<std::string> names = first;
    const auto add = [&](const std::string& name) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    for (const std::string& name : inputs_) add(name);
    constexpr std::array outputs = {"step_s",   "time_us",    "tokens_per_s_per_gpu",
                                    "mfu",      "memory_GiB", "cost_per_hour",
                                    "power_kW", "bottleneck"};
    for (const char* name : outputs) add(name);
    for (const auto& [name, expression] : config_.measures) add(name);
    std::erase_if(names, [&](const std::string& name) {
      return std::ranges::all_of(rows,
                                 [&](std::size_t row) { return shown(rows_[row], name) == "-"; });
    });
    TextTable table{{{"point"}}, {}};
    for (const std::string& name : names) {
      const bool words = std::ranges::any_of(rows, [&](std::size_t row) {
        const SweepValue* value = find(rows_[row].inputs, name);
        if (value == nullptr) value = find(rows_[row].outputs, name);
        return value != nullptr && std::holds_alternative<std::string>(*value);
      });
      table.columns.push_back({name, words});
    }
    for (const std::size_t row : rows) {
      std::vector<std::string> cells = {std::to_string(rows_[row].number)};
      for (const std::string& name : names) cells.push_back(shown(rows_[row], name));
      table.rows.push_back(std::move(cells));
    }
    text_ += render(table, width_);
  }

  static std::string words(const SweepObjective& objective) {
    return fmt::format("{} {}", objective.goal == Goal::Maximise ? "most" : "least",
                       objective.name);
  }

  // Outputs and inputs that it names, as columns.
  static std::vector<std::string> names_of(std::span<const SweepObjective> objectives) {
    std::vector<std::string> names;
    for (const SweepObjective& objective : objectives) {
      for (const std::string& name : objective.expression.names()) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    return names;
  }

  void best() {
    if (!config_.objective) return;
    const std::vector<RankedPoint> ranked = best_points(rows_, *config_.objective, config_.top);
    text_ += fmt::format("\nbest: {}\n", words(*config_.objective));
    if (ranked.empty()) {
      text_ += "no point has it\n";
      return;
    }
    std::vector<std::size_t> rows;
    for (const RankedPoint& point : ranked) rows.push_back(point.row);
    points(rows, names_of({&*config_.objective, 1}));
  }

  void front() {
    if (config_.pareto.empty()) return;
    std::vector<std::size_t> rows = pareto_front(rows_, config_.pareto);
    std::vector<std::string> goals;
    for (const SweepObjective& objective : config_.pareto) goals.push_back(words(objective));
    text_ += fmt::format("\nPareto front, {} points: {}\n", rows.size(), fmt::join(goals, ", "));
    if (rows.empty()) return;
    const std::size_t all = rows.size();
    rows.resize(std::min(all, most_of_front));
    points(rows, names_of(config_.pareto));
    if (all > rows.size()) text_ += fmt::format("and {} more\n", all - rows.size());
  }

  void effects() {
    if (!config_.objective) return;
    const SweepSensitivity all = sweep_sensitivity(rows_, *config_.objective);
    if (all.rows < 2) return;
    text_ += fmt::format("\nwhich input matters for {}: {} points, mean {:.4g}, deviation {:.4g}\n",
                         config_.objective->name, all.rows, all.mean, all.deviation);
    TextTable table{{{"input", true},
                     {"share"},
                     {"by chance"},
                     {"lowest mean"},
                     {"at", true},
                     {"highest mean"},
                     {"at", true}},
                    {}};
    for (const InputEffect& effect : all.effects) {
      if (effect.groups < 2 || table.rows.size() == most_effects) continue;
      table.rows.push_back({effect.name, fmt::format("{:.1f} %", 100 * effect.share),
                            fmt::format("{:.1f} %", 100 * effect.chance),
                            fmt::format("{:.4g}", effect.lowest_mean), effect.lowest_at,
                            fmt::format("{:.4g}", effect.highest_mean), effect.highest_at});
    }
    text_ += render(table, width_);
  }

  void answers() {
    for (const SweepQuestion& question : config_.find) {
      const SweepAnswer found = answer(rows_, question);
      text_ += fmt::format("\n{}: ", found.name);
      if (!found.best) {
        text_ += fmt::format("none of {} points\n", found.considered);
        continue;
      }
      text_ += fmt::format("{} of {} points hold; {} is {:.4g}\n", found.holding, found.considered,
                           words(question.objective), found.best->value);
      points({found.best->row}, names_of({&question.objective, 1}));
    }
  }

  void notes() {
    std::set<std::string> missing;
    for (const PointResult& row : rows_) {
      const SweepValue* value = find(row.outputs, "not_priced");
      if (value != nullptr) missing.insert(shown(*value));
    }
    if (missing.empty()) return;
    text_ += "\nnot known, so that what needs it is left out:\n";
    for (const std::string& each : missing) text_ += fmt::format("  {}\n", each);
  }

  const SweepConfig& config_;
  std::span<const PointResult> rows_;
  std::size_t width_;
  std::vector<std::string> inputs_;
  std::string text_;
};

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(std::ceil(seconds), 1e9));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string sweep_text(const SweepConfig& config, const io::StoredSweep& sweep, std::size_t width) {
  return Report(config, sweep, width).text();
}

std::string progress_text(const SweepProgress& progress) {
  std::string text = fmt::format("{} of {} points", progress.done, progress.total);
  if (progress.per_second > 0) text += fmt::format(", {:.3g}/s", progress.per_second);
  if (progress.done < progress.total && progress.per_second > 0) {
    text += fmt::format(", {} left", duration_text(progress.left_seconds));
  }
  return text;
}

}  // namespace flyover::cli
