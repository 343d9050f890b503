#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/planner.hpp"
#include "cli/step_comparison.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/version.hpp"
#include "flyover/io/result_reader.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/io/training_step.hpp"
#include "flyover/report/summary.hpp"
#include "flyover/study/run_range.hpp"

namespace flyover::cli {

namespace {

std::string results_json(const std::vector<std::string>& files,
                         const std::vector<std::string>& names,
                         const std::vector<Result>& results) {
  nlohmann::ordered_json out = {{"format", "flyover-comparison-1"}, {"flyover", version()}};
  out["results"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    out["results"].push_back({{"file", files[i]},
                              {"name", names[i]},
                              {"time_us", to_microseconds(result.time)},
                              {"low_us", to_microseconds(result.low)},
                              {"high_us", to_microseconds(result.high)},
                              {"validity", result.validity}});
  }
  out["pairs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t j = i + 1; j < results.size(); ++j) {
      const Difference pair = difference(results[i], results[j]);
      out["pairs"].push_back({{"first", i},
                              {"second", j},
                              {"difference_us", to_microseconds(pair.time)},
                              {"margin_us", to_microseconds(pair.margin)},
                              {"within_error", pair.within_error}});
    }
  }
  return out.dump(2) + '\n';
}

class Compare final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("files", files_,
                   "Results of `flyover run --json`, plans of `flyover plan --json`, or training "
                   "workloads with one -t or more")
        ->type_name("FILE");
    app.add_option("-w,--workload", files_, "A training workload; the same as naming it")
        ->allow_extra_args(false)
        ->type_name("FILE");
    app.add_option("-t,--topology", topologies_, "A cluster to set side by side; several times")
        ->allow_extra_args(false)
        ->type_name("TOPOLOGY");
    add_job_options(app, job_);
    app.add_option("--global-batch", global_batch_, "With -m: sequences per step")
        ->check(CLI::PositiveNumber)
        ->type_name("B");
    app.add_option("--gpu-hour-price", gpu_hour_, "Dollars that an hour of one GPU costs")
        ->check(CLI::PositiveNumber)
        ->type_name("$");
    add_library_option(app, library_);
    add_set_option(app, settings_);
    app.add_option("--json", json_, "Write every pair's difference")->type_name("FILE");
  }

  void run(const Terminal& terminal) override {
    OutputFiles files;
    files.claim("--json", json_);
    const std::string text =
        topologies_.empty() ? compare_files(files, terminal) : compare_steps(files, terminal);
    if (!terminal.quiet && !files.uses_standard_output()) print(text);
    files.commit();
  }

 private:
  static std::string name_of(const std::string& file) {
    return std::filesystem::path(file).stem().string();
  }

  // Results or plans, which were made elsewhere.
  std::string compare_files(OutputFiles& files, const Terminal& terminal) const {
    if (!job_.model.empty()) {
      throw InputError("flyover compare: --model needs clusters to plan for: two or more -t");
    }
    if (files_.size() < 2) {
      throw InputError(fmt::format("flyover compare: expected two or more results, got {}",
                                   files_.empty() ? "none" : "one"));
    }
    std::vector<std::string> names;
    std::vector<Result> results;
    std::vector<StepSide> sides;
    for (const std::string& file : files_) {
      const io::Document document = io::Document::load(file);
      if (io::is_training(document)) {
        throw InputError(
            fmt::format("{}: a training workload needs a cluster to run on: -t TOPOLOGY", file));
      }
      names.push_back(name_of(file));
      if (is_plan(document)) {
        sides.push_back(read_plan_side(document, names.back()));
      } else {
        results.push_back(io::read_result(document));
      }
      if (!sides.empty() && !results.empty()) {
        throw InputError(
            fmt::format("{} and {}: results and plans cannot be compared with each "
                        "other",
                        files_.front(), file));
      }
    }
    if (!sides.empty()) return finish(files, terminal, sides);
    files.put("--json", [&] { return results_json(files_, names, results); });
    return comparison(names, results, terminal.width);
  }

  // Layouts on a cluster, one layout on clusters, or the best layout on each of them.
  std::string compare_steps(OutputFiles& files, const Terminal& terminal) const {
    const Settings settings = sort_settings(settings_);
    refuse_settings(settings.workload, "flyover compare takes workloads as they are");
    if (files_.empty() == job_.model.empty()) {
      throw InputError(
          "flyover compare -t: expected either training workloads or a --model to plan for");
    }
    const std::size_t count = topologies_.size() * std::max<std::size_t>(files_.size(), 1);
    if (count < 2) {
      throw InputError("flyover compare: expected two or more workloads or clusters, got one");
    }
    std::vector<StepSide> sides;
    for (const std::string& topology : topologies_) {
      const Cluster cluster(topology, library_, settings);
      if (files_.empty()) sides.push_back(planned(cluster, topology));
      for (const std::string& file : files_) {
        const io::Document document = io::Document::load(file);
        if (!io::is_training(document)) {
          throw InputError(fmt::format(
              "{}: with -t, expected a training workload ({{\"training\": ...}})", file));
        }
        std::string name = topologies_.size() == 1 ? name_of(file) : topology;
        if (topologies_.size() > 1 && files_.size() > 1) {
          name = fmt::format("{} on {}", name_of(file), topology);
        }
        sides.push_back(side_of(document, cluster, std::move(name), price()));
      }
    }
    return finish(files, terminal, sides);
  }

  [[nodiscard]] StepSide planned(const Cluster& cluster, const std::string& topology) const {
    const GpuModel& gpu = io::only_gpu_model(cluster.topology);
    const TrainingInputs training = load_training(job_, gpu);
    const ClusterTimer own(cluster, training.job, training.kernels);
    PlanRequest request;
    request.gpus = static_cast<std::uint32_t>(cluster.topology.gpus.size());
    request.global_batch = global_batch_;
    request.options.top = 1;
    PlanReport report;
    report.job = training.job;
    report.gpu = gpu.name;
    report.library = fmt::format("{} {}", cluster.library.name, cluster.library.version);
    report.capacity = gpu.memory;
    report.gpu_hour = price();
    report.plans.push_back(plan_on(cluster, training, own, request));
    return side_of(report, topology);
  }

  [[nodiscard]] std::optional<double> price() const {
    if (gpu_hour_ > 0) return gpu_hour_;
    return std::nullopt;
  }

  static std::string finish(OutputFiles& files, const Terminal& terminal,
                            const std::vector<StepSide>& sides) {
    files.put("--json", [&] { return sides_json(sides); });
    return sides_text(sides, terminal.width);
  }

  std::string json_;
  std::vector<std::string> files_;
  std::vector<std::string> topologies_;
  JobOptions job_;
  std::uint32_t global_batch_ = 0;
  double gpu_hour_ = 0;
  std::string library_;
  std::vector<std::string> settings_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace flyover::cli
