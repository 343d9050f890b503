// Laws of the closed form of a step.

#include "flyover/layout/step_estimate.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/layout/schedule.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

// Seconds of all kernels of a micro-batch in these layers, the embedding or the head.
struct Passes {
  double forward = 0;
  double backward = 0;
  Passes& add(const LayerWork& work) {
    for (const WorkItem& item : work.forward) forward += to_seconds(item.compute);
    for (const WorkItem& item : work.recompute) backward += to_seconds(item.compute);
    for (const WorkItem& item : work.backward) backward += to_seconds(item.compute);
    return *this;
  }
  [[nodiscard]] double total() const { return forward + backward; }
};

Passes whole_model(const StepParts& parts, const Layout& layout) {
  Passes sum;
  for (std::uint32_t layer = 0; layer < parts.job().model.layers; ++layer) {
    sum.add(parts.layer(layout, layer));
  }
  sum.add(parts.embedding(layout));
  sum.add(parts.head(layout));
  return sum;
}

struct Bench {
  explicit Bench(TrainingJob job, std::uint32_t gpus = 72, Bandwidth bandwidth = 100_GBps)
      : cluster(test::crossbar(gpus, bandwidth, 1us)),
        times(cluster.topology, cluster.cost),
        parts(test::parts_of(std::move(job))),
        estimator(parts, times) {}
  [[nodiscard]] StepEstimate operator()(const Layout& layout) const {
    REQUIRE(problems(layout, parts.job().model, parts.job().sequence, 0) ==
            std::vector<std::string>{});
    return estimator.estimate(layout);
  }

  test::Cluster cluster;
  MessageTimes times;
  StepParts parts;
  StepEstimator estimator;
};

Layout one_gpu(std::uint32_t micro_batches) {
  Layout layout;
  layout.vocabulary_multiple = 1;
  return test::with_batch(layout, micro_batches);
}

// So many large layers that embedding and head are nothing beside them, and messages neither.
Model even_model() {
  Model model = test::small_model(48);
  model.hidden = 3072;
  model.attention.head_dim = 256;
  model.ffn_hidden = 12288;
  model.vocabulary = 8;
  return model;
}

Layout pipeline(PipelineSchedule schedule, std::uint32_t p, std::uint32_t v, std::uint32_t m) {
  Layout layout = one_gpu(m);
  layout.schedule = schedule;
  layout.pipeline = p;
  layout.virtual_stages = v;
  return layout;
}

double seconds(Duration time) {
  return to_seconds(time);
}

std::string title(const Layout& l) {
  return fmt::format("tp {} cp {} ep {} pp {} x {} dp {} {} {} {}, {} micro-batches", l.tensor,
                     l.context, l.expert, l.pipeline, l.virtual_stages, l.data,
                     to_string(l.schedule), to_string(l.sharding), to_string(l.recompute),
                     micro_batches(l));
}

// Layouts without problems drawn from most of what there is.
std::vector<Layout> random_layouts(const Model& model, std::size_t count) {
  std::mt19937 random(7);
  const auto one_of = [&](auto... choices) {
    const std::array list = {choices...};
    return list[random() % list.size()];
  };
  std::vector<Layout> list;
  while (list.size() < count) {
    Layout layout;
    layout.tensor = one_of(1U, 2U, 3U);
    layout.sequence_parallel = layout.tensor > 1 && one_of(false, true);
    layout.context = one_of(1U, 1U, 2U);
    layout.exchange =
        one_of(ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll);
    layout.pipeline = one_of(1U, 2U, 4U);
    layout.data = one_of(1U, 2U, 3U);
    layout.schedule = one_of(PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                             PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubbleH1,
                             PipelineSchedule::ZeroBubbleV, PipelineSchedule::DualPipe,
                             PipelineSchedule::DualPipeV);
    layout.virtual_stages = layout.schedule == PipelineSchedule::Interleaved ||
                                    layout.schedule == PipelineSchedule::ZeroBubbleV ||
                                    layout.schedule == PipelineSchedule::DualPipeV
                                ? 2
                                : 1;
    layout.sharding =
        one_of(Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters);
    layout.recompute = one_of(Recompute::None, Recompute::Selective, Recompute::Full);
    if (model.experts) layout.expert = one_of(1U, 2U, 3U, 6U);
    layout = test::with_batch(layout, one_of(1U, 4U, 8U));
    if (ranks(layout) > 72) continue;
    if (problems(layout, model, test::small_sequence, 0).empty()) list.push_back(layout);
  }
  return list;
}

