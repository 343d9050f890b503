#include "flyover/study/plan.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/plan_output.hpp"
#include "cli/planner.hpp"
#include "cli/training_inputs.hpp"
#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/price_reader.hpp"
#include "flyover/io/training_step.hpp"
#include "flyover/study/step_replay.hpp"

namespace flyover::cli {

namespace {

using Counts = std::vector<std::uint32_t>;

std::uint32_t read_count(std::string_view option, std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0) {
    throw InputError(fmt::format("{}: expected a number of 1 or more, got \"{}\"", option, text));
  }
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] != separator) continue;
    parts.push_back(text.substr(start, at - start));
    start = at + 1;
  }
  return parts;
}

// "512,1024" or "512-4096x2": from 512 on, times 2, up to 4096.
Counts read_gpu_counts(const std::string& text, std::uint32_t all) {
  Counts counts;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::size_t times = part.find('x');
    if (dash == std::string::npos) {
      counts.push_back(read_count("--gpus", part));
      continue;
    }
    if (times == std::string::npos || times < dash) {
      throw InputError(fmt::format(
          "--gpus: a range needs the factor between its numbers, such as 512-4096x2; got \"{}\"",
          part));
    }
    const std::uint32_t first = read_count("--gpus", std::string_view(part).substr(0, dash));
    const std::uint32_t last =
        read_count("--gpus", std::string_view(part).substr(dash + 1, times - dash - 1));
    const std::uint32_t factor = read_count("--gpus", std::string_view(part).substr(times + 1));
    if (factor < 2 || first > last) {
      throw InputError(fmt::format(
          "--gpus: expected a rising range and a factor of 2 or more, got \"{}\"", part));
    }
    for (std::uint64_t n = first; n <= last; n *= factor) {
      counts.push_back(static_cast<std::uint32_t>(n));
    }
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.back() > all) {
    throw InputError(
        fmt::format("--gpus: the topology has {} GPUs, fewer than {}", all, counts.back()));
  }
  return counts;
}

// A list option of sizes, "4,8" or "1-16".
struct SizeOption {
  const char* name;
  const char* help;
  Counts LayoutChoices::*choices;
  std::string text = {};
};
// and one of words.
template <class Word>
std::vector<Word> read_words(std::string_view option, const std::string& text,
                             const std::vector<std::pair<std::string, Word>>& known) {
  std::vector<Word> chosen;
  if (text.empty()) return chosen;
  for (const std::string& word : split(text, ',')) {
    const auto found =
        std::ranges::find_if(known, [&](const auto& each) { return each.first == word; });
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const auto& each : known) names.push_back(each.first);
      throw unknown_name(fmt::format("{}: no such choice as", option), word, names);
    }
    if (std::ranges::find(chosen, found->second) == chosen.end()) chosen.push_back(found->second);
  }
  return chosen;
}

