#include "flyover/study/training_validation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/cost/cost_model.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/study/statistics.hpp"

namespace flyover {

namespace {

constexpr std::size_t least_layouts = 4;  // Of a family: fewer have no ranks to speak of.

struct Cluster {
  ClusterSpec spec;
  std::string library_name;
  Topology topology;
  Router router;
  Library library;
  CostModel cost;
  MessageTimes times;

  Cluster(ClusterSpec of, std::string name, Library with)
      : spec(std::move(of)),
        library_name(std::move(name)),
        topology(build_topology(spec)),
        router(topology, RouterOptions{}),
        library(std::move(with)),
        cost(topology, router, library),
        times(topology, cost) {}
};

// Of clusters that recorded_cluster builds, which differ in nothing else.
bool same(const ClusterSpec& a, const ClusterSpec& b) {
  const NodeGroup& nodes = a.nodes.front();
  const NodeGroup& others = b.nodes.front();
  return nodes.count == others.count && nodes.spec == others.spec &&
         a.fabric.kind == b.fabric.kind && a.fabric.preset == b.fabric.preset &&
         a.fabric.torus == b.fabric.torus;
}

std::string layout_text(const RecordedJob& recorded) {
  const Layout& layout = recorded.layout;
  std::string text = fmt::format("tp {}, cp {}, pp {} x {}, dp {}", layout.tensor, layout.context,
                                 layout.pipeline, layout.virtual_stages, layout.data);
  if (recorded.job.model.experts) {
    text += fmt::format(", ep {} x {}", layout.expert, layout.expert_tensor);
  }
  text +=
      fmt::format(", {}{}", to_string(layout.sharding), layout.keep_gathered ? " gathered" : "");
  if (layout.shard_group != 0) text += fmt::format(" in groups of {}", layout.shard_group);
  if (layout.sequence_parallel) text += ", sp";
  text += fmt::format(", b {}, B {}, recompute {}", layout.micro_batch, layout.global_batch,
                      to_string(layout.recompute));
  for (const std::string& module : layout.recompute_modules) text += " " + module;
  if (recorded.job.overlap.tensor == TensorOverlap::Pipelined) text += ", tp overlapped";
  return text + fmt::format(", {}", to_string(recorded.job.options.compute));
}

std::string family_text(const TrainingRecord& record) {
  return fmt::format("{} ({} layers, {} hidden, {} heads), sequence {}, {} x {}, {}",
                     record.model_name, record.model->layers, record.model->hidden,
                     record.model->attention.heads, *record.sequence, *record.hardware.gpus,
                     record.hardware.gpu, record.kind);
}

std::optional<double> predicted_seconds(const ValidatedStep& step, StepFit fit) {
  if (fit == StepFit::LeftOut) return step.left_out_seconds;
  if (!step.predicted) return std::nullopt;
  return to_seconds(step.predicted->time);
}

struct LayoutTimes {
  std::vector<double> measured;
  std::vector<double> predicted;
};

std::optional<LayoutFamily> family_of(const std::string& name,
                                      const std::map<std::string, LayoutTimes>& layouts) {
  if (layouts.size() < least_layouts) return std::nullopt;
  std::vector<double> measured;
  std::vector<double> predicted;
  for (const auto& [layout, times] : layouts) {
    measured.push_back(quantile(times.measured, 0.5));
    predicted.push_back(quantile(times.predicted, 0.5));
  }
  const auto chosen = std::ranges::min_element(predicted) - predicted.begin();
  return LayoutFamily{
      name, layouts.size(), rank_correlation(measured, predicted),
      measured[static_cast<std::size_t>(chosen)] / *std::ranges::min_element(measured) - 1};
}

}  // namespace

struct RecordEstimator::Impl {
  std::map<std::string, Library> libraries;
  std::map<std::string, KernelModel> kernels;
  std::vector<std::unique_ptr<Cluster>> clusters;