// All that a stack and overlap can add.
TrainingJob laden_job(Model model) {
  TrainingJob job = test::small_job(std::move(model));
  job.stack.layer_host = 100us;
  job.stack.micro_batch_host = 200us;
  job.stack.step_host = 1ms;
  job.stack.contention = 0.1;
  job.stack.straggling = 0.01;
  job.stack.message_slowdown.fill(1.3);
  return job;
}

}  // namespace

TEST_CASE("on one GPU a step is its micro-batches, the optimizer and the host's time",
          "[step_estimate]") {
  const Model model = GENERATE(test::small_model(), test::small_expert_model());
  TrainingJob job = test::small_job(model);
  job.stack.step_host = 3ms;
  for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
    const Bench bench(job);
    Layout layout = one_gpu(5);
    layout.recompute = recompute;
    const StepEstimate estimate = bench(layout);
    const double passes = whole_model(bench.parts, layout).total();
    const double optimizer = seconds(bench.parts.optimizer(layout, 0));
    CHECK(seconds(estimate.time) == Approx(5 * passes + optimizer + 3e-3).epsilon(1e-9));
    CHECK(seconds(estimate[StepPart::Compute] + estimate[StepPart::Recompute]) ==
          Approx(5 * passes).epsilon(1e-9));
    CHECK(seconds(estimate[StepPart::Optimizer]) == Approx(optimizer).epsilon(1e-9));
    CHECK(estimate[StepPart::Host] == Duration{3ms});
    for (const StepPart absent : {StepPart::Tensor, StepPart::Context, StepPart::Expert,
                                  StepPart::Pipeline, StepPart::Data, StepPart::Straggling}) {
      CHECK(estimate[absent] == Duration{});
    }
    CHECK(estimate[StepPart::Bubble] <= Duration{100});  // Rounding.
  }
}

TEST_CASE("tokens and MFU follow from the step", "[step_estimate]") {
  const Bench bench(test::small_job(test::small_model()));
  Layout layout = one_gpu(4);
  layout.data = 3;
  layout = test::with_batch(layout, 4);
  const StepEstimate estimate = bench(layout);
  const double tokens = 12.0 * test::small_sequence;
  CHECK(estimate.tokens_per_second_per_gpu == Approx(tokens / seconds(estimate.time) / 3));
  const double flops = forward_flops(bench.parts.job().model, test::small_sequence, true).total();
  CHECK(estimate.mfu == Approx(3 * flops * tokens / seconds(estimate.time) / (3 * 100e12)));
  CHECK(estimate.memory_bound > 0);
  CHECK(estimate.memory_bound < 1);
}

TEST_CASE("host code that is slower than a layer's kernels is waited for", "[step_estimate]") {
  TrainingJob job = test::small_job(test::small_model());
  const Duration plain = Bench(job)(one_gpu(2)).time;
  job.stack.layer_host = 1ns;
  CHECK(Bench(job)(one_gpu(2)).time == plain);
  job.stack.micro_batch_host = 1ms;
  CHECK(Bench(job)(one_gpu(2)).time - plain == Duration{2ms});
  // Far slower: nothing else counts. A forward, twice that backward, eight layers, two
  // micro-batches.
  job.stack.micro_batch_host = {};
  job.stack.layer_host = 100ms;
  const Bench bench(job);
  const StepEstimate waits = bench(one_gpu(2));
  Passes ends;
  ends.add(bench.parts.embedding(one_gpu(2))).add(bench.parts.head(one_gpu(2)));
  const double expected =
      2 * (8 * 3 * 0.1 + ends.total()) + seconds(bench.parts.optimizer(one_gpu(2), 0));
  CHECK(seconds(waits.time) == Approx(expected).epsilon(1e-9));
  job.options.cuda_graphs = true;
  CHECK(Bench(job)(one_gpu(2)).time < plain);
}

