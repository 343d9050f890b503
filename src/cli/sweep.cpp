#include "flyover/study/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/sweep_output.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/sweep_evaluator.hpp"
#include "flyover/io/sweep_export.hpp"
#include "flyover/io/sweep_reader.hpp"
#include "flyover/io/sweep_store.hpp"
#include "flyover/study/adaptive.hpp"
#include "flyover/study/sweep_analysis.hpp"
#include "flyover/study/sweep_config.hpp"
#include "mpi/world.hpp"

namespace flyover::cli {

namespace {

// How far a replay lies from its estimate, at most: docs/models/step.md found 23 %.
constexpr double estimate_margin = 0.3;
constexpr std::uint64_t most_probes = 64;

// The bound's outputs as they were if the step took `factor` times as long.
PointResult slower(const SweepConfig& config, const PointResult& bound, double factor) {
  PointResult result = bound;
  for (const auto& [name, expression] : config.measures) {
    std::erase_if(result.outputs,
                  [&, &measure = name](const auto& entry) { return entry.first == measure; });
  }
  for (auto& [name, value] : result.outputs) {
    auto* number = std::get_if<double>(&value);
    if (number == nullptr) continue;
    if (name == "step_s" || name == "dollars_per_M_tokens") *number *= factor;
    if (name.starts_with("tokens_per_") || name == "mfu") *number /= factor;
  }
  finish_point(config, result, SweepConditions::NotOfTime);
  return result;
}

// A bound is optimistic only for what gets no better as steps get longer.
void check_bounded(const SweepConfig& config, const PointResult& bound, const std::string& file) {
  std::optional<double> before;
  for (const double factor : {1.0, 1.01, 1.5, 4.0, 32.0}) {
    const PointResult row = slower(config, bound, factor);
    if (row.status != PointStatus::Done) return;
    const std::optional<double> value = objective_value(*config.objective, row);
    if (!value) return;
    const bool better =
        before && (config.objective->goal == Goal::Maximise ? *value > *before : *value < *before);
    if (better) {
      throw InputError(Place{file, 0, 0, "/objective"},
                       fmt::format("an adaptive sweep needs an objective that gets no better as "
                                   "steps get longer, which \"{}\" does; evaluate \"estimate\" or "
                                   "\"replay\"",
                                   config.objective->name));
    }
    before = value;
  }
}

// Finds out on a few points, before anything is written, whether the sweep can be run at all.
void probe(const SweepConfig& config, const SweepPoints& points, const io::SweepStudy& study,
           const std::string& file) {
  const std::unique_ptr<PointEvaluator> evaluator = study.make_evaluator();
  const std::uint64_t step = std::max<std::uint64_t>(1, points.size() / most_probes);
  std::optional<std::string> reason;
  bool all_invalid = true;
  for (std::uint64_t number = 0; number < points.size(); number += step) {
    const PointResult row = evaluator->evaluate(points.point(number), Fidelity::Bound);
    if (row.status == PointStatus::Done) {
      if (config.evaluate == SweepEvaluation::Adaptive) check_bounded(config, row, file);
      return;
    }
    all_invalid =
        all_invalid && row.status == PointStatus::Invalid && (!reason || *reason == row.reason);
    if (!all_invalid && config.evaluate != SweepEvaluation::Adaptive) return;
    reason = row.reason;
  }
  if (all_invalid && reason) {
    throw InputError(Place{file, 0, 0, ""}, fmt::format("no point can be evaluated: {}", *reason));
  }
}

// Objectives of adaptive sweeps see outputs alone.
void check_adaptive(const SweepConfig& config, const std::string& file) {
  require(config.objective.has_value(), "an adaptive sweep with an objective");
  const std::vector<std::string> inputs = input_names(config.space);
  for (const std::string& name : config.objective->expression.names()) {
    if (!std::ranges::binary_search(inputs, name)) continue;
    throw InputError(
        Place{file, 0, 0, "/objective"},
        fmt::format("the objective of an adaptive sweep is made of outputs, and \"{}\" is an "
                    "input: make it a value in \"derived\", and name that",
                    name));
  }
}

io::SweepIdentity identity_of(const SweepConfig& config, const io::SweepStudy& study,
                              std::string text, const std::string& file) {
  io::SweepIdentity identity{
      .name = config.name.empty() ? std::filesystem::path(file).stem().string() : config.name,
      .digest = study.digest(),
      .config = std::move(text),
      .version = std::string(version()),
      .seed = config.space.seed,
      .inputs = {},
      .outputs = {}};
  for (const SweepAxis& axis : config.space.axes) identity.inputs.push_back(axis.name);
  for (const auto& [name, expression] : config.space.derived) identity.inputs.push_back(name);
  for (const SweepOutput& output : sweep_outputs()) identity.outputs.emplace_back(output.name);
  for (const auto& [name, expression] : config.measures) identity.outputs.push_back(name);
  return identity;
}

class ProgressLine {
 public:
  explicit ProgressLine(bool wanted) : wanted_(wanted && ::isatty(STDERR_FILENO) == 1) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void show(const SweepProgress& progress) {
    if (!wanted_) return;
    shown_ = true;
    std::fputs(("\r\033[K" + progress_text(progress)).c_str(), stderr);
    std::fflush(stderr);
  }

