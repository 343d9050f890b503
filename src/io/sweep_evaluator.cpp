#include "flyover/io/sweep_evaluator.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/params.hpp"
#include "flyover/io/price_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/io/training_step.hpp"
#include "flyover/io/workload_reader.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/study/cluster_cost.hpp"
#include "flyover/study/step_replay.hpp"
#include "io/beside.hpp"
#include "io/sweep_setups.hpp"

namespace flyover::io {

namespace {

// As flyover run has it: of one rank of every stage.
constexpr std::uint64_t most_operations = 5'000'000;
constexpr std::size_t remembered_topologies = 16;
constexpr std::size_t remembered_prices = 16;

// What an axis sets.
enum class Target : std::uint8_t {
  TopologyName,
  WorkloadName,
  LibraryName,
  Topology,
  Workload,
  Layout,  // Of the workload, what a job does not depend on.
  Library,
  Variable,
  Price
};

struct AxisUse {
  const SweepAxis* axis = nullptr;
  Target target{};
  std::string path;  // Below the first part.
};

// StepParts do not depend on these parts of a training workload.
bool is_of_layout(std::string_view path) {
  constexpr std::array keys = {"training.layout", "training.schedule", "training.recompute",
                               "training.micro_batch", "training.global_batch"};
  return std::ranges::any_of(keys, [&](std::string_view key) {
    return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.');
  });
}

AxisUse use_of(const SweepAxis& axis) {
  const std::size_t dot = axis.path.find('.');
  const std::string first = axis.path.substr(0, dot);
  const bool whole = dot == std::string::npos;
  std::string rest = whole ? std::string() : axis.path.substr(dot + 1);
  Target target = Target::Price;
  if (first == "topology") target = whole ? Target::TopologyName : Target::Topology;
  if (first == "library") target = whole ? Target::LibraryName : Target::Library;
  if (first == "nccl") target = Target::Variable;
  if (first == "workload") {
    target = whole ? Target::WorkloadName : is_of_layout(rest) ? Target::Layout : Target::Workload;
  }
  return {&axis, target, std::move(rest)};
}

bool is_name(Target target) {
  return target == Target::TopologyName || target == Target::WorkloadName ||
         target == Target::LibraryName;
}

const std::string& name_of(const SweepAxis& axis, const SweepValue& value) {
  const auto* name = std::get_if<std::string>(&value);
  if (name == nullptr) {
    throw InputError(
        fmt::format("\"{}\" expects names or files, got {}", axis.path, to_string(value)));
  }
  return *name;
}

// What the documents become at one point.
struct PointInputs {
  std::string topology_name;
  std::string workload_name;
  std::string library_name;
  std::vector<Setting> topology;
  std::vector<Setting> workload;
  std::vector<Setting> library;
  std::vector<Setting> variables;
  std::vector<Setting> prices;
  std::string job;  // Settings of the workload that the job depends on.
};

std::string words_of(const std::string& name, std::span<const Setting> settings) {
  std::string words = name;
  for (const Setting& setting : settings) {
    words += fmt::format("\n{}={}", setting.path, setting.value);
  }
  return words;
}

// In the reader's words, with the place in the document but not in its text: lines of a preset are
// nobody's.
std::string reason_of(const InputError& error) {
  constexpr std::string_view set = "--set ";
  const Place& place = error.place();
  std::string where = place.pointer;
  if (where.empty() && place.file.starts_with(set)) where = place.file.substr(set.size());
  return where.empty() ? error.problem() : fmt::format("{}: {}", where, error.problem());
}

double us(Duration duration) {
  return to_seconds(duration) * 1e6;
}

// Outputs, kept in order.
class Outputs {
 public:
  explicit Outputs(SweepValues& values) : values_(values) {}

