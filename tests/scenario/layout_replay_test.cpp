// The closed form of a step against the replay of its operation graph: docs/models/step.md states
// how far they may lie apart.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "support/training.hpp"

using namespace flyover;

namespace {

constexpr std::uint32_t sequence = 4096;

// Estimate over replay, less one.
struct Difference {
  std::string layout;
  double value = 0;
};

struct Spread {
  double median = 0;  // Of absolute values.
  double tenth = 0;   // One in ten is larger.
  Difference largest;
};

Spread spread(std::vector<Difference> all) {
  REQUIRE_FALSE(all.empty());
  const auto size = [](const Difference& d) { return std::abs(d.value); };
  std::ranges::sort(all, {}, size);
  return {size(all[all.size() / 2]), size(all[all.size() * 9 / 10]), all.back()};
}

// Layouts of all of a cluster's GPUs with every schedule, sharding and dimension.
std::vector<Layout> layouts(const Model& model, std::uint32_t gpus, Sharding sharding) {
  using enum PipelineSchedule;
  struct Pipeline {
    std::uint32_t stages, chunks;
    PipelineSchedule schedule;
  };
  constexpr Pipeline pipelines[] = {{1, 1, OneForwardOneBackward},
                                    {2, 1, OneForwardOneBackward},
                                    {4, 1, OneForwardOneBackward},
                                    {4, 1, GPipe},
                                    {4, 2, Interleaved},
                                    {4, 1, ZeroBubbleH1},
                                    {4, 2, ZeroBubbleV},
                                    {4, 1, DualPipe},
                                    {4, 2, DualPipeV}};
  std::vector<Layout> list;
  for (const Pipeline& pipeline : pipelines) {
    for (const std::uint32_t tensor : {1U, 2U, 8U}) {
      for (const std::uint32_t context : {1U, 2U}) {
        for (const std::uint32_t expert : {1U, 8U}) {
          Layout layout;
          layout.tensor = tensor;
          layout.sequence_parallel = tensor > 1;
          layout.context = context;
          layout.pipeline = pipeline.stages;
          layout.virtual_stages = pipeline.chunks;
          layout.schedule = pipeline.schedule;
          layout.expert = expert;
          layout.sharding = sharding;
          const std::uint32_t replica = tensor * context * pipeline.stages;
          if (gpus % replica != 0) continue;
          layout.data = gpus / replica;
          layout = test::with_batch(layout, 8);
          if (problems(layout, model, sequence, gpus).empty()) list.push_back(layout);
        }
      }
    }
  }
  return list;
}

std::vector<Difference> differences(const char* name, Sharding sharding) {
  TrainingJob job;
  job.model = io::load_model(name);
  job.model.layers = 16;
  job.sequence = sequence;
  job.stack = io::load_stack("nemo-25");
  job.stack.straggling = 0;  // Replays have no stragglers.
  job.options = job.stack.options;
  job.overlap = job.stack.overlap;
  const test::Cluster cluster(io::load_topology("dgx-h100:2"), test::library("nccl-2.27"));
  const MessageTimes times(cluster.topology, cluster.cost);
  const KernelModel kernels = io::read_kernels(io::kernel_document(job.stack.kernels));
  const StepParts parts(job, kernels, cluster.topology.gpu_model(0), 8);
  const StepEstimator estimator(parts, times);
  std::vector<Difference> found;
  for (const Layout& layout : layouts(job.model, 16, sharding)) {
    const Duration estimate = estimator.estimate(layout).time;
    const Duration replayed =
        replay(cluster.topology, cluster.cost, expand(parts, layout, times)).result.time;
    found.push_back(
        {fmt::format("{}, tensor {}, context {}, pipeline {} x {}, {}, {}, expert {}: {:.2f} ms "
                     "estimated, {:.2f} ms replayed",
                     name, layout.tensor, layout.context, layout.pipeline, layout.virtual_stages,
                     to_string(layout.schedule), to_string(layout.sharding), layout.expert,
                     to_seconds(estimate) * 1e3, to_seconds(replayed) * 1e3),
         to_seconds(estimate) / to_seconds(replayed) - 1});
  }
  return found;
}

// Limits of median, of nine in ten, and of all.
void check_spread(Sharding sharding, double median, double tenth, double largest) {
  std::vector<Difference> all = differences("llama3-8b", sharding);
  for (Difference& d : differences("mixtral-8x7b", sharding)) all.push_back(std::move(d));
  CHECK(all.size() >= 40);
  const Spread s = spread(std::move(all));
  INFO(s.largest.layout);
  CHECK(s.median <= median);
  CHECK(s.tenth <= tenth);
  CHECK(std::abs(s.largest.value) <= largest);
}

}  // namespace

