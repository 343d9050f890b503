// The operation graph of a step: who waits for whom, and how long it takes where that can be said
// with a formula.

#include "flyover/layout/expand.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/layout/schedule.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/simulate/replay.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::crossbar;

namespace {

// A cluster that a layout fills.
struct Bench {
  explicit Bench(const Layout& layout)
      : Bench(crossbar(std::max(ranks(layout), 2U), 100_GBps, 1us)) {}
  explicit Bench(Topology topology)
      : cluster(std::move(topology)),
        times(cluster.topology, cluster.cost) {}
  // Messages take their latency alone.
  static Topology boundless(const Layout& layout) {
    Topology topology = crossbar(ranks(layout), Bandwidth{1e20}, 1us);
    for (GpuModel& gpu : topology.gpu_models) gpu.memory_bandwidth = Bandwidth{1e20};
    return topology;
  }

  test::Cluster cluster;
  MessageTimes times;
};

Duration replayed(const StepParts& parts, const Layout& layout, const Bench& bench) {
  Workload workload = expand(parts, layout, bench.times);
  workload.ranks = static_cast<std::uint32_t>(bench.cluster.topology.gpus.size());
  return replay(bench.cluster.topology, bench.cluster.cost, workload).result.time;
}
Duration replayed(TrainingJob job, const Layout& layout) {
  const Bench bench(layout);
  return replayed(test::parts_of(std::move(job)), layout, bench);
}

// Everything one after the other, for a layout whose groups send one at a time.
Duration in_a_row(const Workload& workload, const Bench& bench) {
  Duration sum{};
  for (const Operation& op : workload.programs[0].ops) {
    sum += op.duration;
    if (op.kind != OpKind::Collective) continue;
    sum += bench.cluster.cost
               .choose({.op = op.collective,
                        .bytes = op.bytes,
                        .dtype = {},
                        .ranks = workload.groups[op.group].groups[0]})
               .plan.alone;
  }
  return sum;
}

Layout pipeline(PipelineSchedule schedule, std::uint32_t p, std::uint32_t v, std::uint32_t m) {
  Layout layout;
  layout.vocabulary_multiple = 1;
  layout.schedule = schedule;
  layout.pipeline = p;
  layout.virtual_stages = v;
  return test::with_batch(layout, m);
}

// Layouts of two to eight ranks with every schedule and most dimensions.
std::vector<Layout> small_layouts() {
  using enum PipelineSchedule;
  std::vector<Layout> list = {
      pipeline(GPipe, 3, 1, 4),       pipeline(OneForwardOneBackward, 4, 1, 2),
      pipeline(Interleaved, 2, 3, 4), pipeline(ZeroBubbleH1, 3, 1, 5),
      pipeline(ZeroBubbleV, 2, 2, 5), pipeline(ZeroBubbleV, 1, 2, 3),
      pipeline(DualPipe, 4, 1, 12),   pipeline(DualPipeV, 2, 2, 7),
  };
  for (const Sharding sharding : {Sharding::None, Sharding::Optimizer}) {
    for (Layout layout : {pipeline(DualPipe, 2, 1, 6), pipeline(DualPipeV, 2, 2, 5)}) {
      layout.data = 2;
      layout.sharding = sharding;
      list.push_back(test::with_batch(layout, micro_batches(layout) * 2));
    }
  }
  for (const Sharding sharding :
       {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
    for (Layout layout : {pipeline(OneForwardOneBackward, 1, 1, 2), pipeline(Interleaved, 2, 2, 2),
                          pipeline(ZeroBubbleV, 2, 2, 3)}) {
      layout.data = 2;
      layout.sharding = sharding;
      list.push_back(test::with_batch(layout, 2));
      layout.tensor = 2;
      layout.sequence_parallel = sharding != Sharding::None;
      list.push_back(test::with_batch(layout, 2));
    }
  }
  Layout kept = pipeline(OneForwardOneBackward, 2, 1, 3);
  kept.data = 3;
  kept.sharding = Sharding::Parameters;
  kept.keep_gathered = true;
  list.push_back(test::with_batch(kept, 3));
  Layout odd = pipeline(OneForwardOneBackward, 3, 1, 1);
  odd.context = 3;
  odd.chunk_layers = {1, 7, 0};
  list.push_back(odd);
  return list;
}

std::string title(const Layout& l) {
  return fmt::format("tp {} cp {} pp {} x {} dp {} {} {}, {} micro-batches", l.tensor, l.context,
                     l.pipeline, l.virtual_stages, l.data, to_string(l.schedule),
                     to_string(l.sharding), micro_batches(l));
}

// Every switch of Overlap on, or off.
TrainingJob overlapping(bool all, Model model = test::small_model()) {
  TrainingJob job = test::small_job(std::move(model));
  job.overlap.tensor = all ? TensorOverlap::Pipelined : TensorOverlap::None;
  job.overlap.gradients = job.overlap.parameters = job.overlap.pipeline = job.overlap.context = all;
  job.overlap.bucket = 2_MiB;
  return job;
}

std::vector<const Operation*> operations(const Program& program,
                                         const std::function<bool(const Operation&)>& wanted) {
  std::vector<const Operation*> found;
  for (const Operation& op : program.ops) {
    if (wanted(op)) found.push_back(&op);
  }
  return found;
}

}  // namespace

TEST_CASE("every layout becomes a workload that runs to its end, the same way each time",
          "[expand]") {
  for (const Layout& layout : small_layouts()) {
    INFO(title(layout));
    REQUIRE(problems(layout, test::small_model(), test::small_sequence, 0) ==
            std::vector<std::string>{});
    for (const bool all : {false, true}) {
      const Bench bench(layout);
      const StepParts parts = test::parts_of(overlapping(all));
      const Workload workload = expand(parts, layout, bench.times);
      validate(workload);
      REQUIRE(workload.ranks == ranks(layout));
      REQUIRE(workload.programs.size() == layout.pipeline);
      const Duration time = replayed(parts, layout, bench);
      REQUIRE(time > Duration{});
      const Bench again(layout);
      REQUIRE(replayed(test::parts_of(overlapping(all)), layout, again) == time);
    }
  }
}

TEST_CASE("operations are counted without being made", "[expand]") {
  for (const Layout& layout : small_layouts()) {
    INFO(title(layout));
    TrainingJob job = overlapping(true);
    job.stack.layer_host = 1ms;
    const Bench bench(layout);
    const StepParts parts = test::parts_of(std::move(job));
    const Workload workload = expand(parts, layout, bench.times);
    std::uint64_t sum = 0;
    for (const Program& program : workload.programs) {
      sum += program.ops.size() * program.ranks.size();
    }
    REQUIRE(expanded_operations(parts, layout, bench.times) == sum);
  }
}

TEST_CASE("a pipeline alone takes what its schedule takes, and the optimizer", "[expand]") {
  using enum PipelineSchedule;
  for (const Layout& layout :
       {pipeline(GPipe, 4, 1, 6), pipeline(OneForwardOneBackward, 4, 1, 8),
        pipeline(OneForwardOneBackward, 3, 1, 2), pipeline(Interleaved, 2, 4, 6),
        pipeline(Interleaved, 4, 2, 8), pipeline(ZeroBubbleH1, 4, 1, 7),
        pipeline(ZeroBubbleV, 2, 2, 5), pipeline(ZeroBubbleV, 4, 2, 9),
        pipeline(DualPipeV, 2, 2, 7), pipeline(DualPipeV, 4, 2, 9)}) {
    INFO(title(layout));
    TrainingJob job = test::small_job(test::small_model());
    job.stack.step_host = 5ms;
    const StepParts parts = test::parts_of(std::move(job));
    const Bench bench(Bench::boundless(layout));
    const Duration hop =
        bench.cluster.cost.point_to_point(0, 1, parts.boundary_bytes(layout)).alone;

    std::vector<ChunkTimes> times;
    std::uint32_t layer = 0;
    const std::vector<std::uint32_t> layers = layers_of_chunks(layout, test::small_model());
    for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
      ChunkTimes& sum = times.emplace_back();
      const auto add = [&](const LayerWork& work) {
        for (const WorkItem& item : work.forward) sum.forward += item.compute;
        for (const WorkItem& item : work.backward) {
          (item.weight_gradient ? sum.weight_gradient : sum.input_gradient) += item.compute;
        }
      };
      if (chunk == 0) add(parts.embedding(layout));
      for (std::uint32_t i = 0; i < layers[chunk]; ++i) add(parts.layer(layout, layer++));
      if (chunk + 1 == layers.size()) add(parts.head(layout));
    }
    const PipelineRun run =
        run_pipeline(without_fused_steps(pipeline_program(pipeline_shape(layout))), times, hop);
    std::vector<std::uint32_t> all(ranks(layout));
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) all[rank] = rank;
    const Duration norm =
        bench.cluster.cost
            .choose({.op = CollectiveOp::AllReduce, .bytes = Bytes{4}, .dtype = {}, .ranks = all})
            .plan.alone;
    Duration optimizer{};
    for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
      optimizer = std::max(optimizer, parts.optimizer(layout, stage));
    }
    CHECK(replayed(parts, layout, bench) == run.makespan + norm + optimizer + 5ms);
  }
}