  void set(std::string_view name, SweepValue value) {
    const auto at = std::ranges::lower_bound(
        values_, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
    values_.emplace(at, std::string(name), std::move(value));
  }
  void set(std::string_view name, const std::optional<double>& value) {
    if (value) set(name, SweepValue(*value));
  }
  void set_count(std::string_view name, std::uint64_t count) {
    set(name, SweepValue(static_cast<std::int64_t>(count)));
  }

 private:
  SweepValues& values_;
};

}  // namespace

struct SweepStudy::Impl {
  Impl(const Document& document, const SweepConfig& of, SweepSettings base)
      : config(of),
        settings(std::move(base)),
        file(document.name()),
        prices(shipped_prices()) {
    for (const SweepAxis& axis : config.space.axes) axes.push_back(use_of(axis));
    Document all = document.copy();
    std::size_t part = 0;
    const auto note = [&](std::string_view role, const Document& read) {
      all.apply({fmt::format("inputs.{}", part++), fmt::format("\"{} {}\"", role, read.digest())});
    };
    for (const std::string& name : names(Target::TopologyName, config.topology)) {
      if (topologies.contains(name)) continue;
      Document read = topology_document(path_of(name));
      for (const Setting& setting : settings.topology) read.apply(setting);
      note("topology", read);
      topologies.emplace(name, std::move(read));
    }
    for (const std::string& name : names(Target::WorkloadName, config.workload)) {
      if (workloads.contains(name)) continue;
      Document read = Document::load(path_of(name));
      for (const Setting& setting : settings.workload) read.apply(setting);
      note("workload", read);
      note_model(read, note);
      workloads.emplace(name, std::move(read));
    }
    for (const std::string& name : names(Target::LibraryName, config.library)) {
      if (name.empty()) continue;
      Document read = library_document(path_of(name));
      for (const Setting& setting : settings.library) read.apply(setting);
      note("library", read);
    }
    for (const Setting& setting : settings.variables)
      all.apply({"nccl." + setting.path, setting.value});
    if (!settings.params.empty()) {
      const Document read = Document::load(settings.params);
      params = read_params(read);
      note("params", read);
    }
    read_all_prices(note);
    digest = all.digest();
  }

  [[nodiscard]] std::vector<std::string> names(Target target, const std::string& fixed) const {
    std::vector<std::string> all;
    for (const AxisUse& use : axes) {
      if (use.target != target) continue;
      // Off, it keeps what the sweep says; which then it must.
      for (const SweepValue& value : use.axis->values) all.push_back(name_of(*use.axis, value));
    }
    if (all.empty()) all.push_back(fixed);
    return all;
  }

  [[nodiscard]] std::string path_of(const std::string& name) const { return beside(file, name); }

  // A model in a file of its own is read at every point, and changes results.
  template <class Note>
  static void note_model(const Document& workload, const Note& note) {
    const Field root = workload.root();
    if (!root.has("training") || !root["training"].has("model")) return;
    const Field model = root["training"]["model"];
    if (!model.is_string()) return;
    const std::string path = beside(workload.name(), model.text());
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) note("model", Document::load(path));
  }

  template <class Note>
  void read_all_prices(const Note& note) {
    if (!config.prices_file.empty()) {
      const Document read = Document::load(path_of(config.prices_file));
      prices = read_prices(read, std::move(prices));
      note("prices", read);
    }
    std::vector<Setting> changes;
    for (const auto& [path, value] : config.prices) changes.push_back({path, to_string(value)});
    changes.insert(changes.end(), settings.prices.begin(), settings.prices.end());
    prices = changed_prices(std::move(prices), changes);
    Document applied = Document::parse("prices", "{}");
    for (const Setting& setting : changes) applied.apply(setting);
    note("prices", applied);
  }

  [[nodiscard]] PointInputs inputs_of(const SweepPoint& point) const {
    PointInputs inputs{.topology_name = config.topology,
                       .workload_name = config.workload,
                       .library_name = config.library,
                       .topology = {},
                       .workload = {},
                       .library = settings.library,
                       .variables = settings.variables,
                       .prices = {},
                       .job = {}};
    for (const AxisUse& use : axes) {
      const SweepValue* value = find(point.inputs, use.axis->name);
      if (value == nullptr) continue;
      switch (use.target) {
        case Target::TopologyName:
          inputs.topology_name = name_of(*use.axis, *value);
          continue;
        case Target::WorkloadName:
          inputs.workload_name = name_of(*use.axis, *value);
          continue;
        case Target::LibraryName:
          inputs.library_name = name_of(*use.axis, *value);
          continue;
        default:
          break;
      }
      Setting setting{use.path, setting_of(*use.axis, *value)};
      // Variables of a library are words as its environment has them, not JSON.
      const auto* word = std::get_if<std::string>(value);
      if (use.target == Target::Variable && word != nullptr) setting.value = *word;
      if (use.target == Target::Workload) {
        inputs.job += fmt::format("\n{}={}", setting.path, setting.value);
      }
      list_of(inputs, use.target).push_back(std::move(setting));
    }
    inputs.job.insert(0, inputs.workload_name);
    return inputs;
  }