TEST_CASE("an even pipeline's bubble is the textbook's", "[step_estimate]") {
  TrainingJob job = test::small_job(even_model());
  job.sequence = 4096;
  const Bench bench(job, 8, Bandwidth{1e20});
  struct Case {
    PipelineSchedule schedule;
    std::uint32_t p, v, m;
    double bubble;
  };
  using enum PipelineSchedule;
  const std::vector<Case> cases = {
      {GPipe, 4, 1, 8, 3.0 / 8},
      {GPipe, 8, 1, 16, 7.0 / 16},
      {OneForwardOneBackward, 4, 1, 8, 3.0 / 8},
      {OneForwardOneBackward, 8, 1, 8, 7.0 / 8},
      {OneForwardOneBackward, 2, 1, 32, 1.0 / 32},
      {Interleaved, 4, 2, 8, 3.0 / (2 * 8)},
      {Interleaved, 4, 6, 8, 3.0 / (6 * 8)},
      {Interleaved, 8, 3, 16, 7.0 / (3 * 16)},
      {OneForwardOneBackward, 1, 1, 8, 0},
  };
  for (const Case& each : cases) {
    const Layout layout = pipeline(each.schedule, each.p, each.v, each.m);
    CAPTURE(title(layout));
    const StepEstimate estimate = bench(layout);
    const double ideal = each.m * whole_model(bench.parts, layout).total() / each.p;
    CHECK(seconds(estimate[StepPart::Bubble]) / ideal == Approx(each.bubble).margin(0.01));
    CHECK(seconds(estimate[StepPart::Compute]) == Approx(ideal).epsilon(0.01));
  }
}

TEST_CASE("zero-bubble schedules leave less, as much as their weight gradients fill",
          "[step_estimate]") {
  TrainingJob job = test::small_job(even_model());
  job.sequence = 4096;
  const Bench bench(job, 8, Bandwidth{1e20});
  using enum PipelineSchedule;
  const auto bubble = [&](PipelineSchedule schedule, std::uint32_t v) {
    return seconds(bench(pipeline(schedule, 4, v, 16))[StepPart::Bubble]);
  };
  const double plain = bubble(OneForwardOneBackward, 1);
  CHECK(bubble(ZeroBubbleH1, 1) < 0.7 * plain);
  CHECK(bubble(ZeroBubbleV, 2) < bubble(ZeroBubbleH1, 1));
}

TEST_CASE("an uneven pipeline runs at its slowest stage's pace", "[step_estimate]") {
  TrainingJob job = test::small_job(even_model());
  job.sequence = 4096;
  const Bench bench(job, 8, Bandwidth{1e20});
  Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 4, 1, 64);
  layout.chunk_layers = {10, 18, 10, 10};
  const StepEstimate estimate = bench(layout);
  CHECK(estimate.slowest_stage == 1);
  const double layer = Passes{}.add(bench.parts.layer(layout, 0)).total();
  CHECK(seconds(estimate[StepPart::Compute]) == Approx(64 * 18 * layer).epsilon(1e-6));
}

TEST_CASE("parts add up to the step, and no step is below its bound", "[step_estimate]") {
  for (const Model& model : {test::small_model(), test::small_expert_model()}) {
    for (const bool laden : {false, true}) {
      const Bench bench(laden ? laden_job(model) : test::small_job(model));
      for (const Layout& layout : random_layouts(model, 150)) {
        CAPTURE(title(layout), laden);
        const StepEstimate estimate = bench(layout);
        const Duration sum =
            std::accumulate(estimate.parts.begin(), estimate.parts.end(), Duration{});
        CHECK(sum == estimate.time);
        CHECK(
            std::ranges::none_of(estimate.parts, [](Duration part) { return part < Duration{}; }));
        CHECK(bench.estimator.bound(layout) <= estimate.time);
        CHECK(bench.estimator.bound(layout) > Duration{});
        CHECK(estimate.slowest_stage < layout.pipeline);
      }
    }
  }
}