TEST_CASE("fused steps run dispatch and combine beside the other micro-batch's kernels",
          "[expand][fused]") {
  using enum PipelineSchedule;
  for (Layout layout : {pipeline(DualPipe, 4, 1, 12), pipeline(DualPipeV, 2, 2, 8)}) {
    layout.data = 2;
    layout.expert = 2;
    layout = test::with_batch(layout, micro_batches(layout) * 2);
    INFO(title(layout));
    const auto job = [&](bool beside) {
      TrainingJob made = test::small_job(test::small_expert_model());
      made.overlap.experts = beside;
      return made;
    };
    const Bench bench(layout);
    const StepParts parts = test::parts_of(job(true));
    const Workload workload = expand(parts, layout, bench.times);
    // In one pair of layers, in the order in which they start on their streams.
    const std::vector<const Operation*> sent =
        operations(workload.programs[0], [](const Operation& op) {
          return op.name.starts_with("dispatch") || op.name.starts_with("combine");
        });
    std::string order;
    for (const Operation* op : sent) {
      if (op->name.ends_with("forward 6") || op->name.ends_with("backward 3")) {
        order += op->name + "; ";
      }
    }
    CAPTURE(order);
    if (layout.schedule == DualPipe) {
      // Micro-batch 6 goes forward through layers 0 and 1 while 3 comes back through 7 and 6.
      CHECK(order.find("combine backward, layer 7, backward 3; dispatch, layer 0, forward 6; "
                       "dispatch backward, layer 7, backward 3; combine, layer 0, forward 6; "
                       "combine backward, layer 6, backward 3; dispatch, layer 1, forward 6; "
                       "dispatch backward, layer 6, backward 3; combine, layer 1, forward 6; ") !=
            std::string::npos);
    }
    const Duration hidden = replayed(parts, layout, bench);
    const Duration apart = replayed(test::parts_of(job(false)), layout, bench);
    CHECK(hidden < apart);
    const auto estimated = [&](bool beside) {
      const StepParts made = test::parts_of(job(beside));
      return to_seconds(StepEstimator(made, bench.times).estimate(layout).time);
    };
    CHECK(estimated(true) == Approx(to_seconds(hidden)).epsilon(0.02));
    CHECK(estimated(false) == Approx(to_seconds(apart)).epsilon(0.02));
  }
}