  static std::vector<Setting>& list_of(PointInputs& inputs, Target target) {
    switch (target) {
      case Target::Topology:
        return inputs.topology;
      case Target::Library:
        return inputs.library;
      case Target::Variable:
        return inputs.variables;
      case Target::Price:
        return inputs.prices;
      default:
        return inputs.workload;
    }
  }

  [[nodiscard]] static Document document_of(const std::map<std::string, Document>& documents,
                                            const std::string& name,
                                            std::span<const Setting> settings) {
    const auto found = documents.find(name);
    if (found == documents.end()) {
      throw InputError("it has neither a value of its own nor one that the sweep states");
    }
    Document document = found->second.copy();
    for (const Setting& setting : settings) document.apply(setting);
    return document;
  }

  const SweepConfig& config;
  SweepSettings settings;
  std::string file;
  std::vector<AxisUse> axes;
  std::map<std::string, Document> topologies;  // With the settings of every point.
  std::map<std::string, Document> workloads;
  PriceList prices;
  std::optional<ParamsFile> params;
  std::string digest;
};

namespace {

class Evaluator final : public PointEvaluator {
 public:
  explicit Evaluator(const SweepStudy::Impl& study) : study_(study) {}

  PointResult evaluate(const SweepPoint& point, Fidelity fidelity) override {
    PointResult result;
    result.number = point.number;
    result.inputs = point.inputs;
    if (!point.refused.empty()) {
      result.status = PointStatus::Refused;
      result.reason = point.refused;
      return result;
    }
    try {
      work(study_.inputs_of(point), fidelity, result);
    } catch (const InputError& error) {
      fail(result, PointStatus::Invalid, reason_of(error));
    } catch (const SimulationError& error) {
      fail(result, PointStatus::Failed, error.what());
    }
    return result;
  }

 private:
  static void fail(PointResult& result, PointStatus status, std::string reason) {
    result.status = status;
    result.reason = std::move(reason);
    result.outputs.clear();
  }

  [[nodiscard]] SweepConditions conditions(Fidelity fidelity) const {
    const Fidelity last =
        study_.config.evaluate == SweepEvaluation::Estimate ? Fidelity::Estimate : Fidelity::Replay;
    return fidelity == last ? SweepConditions::All : SweepConditions::NotOfTime;
  }

  void work(const PointInputs& inputs, Fidelity fidelity, PointResult& result) {
    TopologySetup& on = topologies_.get(words_of(inputs.topology_name, inputs.topology), [&] {
      return std::make_unique<TopologySetup>(
          SweepStudy::Impl::document_of(study_.topologies, inputs.topology_name, inputs.topology));
    });
    const Document workload =
        SweepStudy::Impl::document_of(study_.workloads, inputs.workload_name, inputs.workload);
    const ClusterCost cost = price(on, inputs, result);
    const auto gpus = static_cast<std::uint32_t>(on.topology.gpus.size());
    if (is_training(workload)) {
      train(read_training(workload, gpus, on.topology.gpu_model(0).architecture, files_), on,
            inputs, cost, fidelity, result);
    } else {
      run(workload, gpus, on, inputs, fidelity, result);
    }
    if (result.status == PointStatus::Done) {
      finish_point(study_.config, result, conditions(fidelity));
    }
  }

  // What does not depend on time.
  ClusterCost price(const TopologySetup& on, const PointInputs& inputs, PointResult& result) {
    const PriceList& prices = prices_.get(words_of({}, inputs.prices), [&] {
      return std::make_unique<PriceList>(changed_prices(study_.prices, inputs.prices));
    });
    ClusterCost cost = cluster_cost(on.inventory, prices);
    Outputs out(result.outputs);
    out.set_count("gpus", on.inventory.all_gpus());
    out.set_count("nodes", on.inventory.all_nodes());
    out.set_count("switches", on.inventory.switches);
    out.set_count("cables", on.inventory.cables);
    out.set("cost_per_hour", cost.per_hour);
    out.set("capital_dollars", cost.capital);
    out.set("network_dollars", cost.network_capital);
    out.set("power_kW", cost.power_kW);
    if (!cost.missing.empty()) {
      out.set("not_priced", SweepValue(fmt::format("{}", fmt::join(cost.missing, "; "))));
    }
    return cost;
  }

  ClusterSetup& cluster(TopologySetup& on, const PointInputs& inputs) const {
    const std::string words =
        words_of(words_of(inputs.library_name, inputs.library), inputs.variables);
    return on.clusters.get(words, [&] {
      const std::string name = inputs.library_name.empty() ? default_library(on.topology)
                                                           : study_.path_of(inputs.library_name);
      Library library = load_library_input(name, inputs.library, inputs.variables).library;
      if (study_.params) apply_params(library, *study_.params, study_.settings.params);
      return std::make_unique<ClusterSetup>(on.topology, std::move(library));
    });
  }