TEST_CASE("estimates lie near replays: plain data parallelism", "[scenario][layout]") {
  check_spread(Sharding::None, 0.02, 0.06, 0.12);
}

TEST_CASE("estimates lie near replays: sharded optimizer states", "[scenario][layout]") {
  check_spread(Sharding::Optimizer, 0.02, 0.05, 0.08);
}

TEST_CASE("estimates lie near replays: sharded gradients", "[scenario][layout]") {
  check_spread(Sharding::Gradients, 0.02, 0.04, 0.10);
}

TEST_CASE("estimates lie near replays: sharded parameters", "[scenario][layout]") {
  check_spread(Sharding::Parameters, 0.06, 0.14, 0.25);
}

TEST_CASE("fused steps with kernels of their own for dispatch and combine: estimate and replay",
          "[scenario][layout][moe]") {
  TrainingJob job;
  job.model = io::load_model("deepseek-v3");
  job.model.layers = 8;
  job.model.mtp_layers = 0;
  job.sequence = sequence;
  job.stack = io::load_stack("hai-llm");
  job.stack.straggling = 0;
  job.options = job.stack.options;
  job.options.compute = KernelType::Fp8Block;
  job.overlap = job.stack.overlap;
  REQUIRE(job.overlap.expert_kernels);
  Layout layout;
  layout.schedule = PipelineSchedule::DualPipe;
  layout.pipeline = 2;
  layout.data = 16;
  layout.expert = 16;
  layout = test::with_batch(layout, 8);
  const test::Cluster cluster(io::load_topology("hgx-h800:4"), test::library("nccl-2.27"));
  const MessageTimes times(cluster.topology, cluster.cost);
  const auto seconds = [&](const TrainingJob& with) {
    const StepParts parts(with, io::read_kernels(io::kernel_document(with.stack.kernels)),
                          cluster.topology.gpu_model(0), 8);
    const Workload workload = expand(parts, layout, times);
    // Forward and backward of layers with experts, alone and beside kernels.
    const std::size_t kinds = with.overlap.experts && with.overlap.mutual_slowdown ? 4 : 2;
    CHECK(workload.exchanges.size() == (with.overlap.expert_kernels ? kinds : 0));
    for (const Operation& op : workload.programs[0].ops) {
      if (op.exchange == no_exchange) continue;
      REQUIRE(op.slowdown == 1);
      REQUIRE(op.bytes == pair_bytes(workload.exchanges[op.exchange], op.collective));
    }
    const double replayed =
        to_seconds(replay(cluster.topology, cluster.cost, workload).result.time);
    CHECK(to_seconds(StepEstimator(parts, times).estimate(layout).time) ==
          Approx(replayed).epsilon(0.04));
    return replayed;
  };
  const double own = seconds(job);
  TrainingJob apart = job;
  apart.overlap.experts = false;
  CHECK(own < seconds(apart));
  TrainingJob unhurt = job;
  unhurt.overlap.mutual_slowdown = false;
  CHECK(seconds(unhurt) < own);
  job.overlap.expert_kernels = nullptr;
  CHECK(own == Approx(seconds(job)).epsilon(0.1));
}