class PlanCommand final : public Command {
 public:
  void add_options(CLI::App& app) override {
    add_job_options(app, job_);
    app.get_option("--model")->required();
    add_topology_option(app, topology_);
    app.add_option("--gpus", gpus_,
                   "How many of its GPUs: 512, 512,1024 or 512-4096x2; default all")
        ->type_name("N");
    app.add_option("--global-batch", global_batch_, "Sequences per step, of all GPUs together")
        ->check(CLI::PositiveNumber)
        ->type_name("B");
    app.add_option("--top", options_.top, "How many layouts to show")
        ->check(CLI::PositiveNumber)
        ->capture_default_str()
        ->type_name("K");
    app.add_option("--objective", objective_, "step, tokens-per-s-per-gpu or cost")
        ->capture_default_str();
    app.add_option("--gpu-hour-price", gpu_hour_,
                   "Dollars that an hour of one GPU costs; default: the shipped list's")
        ->check(CLI::PositiveNumber)
        ->type_name("$");
    app.add_option("--replay", replays_, "So many of the best are also simulated in full")
        ->capture_default_str()
        ->type_name("N");
    app.add_option("--replay-limit", replay_limit_,
                   "while these have no more operations together, of one rank of every stage")
        ->capture_default_str()
        ->type_name("OPERATIONS");
    app.add_flag("--all-variants", options_.every_variant,
                 "Show layouts that differ only in schedule, micro-batch, sharding, recomputation");
    app.add_flag("--show-invalid", show_invalid_, "Say which layouts are impossible, and why");
    app.add_option("--threads", threads_, "Threads; default 2")->check(CLI::PositiveNumber);
    for (SizeOption& size : sizes_) {
      app.add_option(size.name, size.text, size.help)->type_name("LIST")->group("Restrictions");
    }
    const auto words = [&](const char* name, std::string& text, const char* help) {
      app.add_option(name, text, help)->type_name("LIST")->group("Restrictions");
    };
    words("--zero", zero_, "0, 1, 2, 3");
    words("--recompute", recompute_, "none, selective, full");
    words("--schedule", schedule_, "1f1b, interleaved, zb-h1, zb-v, gpipe, dualpipe, dualpipe-v");
    words("--cp-exchange", exchange_, "ring, all-gather, all-to-all");
    app.add_option("--max-cp", max_context_, "Largest context parallel size where --cp says none")
        ->check(CLI::PositiveNumber)
        ->capture_default_str()
        ->group("Restrictions");
    add_library_option(app, library_);
    add_params_option(app, params_);
    add_set_option(app, settings_);
    app.add_option("--json", json_, "Write the plan")->type_name("FILE");
    app.add_option("--csv", csv_, "Write a row for every layout that fits; estimates them all")
        ->type_name("FILE");
  }