  void train(const TrainingWorkload& training, TopologySetup& on, const PointInputs& inputs,
             const ClusterCost& cost, Fidelity fidelity, PointResult& result) {
    if (!on.unlike_gpus().empty()) throw InputError(on.unlike_gpus());
    if (fidelity != Fidelity::Replay && !on.slow_gpus().empty()) throw InputError(on.slow_gpus());
    const GpuModel& gpu = on.topology.bought_gpu_model(0);
    const Layout& layout = training.layout;
    TrainingOptions options = training.job.options;
    suit_gpu(options, gpu);
    const MemoryUse memory =
        memory_use(training.job.model, layout, options, training.job.sequence, gpu.memory);
    Outputs out(result.outputs);
    const auto bytes = static_cast<double>(memory.stages[memory.fullest].total().count());
    out.set("memory_GiB", SweepValue(bytes / (1 << 30)));
    out.set("fits_in_memory", SweepValue(memory.fits));
    // A layout that is refused for it is not timed.
    finish_point(study_.config, result, SweepConditions::NotOfTime);
    if (result.status != PointStatus::Done) return;

    ClusterSetup& on_library = cluster(on, inputs);
    const JobSetup& job =
        jobs_.get(inputs.job, training.job, gpu, on.topology.nodes[NodeId{0}].gpus);
    const MessageTimes& times = on_library.times(job);
    double step = 0;
    if (fidelity == Fidelity::Replay) {
      step = replay(on, on_library, job, times, layout, result);
      if (result.status != PointStatus::Done) return;
    } else {
      const StepEstimator estimator(job.parts, times);
      if (fidelity == Fidelity::Estimate) {
        step = write(estimator.estimate(layout), out);
      } else {
        step = to_seconds(estimator.bound(layout));
      }
    }
    rates(job.parts, layout, step, cost, out);
  }

  // Seconds of the step. Its parts are written, which add up to it.
  static double write(const StepEstimate& estimate, Outputs& out) {
    const auto seconds = [&](StepPart part) { return to_seconds(estimate[part]); };
    double exposed = 0;
    for (const StepPart part : exposed_parts) {
      exposed += seconds(part);
      out.set(exposed_name(part), SweepValue(seconds(part)));
    }
    out.set("exposed_communication_s", SweepValue(exposed));
    out.set("compute_s", SweepValue(seconds(StepPart::Compute) + seconds(StepPart::Recompute)));
    out.set("bubble_s", SweepValue(seconds(StepPart::Bubble)));
    out.set("optimizer_s", SweepValue(seconds(StepPart::Optimizer)));
    out.set("other_s", SweepValue(seconds(StepPart::Host) + seconds(StepPart::Straggling)));
    out.set("bottleneck", SweepValue(std::string(estimate.limit())));
    return to_seconds(estimate.time);
  }

  static double replay(const TopologySetup& on, const ClusterSetup& cluster, const JobSetup& job,
                       const MessageTimes& times, const Layout& layout, PointResult& result) {
    StepReplay step =
        replay_step(on.topology, cluster.cost, job.parts, times, layout, most_operations);
    if (!step.time) {
      fail(
          result, PointStatus::Failed,
          fmt::format("the programs of its {} stages have {} operations, more than the {} that are "
                      "replayed",
                      layout.pipeline, step.operations, most_operations));
      return 0;
    }
    Outputs out(result.outputs);
    const Breakdown& parts = step.breakdown;
    std::array<double, step_parts> exposed{};
    for (const auto& [family, time] : parts.exposed_us) {
      exposed.at(static_cast<std::size_t>(part_of(family))) += time / 1e6;
    }
    double all = 0;
    for (const StepPart part : exposed_parts) {
      const double time = exposed.at(static_cast<std::size_t>(part));
      all += time;
      out.set(exposed_name(part), SweepValue(time));
    }
    const double time = to_seconds(*step.time);
    const double compute = parts.compute_us / 1e6;
    const double bubble = parts.bubble_us / 1e6;
    out.set("exposed_communication_s", SweepValue(all));
    out.set("compute_s", SweepValue(compute));
    out.set("bubble_s", SweepValue(bubble));
    out.set("other_s", SweepValue(std::max(0.0, time - all - compute - bubble)));
    out.set("bottleneck", SweepValue(std::move(step.bottleneck)));
    out.set("time_us", SweepValue(us(step.replayed)));
    return time;
  }

