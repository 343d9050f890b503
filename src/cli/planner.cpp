#include "cli/planner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>

#include <spdlog/spdlog.h>

#include "flyover/io/training_step.hpp"
#include "flyover/study/step_replay.hpp"

namespace flyover::cli {

namespace {

constexpr std::uint32_t many_gpus = 1024;
constexpr double batch_tokens = 4.0 * (1 << 20);
constexpr double batch_tokens_of_many = 16.0 * (1 << 20);

void report_speed(const GpuPlan& each) {
  const Plan& plan = each.plan;
  const auto rate = [](std::uint64_t layouts, double seconds) {
    return seconds > 0 ? static_cast<double>(layouts) / seconds : 0;
  };
  spdlog::info(
      "{} GPUs, per core: memory of {:.0f} layouts/s, bounds of {:.0f}, estimates of {:.0f} ({} in "
      "{:.2f} s)",
      each.gpus, rate(plan.fitting() + plan.too_large, plan.spent.memory),
      rate(plan.fitting(), plan.spent.bounds), rate(plan.estimated, plan.spent.estimates),
      plan.estimated, plan.spent.estimates);
}

void replay_best(GpuPlan& result, const Cluster& cluster, const ClusterTimer& own,
                 const PlanRequest& request) {
  std::uint64_t left = request.replay_limit;
  const std::size_t count = std::min<std::size_t>(request.replays, result.plan.best.size());
  for (std::size_t i = 0; i < count; ++i) {
    result.replays.push_back(replay_step(cluster.topology, own.cost(), own.parts(), own.times(),
                                         result.plan.best[i].layout, left));
    if (!result.replays.back().time) continue;
    left -= result.replays.back().operations;
    result.replay_order.push_back(i);
  }
  std::ranges::stable_sort(result.replay_order, std::ranges::less(),
                           [&](std::size_t i) { return *result.replays[i].time; });
}

}  // namespace

std::uint32_t usual_batch(std::uint32_t gpus, std::uint32_t sequence) {
  const double tokens = gpus < many_gpus ? batch_tokens : batch_tokens_of_many;
  const std::uint32_t odd = gpus >> std::countr_zero(gpus);
  const double power = std::round(std::log2(tokens / sequence / odd));
  return odd * static_cast<std::uint32_t>(std::exp2(std::clamp(power, 0.0, 16.0)));
}

GpuPlan plan_on(const Cluster& cluster, const TrainingInputs& training, const ClusterTimer& own,
                const PlanRequest& request) {
  const TrainingJob& job = training.job;
  GpuPlan result;
  result.gpus = request.gpus;
  result.batch_stated = request.global_batch != 0;
  result.global_batch =
      result.batch_stated ? request.global_batch : usual_batch(request.gpus, job.sequence);
  LayoutSearch search;
  search.model = job.model;
  search.sequence = job.sequence;
  search.gpus = request.gpus;
  search.global_batch = result.global_batch;
  search.domain = cluster.topology.nodes[NodeId{0}].gpus;
  search.sequence_parallel = job.stack.sequence_parallel;
  search.flash_attention = job.options.flash_attention;
  search.choices = request.choices;
  const LayoutSpace space(std::move(search));

  const auto make_timer = [&]() -> LayoutTimer {
    // Shared by the two functions, which are copied.
    const auto timer = std::make_shared<const ClusterTimer>(cluster, job, training.kernels);
    return {
        .estimate = [timer](const Layout& layout) { return timer->estimator().estimate(layout); },
        .bound = [timer](const Layout& layout) { return timer->estimator().bound(layout); }};
  };
  result.plan = flyover::make_plan(space, job.options, io::only_gpu_model(cluster.topology).memory,
                                   make_timer, request.options, {}, request.keep_refusals);
  report_speed(result);
  replay_best(result, cluster, own, request);
  return result;
}

}  // namespace flyover::cli