  const Cluster& cluster(const RecordedJob& job) {
    const auto found = std::ranges::find_if(clusters, [&](const auto& known) {
      return known->library_name == job.library && same(known->spec, job.cluster);
    });
    if (found != clusters.end()) return **found;
    return *clusters.emplace_back(
        std::make_unique<Cluster>(job.cluster, job.library, libraries.at(job.library)));
  }
};

RecordEstimator::RecordEstimator(const TrainingCatalogue& catalogue)
    : impl_(std::make_unique<Impl>()) {
  impl_->libraries = catalogue.hardware.libraries;
  impl_->kernels = catalogue.kernels;
}
RecordEstimator::~RecordEstimator() = default;
RecordEstimator::RecordEstimator(RecordEstimator&&) noexcept = default;

StepEstimate RecordEstimator::estimate(const RecordedJob& job) {
  const auto kernels = impl_->kernels.find(job.job.stack.kernels);
  require(kernels != impl_->kernels.end(), "a catalogue with the kernels of its stacks");
  const NodeSpec& node = job.cluster.nodes.front().spec;
  const StepParts parts(job.job, kernels->second, node.gpu, node.gpus);
  return StepEstimator(parts, impl_->cluster(job).times).estimate(job.layout);
}

std::vector<ValidatedStep> predict_steps(std::span<const TrainingRecord> records,
                                         const TrainingCatalogue& catalogue,
                                         RecordEstimator& estimator) {
  std::vector<ValidatedStep> steps;
  steps.reserve(records.size());
  for (const TrainingRecord& record : records) {
    ValidatedStep& step = steps.emplace_back();
    step.id = record.id;
    step.group = record.group;
    step.source = record.source;
    step.kind = record.kind;
    step.model = record.model_name;
    step.gpu = record.hardware.gpu;
    step.gpus = record.hardware.gpus.value_or(0);
    step.precision = record.precision;
    step.quality = record.quality;
    step.measured_seconds = record.step_seconds;
    try {
      RecordedJob recorded = training_job_of(record, catalogue);
      step.stack = recorded.job.stack.name;
      step.layout = layout_text(recorded);
      step.family = family_text(record);
      step.sequences = recorded.layout.global_batch;
      step.predicted = estimator.estimate(recorded);
      step.assumptions = std::move(recorded.assumptions);
    } catch (const InputError& error) {
      step.skipped = error.problem();
    } catch (const SimulationError& error) {
      step.skipped = error.what();
    }
  }
  return steps;
}

std::optional<double> step_error(const ValidatedStep& step, StepFit fit) {
  const auto predicted = predicted_seconds(step, fit);
  if (!predicted || !step.measured_seconds) return std::nullopt;
  return *predicted / *step.measured_seconds - 1;
}

TrainingSummary summarise_steps(std::span<const ValidatedStep> steps, StepFit fit) {
  TrainingSummary summary;
  using Errors = std::map<std::string, std::vector<double>>;
  Errors by_source;
  Errors by_gpu;
  Errors by_model;
  Errors by_precision;
  Errors by_stack;
  std::map<char, std::vector<double>> by_quality;
  std::map<std::string, std::map<std::string, LayoutTimes>> families;
  for (const ValidatedStep& step : steps) {
    ++summary.records;
    ++summary.records_of_quality[step.quality];
    if (step.skipped) ++summary.skipped[*step.skipped];
    const auto seconds = predicted_seconds(step, fit);
    if (!seconds) continue;
    ++summary.predicted;
    ++summary.predicted_of_quality[step.quality];
    const auto error = step_error(step, fit);
    if (!error) continue;
    by_quality[step.quality].push_back(*error);
    if (step.quality != 'A') continue;
    by_source[step.source].push_back(*error);
    by_gpu[step.gpu].push_back(*error);
    by_model[step.model].push_back(*error);
    by_precision[step.precision].push_back(*error);
    by_stack[step.stack].push_back(*error);
    LayoutTimes& times = families[step.family][step.layout];
    times.measured.push_back(*step.measured_seconds / step.sequences);
    times.predicted.push_back(*seconds / step.sequences);
  }
  const auto summarise = [](const auto& errors, auto& into) {
    for (const auto& [name, values] : errors) into[name] = summarise_errors(values);
  };
  summarise(by_quality, summary.by_quality);
  summarise(by_source, summary.by_source);
  summarise(by_gpu, summary.by_gpu);
  summarise(by_model, summary.by_model);
  summarise(by_precision, summary.by_precision);
  summarise(by_stack, summary.by_stack);
  for (const auto& [name, layouts] : families) {
    if (auto family = family_of(name, layouts)) summary.families.push_back(std::move(*family));
  }
  return summary;
}

}  // namespace flyover