TEST_CASE("where nothing overlaps, a step takes the sum of its kernels and messages", "[expand]") {
  std::vector<Layout> list;
  for (const bool sequence_parallel : {false, true}) {
    Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 2);
    layout.tensor = 3;
    layout.sequence_parallel = sequence_parallel;
    list.push_back(layout);
  }
  for (const Sharding sharding :
       {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
    Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 2);
    layout.data = 4;
    layout.sharding = sharding;
    list.push_back(test::with_batch(layout, 2));
  }
  for (const Layout& layout : list) {
    INFO(title(layout));
    const Bench bench(layout);
    // With sequence parallelism autograd overlaps two messages of each matrix, with any switches.
    const StepParts parts = test::parts_of(overlapping(false));
    const Duration sum = in_a_row(expand(parts, layout, bench.times), bench);
    const Duration time = replayed(parts, layout, bench);
    if (layout.sequence_parallel || layout.tensor > 1) {
      CHECK(time < sum);
    } else {
      CHECK(to_seconds(time) == Approx(to_seconds(sum)).epsilon(1e-9));
    }
    CHECK(replayed(test::parts_of(overlapping(true)), layout, bench) <= time);
  }
}

TEST_CASE("gradients are reduced in buckets of whole layers while the last backward goes on",
          "[expand]") {
  Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 3);
  layout.data = 2;
  layout.sharding = Sharding::Optimizer;
  layout = test::with_batch(layout, 3);
  const Bench bench(layout);
  const auto reductions = [&](Bytes bucket, Sharding sharding) {
    TrainingJob job = overlapping(true);
    job.overlap.bucket = bucket;
    Layout changed = layout;
    changed.sharding = sharding;
    const Workload workload = expand(test::parts_of(std::move(job)), changed, bench.times);
    return operations(workload.programs[0],
                      [](const Operation& op) { return op.name.starts_with("reduce"); })
        .size();
  };
  // The head and the embedding have 7.1 MB of gradients each, a layer 5.3 MB.
  CHECK(reductions(Bytes{1}, Sharding::Optimizer) == 10);
  CHECK(reductions(Bytes{6'000'000}, Sharding::Optimizer) == 6);
  CHECK(reductions(1_GiB, Sharding::None) == 1);
  CHECK(reductions(1_GiB, Sharding::Gradients) == 3);    // Every micro-batch.
  CHECK(reductions(1_GiB, Sharding::Parameters) == 30);  // And every layer.
}