TEST_CASE("twice the micro-batches cost exactly theirs", "[step_estimate]") {
  const Bench bench(test::small_job(test::small_model()));
  const Layout alone = one_gpu(4);
  const double passes = whole_model(bench.parts, alone).total();
  CHECK(seconds(bench(one_gpu(8)).time - bench(alone).time) == Approx(4 * passes).epsilon(1e-9));
  // Of a pipeline that is full, those of its slowest stage.
  using enum PipelineSchedule;
  for (const PipelineSchedule schedule : {GPipe, OneForwardOneBackward}) {
    const Layout few = pipeline(schedule, 4, 1, 32);
    const Layout many = pipeline(schedule, 4, 1, 64);
    const StepEstimate before = bench(few);
    const StepEstimate after = bench(many);
    const double body = seconds(before[StepPart::Compute]) / 32;
    CHECK(seconds(after.time - before.time) >= 32 * body * (1 - 1e-9));
    CHECK(seconds(after[StepPart::Compute] - before[StepPart::Compute]) ==
          Approx(32 * body).epsilon(1e-9));
  }
}

TEST_CASE("stragglers take their share of everything, and nobody waits for himself",
          "[step_estimate]") {
  TrainingJob job = test::small_job(test::small_model());
  job.stack.step_host = 1ms;
  Layout layout = one_gpu(2);
  layout.data = 8;
  layout = test::with_batch(layout, 2);
  const Duration plain = Bench(job)(layout).time;
  job.stack.straggling = 0.02;
  const StepEstimate slower = Bench(job)(layout);
  CHECK(seconds(slower.time) == Approx(seconds(plain) * (1 + 0.02 * 3)).epsilon(1e-9));
  CHECK(slower.time - plain == slower[StepPart::Straggling]);
  const StepEstimate one = Bench(job)(one_gpu(2));
  CHECK(one[StepPart::Straggling] == Duration{});
  job.stack.straggling = 0;
  CHECK(Bench(job)(one_gpu(2)).time == one.time);
}

TEST_CASE("a message that runs beside kernels is exposed by what is longer", "[step_estimate]") {
  // Gradients of one step: all of them, or what the backward does not cover.
  TrainingJob job = test::small_job(test::small_model());
  job.overlap.gradients = false;
  job.overlap.parameters = false;
  job.overlap.bucket = Bytes{};
  Layout layout = one_gpu(1);
  layout.data = 8;
  layout.sharding = Sharding::None;
  layout = test::with_batch(layout, 1);
  const Bench bench(job);
  const double parameters = static_cast<double>(parameter_counts(job.model).total());
  const Message sum{GroupKind::Shard, CollectiveOp::AllReduce,
                    Bytes{static_cast<std::int64_t>(parameters * 4)}};
  const Message norm{GroupKind::Model, CollectiveOp::AllReduce, Bytes{4}};
  CHECK(seconds(bench(layout)[StepPart::Data]) ==
        Approx(seconds(bench.times.time(layout, sum) + bench.times.time(layout, norm))));
  job.overlap.gradients = true;
  const StepEstimate hidden = Bench(job)(layout);
  CHECK(hidden[StepPart::Data] <= bench(layout)[StepPart::Data]);
  // A slow-down of that kind's messages counts as a longer one.
  job.overlap.gradients = false;
  job.stack.message_slowdown[static_cast<std::size_t>(GroupKind::Shard)] = 2;
  CHECK(seconds(Bench(job)(layout)[StepPart::Data]) ==
        Approx(seconds(2 * bench.times.time(layout, sum) + bench.times.time(layout, norm))));
}

TEST_CASE("the largest part is named, kernels by what they wait for", "[step_estimate]") {
  StepEstimate estimate;
  estimate.parts[static_cast<std::size_t>(StepPart::Compute)] = 10ms;
  CHECK(estimate.limit() == "matrix multiplications");
  estimate.memory_bound = 0.6;
  CHECK(estimate.limit() == "memory bandwidth");
  estimate.parts[static_cast<std::size_t>(StepPart::Tensor)] = 11ms;
  CHECK(estimate.limit() == "exposed tp");
  CHECK(to_string(StepPart::Bubble) == "bubble");
  CHECK(to_string(StepPart::Straggling) == "straggling");
}