 private:
  bool wanted_;
  bool shown_ = false;
};

class SweepCommand final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("config", config_, "The sweep: what varies, and what makes a point good")
        ->required()
        ->type_name("CONFIG");
    app.add_option("-o,--output", output_,
                   "The database; default: named as the config, in the current folder")
        ->type_name("RESULTS.db");
    app.add_option("-j,--jobs", jobs_, "Threads; default: all cores")
        ->check(CLI::PositiveNumber)
        ->type_name("N");
    app.add_flag("--resume", resume_, "Go on with what the database has, or begin");
    app.add_flag("--report-only", report_only_, "Run nothing: report what the database has");
    app.add_option("--top", top_, "How many of the best points are shown")
        ->check(CLI::PositiveNumber)
        ->type_name("K");
    app.add_option("--csv", csv_, "Write a row per point")->type_name("FILE");
    app.add_option("--json", json_, "Write all points")->type_name("FILE");
    add_params_option(app, params_);
    add_set_option(app, settings_);
  }

  void run(const Terminal& terminal) override {
    if (report_only_) {
      if (resume_) throw InputError("--report-only runs nothing, so that --resume has no use");
      report(terminal);
      return;
    }
    mpi::World world;
    world.together([&] { run(terminal, world); });
  }

 private:
  [[nodiscard]] std::string database() const {
    if (!output_.empty()) return output_;
    return std::filesystem::path(config_).stem().string() + ".db";
  }

  [[nodiscard]] io::SweepSettings sweep_settings() const {
    std::vector<std::string> texts = settings_;
    io::SweepSettings result;
    result.prices = take_price_settings(texts);
    Settings sorted = sort_settings(texts);
    result.topology = std::move(sorted.topology);
    result.workload = std::move(sorted.workload);
    result.library = std::move(sorted.library);
    result.variables = std::move(sorted.variables);
    result.params = params_;
    return result;
  }