TEST_CASE("a unit's parameters are gathered while the one before it works", "[expand]") {
  Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 2);
  layout.data = 2;
  layout.sharding = Sharding::Parameters;
  layout = test::with_batch(layout, 2);
  const Bench bench(layout);
  const Workload workload = expand(test::parts_of(overlapping(true)), layout, bench.times);
  const Program& program = workload.programs[0];
  const auto gathers =
      operations(program, [](const Operation& op) { return op.name.starts_with("gather"); });
  REQUIRE(gathers.size() == 40);  // Ten units, two passes, two micro-batches.
  CHECK(gathers[0]->after.empty());
  // The second one starts with the embedding, which waits for the first.
  CHECK(gathers[1]->after.empty());
  const auto kernels = operations(program, [](const Operation& op) {
    return op.kind == OpKind::Compute && op.name.ends_with("forward 0");
  });
  REQUIRE(kernels.size() == 10);
  CHECK(&program.ops[kernels[0]->after.at(0)] == gathers[0]);
  CHECK(&program.ops[kernels[1]->after.at(0)] == gathers[1]);
  CHECK(&program.ops[gathers[2]->after.at(0)] == kernels[0]);
}

TEST_CASE("a layer takes at least its host's time, and graphs take that away", "[expand]") {
  const Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 3);
  TrainingJob job = test::small_job(test::small_model());
  const Duration without = replayed(job, layout);
  job.stack.layer_host = 10ms;
  job.stack.micro_batch_host = 7ms;
  const StepParts parts = test::parts_of(job);
  Duration kernels{};
  for (std::uint32_t layer = 0; layer < 8; ++layer) {
    const LayerWork& work = parts.layer(layout, layer);
    for (const WorkItem& item : work.forward) kernels += item.compute;
    for (const WorkItem& item : work.backward) kernels += item.compute;
  }
  CHECK(replayed(job, layout) == without + 3 * (8 * 30ms - kernels + 7ms));
  Layout full = layout;
  full.recompute = Recompute::Full;
  CHECK(replayed(job, full) - replayed(job, layout) >= 3 * 8 * 9ms);
  job.options.cuda_graphs = true;
  CHECK(replayed(job, layout) < without);
}