  static constexpr std::array exposed_parts = {
      StepPart::Tensor, StepPart::Context, StepPart::Expert, StepPart::Pipeline, StepPart::Data};
  static std::string_view exposed_name(StepPart part) {
    constexpr std::array<std::string_view, exposed_parts.size()> names = {
        "exposed_tp_s", "exposed_cp_s", "exposed_ep_s", "exposed_pp_s", "exposed_dp_s"};
    const auto* const at = std::ranges::find(exposed_parts, part);
    return names.at(static_cast<std::size_t>(at - exposed_parts.begin()));
  }
  // Families of groups are named by their kinds; sends are between stages.
  static StepPart part_of(const std::string& family) {
    for (std::size_t kind = 0; kind < group_kinds; ++kind) {
      if (family == to_string(static_cast<GroupKind>(kind))) {
        return exposed_part(static_cast<GroupKind>(kind));
      }
    }
    return StepPart::Pipeline;
  }

  static void rates(const StepParts& parts, const Layout& layout, double step,
                    const ClusterCost& cost, Outputs& out) {
    const double tokens =
        static_cast<double>(layout.global_batch) * parts.job().sequence / step;  // Per second.
    out.set("step_s", SweepValue(step));
    out.set("tokens_per_s", SweepValue(tokens));
    out.set("tokens_per_s_per_gpu", SweepValue(tokens / ranks(layout)));
    out.set("mfu", SweepValue(model_flops_utilisation(parts, layout, step)));
    if (cost.per_hour) {
      const double dollars = *cost.per_hour / 3600;  // Per second.
      out.set("dollars_per_M_tokens", SweepValue(dollars / tokens * 1e6));
      if (dollars > 0) out.set("tokens_per_dollar", SweepValue(tokens / dollars));
    }
    if (cost.power_kW && *cost.power_kW > 0) {
      out.set("tokens_per_joule", SweepValue(tokens / (*cost.power_kW * 1e3)));
    }
  }

  void run(const Document& document, std::uint32_t gpus, TopologySetup& on,
           const PointInputs& inputs, Fidelity fidelity, PointResult& result) const {
    const Workload workload = read_workload(document, gpus);
    finish_point(study_.config, result, SweepConditions::NotOfTime);
    if (result.status != PointStatus::Done || fidelity == Fidelity::Bound) return;
    const Result run = flyover::replay(on.topology, cluster(on, inputs).cost, workload).result;
    Outputs out(result.outputs);
    double exposed = 0;
    for (const auto& [family, time] : run.breakdown.exposed_us) exposed += time;
    out.set("time_us", SweepValue(us(run.time)));
    out.set("compute_s", SweepValue(run.breakdown.compute_us / 1e6));
    out.set("exposed_communication_s", SweepValue(exposed / 1e6));
    out.set("bubble_s", SweepValue(run.breakdown.bubble_us / 1e6));
    out.set("bottleneck", SweepValue(run.bottleneck));
    if (run.collectives.size() == 1 && run.collectives.front().busbw_GBps > 0) {
      out.set("busbw_GBps", SweepValue(run.collectives.front().busbw_GBps));
    }
  }

  const SweepStudy::Impl& study_;
  Recent<std::string, TopologySetup> topologies_{remembered_topologies};
  Recent<std::string, PriceList> prices_{remembered_prices};
  JobSetups jobs_;
  TrainingFiles files_;
};

}  // namespace

SweepStudy::SweepStudy(const Document& document, const SweepConfig& config, SweepSettings settings)
    : impl_(std::make_unique<Impl>(document, config, std::move(settings))) {}
SweepStudy::~SweepStudy() = default;

const std::string& SweepStudy::digest() const {
  return impl_->digest;
}

std::unique_ptr<PointEvaluator> SweepStudy::make_evaluator() const {
  return std::make_unique<Evaluator>(*impl_);
}

std::vector<std::string> SweepStudy::settings_of(const SweepPoint& point) const {
  std::vector<std::string> settings;
  for (const AxisUse& use : impl_->axes) {
    const SweepValue* value = find(point.inputs, use.axis->name);
    if (value == nullptr) continue;
    settings.push_back(fmt::format(
        "{}={}", use.axis->path,
        is_name(use.target) ? name_of(*use.axis, *value) : setting_of(*use.axis, *value)));
  }
  return settings;
}

}  // namespace flyover::io