  void run(const Terminal& terminal, mpi::World& world) {
    OutputFiles files;
    if (world.leads()) claim(files);
    io::Document document = io::Document::load(config_);
    SweepConfig config = io::read_sweep_config(document);
    if (top_ > 0) {
      // It decides what an adaptive sweep replays.
      if (config.evaluate == SweepEvaluation::Adaptive) {
        document.apply({"top", std::to_string(top_)});
      }
      config.top = top_;
    }
    if (config.evaluate == SweepEvaluation::Adaptive) check_adaptive(config, config_);
    const io::SweepStudy study(document, config, sweep_settings());
    const SweepPoints points(config.space);
    const MakeEvaluator make = [&] { return study.make_evaluator(); };
    const std::uint32_t threads = world.threads(jobs_);
    if (!world.leads()) {
      world.work(points, make, threads, study.digest());
      return;
    }
    probe(config, points, study, config_);
    const std::string path = database();
    {
      io::SweepStore store(path, identity_of(config, study, document.text(), config_),
                           resume_ ? io::StoreOpening::Resume : io::StoreOpening::Create);
      const std::unique_ptr<PointRunner> runner =
          world.runner(points, make, threads, study.digest());
      evaluate(config, points, *runner, store, terminal);
      store.commit();
    }
    finish(config, path, files, terminal);
  }

  static void evaluate(const SweepConfig& config, const SweepPoints& points, PointRunner& runner,
                       io::SweepStore& store, const Terminal& terminal) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const std::uint64_t before = store.rows();
    const ResultSink sink = [&](const PointResult& result) { store.add(result); };
    ProgressLine line(!terminal.quiet);
    const auto on_progress = [&](const SweepProgress& progress) { line.show(progress); };
    if (config.evaluate == SweepEvaluation::Adaptive) {
      const AdaptiveCounts counts =
          run_adaptive(points, runner, sink, objective_of(config),
                       {.fidelity = Fidelity::Replay,
                        .recall = [&](std::uint64_t number) { return store.row(number); },
                        .on_progress = on_progress});
      spdlog::info(
          "{} points are possible: {} estimates, {} replays, {} excluded by their bound, "
          "{} by their estimate",
          counts.possible, counts.estimates, counts.replays, counts.excluded_by_bound,
          counts.excluded_by_estimate);
    } else {
      run_sweep(points, runner, sink,
                {.fidelity = config.evaluate == SweepEvaluation::Estimate ? Fidelity::Estimate
                                                                          : Fidelity::Replay,
                 .finished = [&](std::uint64_t number) { return store.has(number); },
                 .on_progress = on_progress});
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const std::uint64_t done = store.rows() - before;
    spdlog::info("{} points in {:.2f} s, {:.0f} per second", done, seconds,
                 static_cast<double>(done) / std::max(seconds, 1e-9));
  }

  static AdaptiveObjective objective_of(const SweepConfig& config) {
    const SweepObjective& objective = *config.objective;
    return {.value = [&](const SweepValues& outputs) -> std::optional<double> {
              try {
                return objective.expression.number(outputs);
              } catch (const NoValue&) {
                return std::nullopt;
              }
            },
            .largest = objective.goal == Goal::Maximise,
            .top = config.top,
            .margin = estimate_margin};
  }

  void claim(OutputFiles& files) const {
    files.claim("--csv", csv_);
    files.claim("--json", json_);
  }

  void report(const Terminal& terminal) {
    OutputFiles files;
    claim(files);
    const std::string path = database();
    const std::string text = io::read_sweep(path, [](const PointResult&) {}).config;
    SweepConfig config = io::read_sweep_config(io::Document::parse(path, text));
    if (top_ > 0) config.top = top_;
    finish(config, path, files, terminal);
  }

  void finish(const SweepConfig& config, const std::string& path, OutputFiles& files,
              const Terminal& terminal) const {
    const io::StoredSweep sweep = io::read_sweep(path);
    files.put("--csv", [&] { return io::sweep_csv(sweep); });
    files.put("--json", [&] { return io::sweep_json(sweep); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(sweep_text(config, sweep, terminal.width));
    }
    files.commit();
  }

  std::string config_;
  std::string output_;
  std::uint32_t jobs_ = 0;
  bool resume_ = false;
  bool report_only_ = false;
  std::uint32_t top_ = 0;
  std::string csv_;
  std::string json_;
  std::string params_;
  std::vector<std::string> settings_;
};

}  // namespace

std::unique_ptr<Command> make_sweep() {
  return std::make_unique<SweepCommand>();
}

}  // namespace flyover::cli