  void run(const Terminal& terminal) override {
    OutputFiles files;
    files.claim("--json", json_);
    files.claim("--csv", csv_);
    std::vector<std::string> texts = settings_;
    PriceList prices = io::changed_prices(io::shipped_prices(), take_price_settings(texts));
    Settings settings = sort_settings(texts);
    settings.params = params_;
    refuse_settings(settings.workload, "flyover plan reads no workload");
    const LayoutChoices choices = read_choices();
    PlanReport report;
    report.objective = read_objective();
    report.show_invalid = show_invalid_;
    report.replay_limit = replay_limit_;
    options_.threads = threads_;
    options_.estimate_all = files.wants("--csv");

    const Cluster cluster(topology_, library_, settings);
    const GpuModel& gpu = io::only_gpu_model(cluster.topology);
    TrainingInputs training = load_training(job_, gpu);
    for (const std::string& note : cluster.library.settings.notes) spdlog::warn("{}", note);
    report.inputs = cluster.inputs;
    std::ranges::move(training.inputs, std::back_inserter(report.inputs));
    report.job = training.job;
    report.model = job_.model;
    report.stack = job_.stack.empty() ? training.job.stack.name : job_.stack;
    report.topology = topology_;
    report.gpu = gpu.name;
    report.library = fmt::format("{} {}", cluster.library.name, cluster.library.version);
    report.capacity = gpu.memory;
    set_price(report, std::move(prices));
    report.warnings = cluster.topology.notes;

    const auto all = static_cast<std::uint32_t>(cluster.topology.gpus.size());
    const ClusterTimer own(cluster, training.job, training.kernels);
    PlanRequest request{.gpus = 0,
                        .global_batch = global_batch_,
                        .choices = choices,
                        .options = options_,
                        .replays = replays_,
                        .replay_limit = replay_limit_,
                        .keep_refusals = show_invalid_};
    for (const std::uint32_t n : gpus_.empty() ? Counts{all} : read_gpu_counts(gpus_, all)) {
      request.gpus = n;
      report.plans.push_back(plan_on(cluster, training, own, request));
    }
    files.put("--json", [&] { return plan_json(report); });
    files.put("--csv", [&] { return plan_csv(report); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(plan_text(report, terminal.width));
    }
    files.commit();
  }

 private:
  [[nodiscard]] LayoutChoices read_choices() const {
    LayoutChoices choices;
    for (const SizeOption& size : sizes_) {
      if (size.text.empty()) continue;
      try {
        choices.*size.choices = parse_index_list(size.text, 1U << 20);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", size.name, error.problem()));
      }
    }
    choices.most_context = max_context_;
    using enum Sharding;
    choices.sharding = read_words<Sharding>(
        "--zero", zero_, {{"0", None}, {"1", Optimizer}, {"2", Gradients}, {"3", Parameters}});
    const auto by_name = [](auto... values) {
      return std::vector<std::pair<std::string, std::common_type_t<decltype(values)...>>>{
          {std::string(flyover::to_string(values)), values}...};
    };
    choices.recompute = read_words("--recompute", recompute_,
                                   by_name(Recompute::None, Recompute::Selective, Recompute::Full));
    choices.exchanges = read_words(
        "--cp-exchange", exchange_,
        by_name(ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll));
    std::vector<std::pair<std::string, PipelineSchedule>> schedules;
    for (const PipelineSchedule schedule : all_pipeline_schedules) {
      schedules.emplace_back(flyover::to_string(schedule), schedule);
    }
    schedules.emplace_back("interleaved", PipelineSchedule::Interleaved);
    choices.schedules = read_words("--schedule", schedule_, schedules);
    return choices;
  }

  [[nodiscard]] PlanObjective read_objective() const {
    std::vector<std::pair<std::string, PlanObjective>> known;
    for (const PlanObjective objective :
         {PlanObjective::Step, PlanObjective::Throughput, PlanObjective::Cost}) {
      known.emplace_back(to_string(objective), objective);
    }
    const auto chosen = read_words("--objective", objective_, known);
    if (chosen.size() != 1) throw InputError("--objective: expected one objective");
    return chosen.front();
  }

  void set_price(PlanReport& report, PriceList prices) const {
    if (gpu_hour_ > 0) prices.gpu_hour = gpu_hour_;
    report.gpu_hour = io::gpu_hour(prices, report.gpu);
    report.gpu_hour_from = io::gpu_hour_words(prices, report.gpu);
    if (report.objective == PlanObjective::Cost && !report.gpu_hour) {
      throw InputError(
          fmt::format("--objective cost: {}; state one by --gpu-hour-price", report.gpu_hour_from));
    }
  }

  JobOptions job_;
  std::string topology_;
  std::string gpus_;
  std::uint32_t global_batch_ = 0;
  PlanOptions options_;
  std::string objective_ = "step";
  double gpu_hour_ = 0;
  std::uint32_t replays_ = 3;
  std::uint64_t replay_limit_ = most_replayed_operations;
  std::uint32_t threads_ = 2;
  std::uint32_t max_context_ = LayoutChoices().most_context;
  bool show_invalid_ = false;
  std::vector<SizeOption> sizes_ = {
      {"--tp", "Tensor parallel sizes: 4,8 or 1-8", &LayoutChoices::tensor},
      {"--cp", "Context parallel sizes", &LayoutChoices::context},
      {"--pp", "Pipeline stages", &LayoutChoices::pipeline},
      {"--vp", "Virtual stages per rank of an interleaved schedule",
       &LayoutChoices::virtual_stages},
      {"--ep", "Expert parallel sizes", &LayoutChoices::expert},
      {"--etp", "Tensor parallel sizes within experts", &LayoutChoices::expert_tensor},
      {"--micro-batch", "Sequences of a micro-batch", &LayoutChoices::micro_batch},
      {"--shard-group", "Ranks that share states; 0: all", &LayoutChoices::shard_group},
  };
  std::string zero_;
  std::string recompute_;
  std::string schedule_;
  std::string exchange_;
  std::string library_;
  std::string params_;
  std::vector<std::string> settings_;
  std::string json_;
  std::string csv_;
};

}  // namespace

std::unique_ptr<Command> make_plan() {
  return std::make_unique<PlanCommand>();
}

}  // namespace flyover::cli