TEST_CASE("messages slow the kernels beside them, and stacks slow messages", "[expand]") {
  Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 1);
  layout.context = 2;
  const Bench bench(layout);
  TrainingJob job = overlapping(true);
  const StepParts plain = test::parts_of(job);
  job.stack.contention = 0.25;
  const StepParts contended = test::parts_of(job);
  const auto attention = [&](const StepParts& parts) {
    const Workload workload = expand(parts, layout, bench.times);
    return operations(workload.programs[0],
                      [](const Operation& op) {
                        return op.kind == OpKind::Compute &&
                               op.name == "attention, layer 0, forward 0";
                      })
        .at(0)
        ->duration;
  };
  const auto item = std::ranges::find_if(plain.layer(layout, 0).forward,
                                         [](const WorkItem& i) { return i.message.has_value(); });
  REQUIRE(item->name == "attention");
  const double message = to_seconds(bench.times.time(layout, *item->message));
  const double kernel = to_seconds(item->compute);
  CHECK(attention(plain) == item->compute);
  CHECK(to_seconds(attention(contended)) ==
        Approx(kernel + 0.25 * std::min(kernel, message)).epsilon(1e-9));

  // Slower by a half: latency and bytes.
  TrainingJob exposed = overlapping(false);
  const Duration before = replayed(exposed, layout);
  const auto context = static_cast<std::size_t>(GroupKind::Context);
  exposed.stack.message_slowdown[context] = 1.5;
  const Duration after = replayed(exposed, layout);
  double ring = 0;
  const LayerWork& work = plain.layer(layout, 0);
  for (const auto* items : {&work.forward, &work.backward}) {
    for (const WorkItem& i : *items) {
      if (i.message) ring += to_seconds(bench.times.time(layout, *i.message));
    }
  }
  CHECK(to_seconds(after - before) == Approx(8 * 0.5 * ring).epsilon(1e-6));
}

TEST_CASE("a stack that states no slow-down of messages is refused", "[expand]") {
  Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 1, 1, 1);
  layout.context = 2;
  const Bench bench(layout);
  TrainingJob job = test::small_job(test::small_model());
  job.stack.message_slowdown.fill(0);
  const Workload workload = expand(test::parts_of(std::move(job)), layout, bench.times);
  CHECK_THROWS_WITH(validate(workload), Catch::Contains("has a slow-down of 0, which is not "
                                                        "above 0"));
}

TEST_CASE("sends that do not overlap hold up their stage", "[expand]") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::OneForwardOneBackward, PipelineSchedule::ZeroBubbleH1}) {
    const Layout layout = pipeline(schedule, 4, 1, 8);
    TrainingJob job = test::small_job(test::small_model());
    const Duration beside = replayed(job, layout);
    job.overlap.pipeline = false;
    const Duration waiting = replayed(job, layout);
    CHECK(waiting > beside);
    const Bench bench(layout);
    const Duration hop =
        bench.cluster.cost.point_to_point(0, 1, test::parts_of(job).boundary_bytes(layout)).alone;
    CHECK(waiting - beside <= 2 * 2 * 8 * hop);
  }
}

TEST_CASE("operations tell layer, pass and micro-batch", "[expand]") {
  Layout layout = pipeline(PipelineSchedule::OneForwardOneBackward, 2, 1, 2);
  layout.tensor = 2;
  layout.sequence_parallel = true;
  const Bench bench(layout);
  const Workload workload =
      expand(test::parts_of(test::small_job(test::small_model())), layout, bench.times);
  CHECK(workload.name == "small");
  std::set<std::string> families;
  for (const GroupFamily& family : workload.groups) families.insert(family.name);
  CHECK(families == std::set<std::string>{"tp", "model"});
  CHECK(workload.programs[1].name == "stage 1");
  CHECK(workload.programs[1].ranks == std::vector<std::uint32_t>{2, 3});
  std::set<std::string> names;
  std::set<std::string> streams;
  for (const Operation& op : workload.programs[1].ops) {
    names.insert(op.name);
    streams.insert(op.stream);
  }
  for (const std::string name : {"qkv, layer 4, forward 1", "logits weights, head, backward 0",
                                 "f1.0", "b0.1", "norm of gradients", "optimizer"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
  CHECK(streams == std::set<std::string>{"compute", "tp", "model", "pp-recv-f0", "pp-send-b0"});
}
