// Runs in which what repeats is played a few times say what those of all copies say.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/workload/repetition.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"
#include "support/random_jobs.hpp"
#include "support/same_result.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;

namespace {

std::uint64_t held(const Workload& workload) {
  std::uint64_t sum = 0;
  for (const Program& program : workload.programs) sum += program.ops.size();
  return sum;
}

std::uint64_t left_out(const Workload& workload) {
  std::uint64_t sum = 0;
  for (const Section& section : workload.sections) sum += section.elided;
  return sum;
}

// Reduced and full runs of the short form, and a run of the long one.
ReductionCheck check_short(const Cluster& c, const Workload& workload) {
  ReductionCheck check = verify_reduction({c.topology, c.cost}, {c.topology, c.cost}, workload);
  test::check_exact(check);
  return check;
}

Topology two_nodes() {
  return test::rails(2, 450_GBps, 50_GBps, 500ns, 1us);
}

Layout layout_of(std::uint32_t tensor, std::uint32_t pipeline, std::uint32_t chunks,
                 PipelineSchedule schedule, Sharding sharding, std::uint32_t micro_batches) {
  Layout layout;
  layout.tensor = tensor;
  layout.sequence_parallel = tensor > 1;
  layout.pipeline = pipeline;
  layout.virtual_stages = chunks;
  layout.schedule = schedule;
  layout.sharding = sharding;
  layout.data = 16 / (tensor * pipeline);
  return test::with_batch(layout, micro_batches);
}

const std::vector<std::tuple<std::uint32_t, std::uint32_t, PipelineSchedule>> schedules{
    {1U, 1U, PipelineSchedule::OneForwardOneBackward},
    {4U, 1U, PipelineSchedule::OneForwardOneBackward},
    {2U, 2U, PipelineSchedule::Interleaved},
    {4U, 2U, PipelineSchedule::Interleaved},
    {4U, 1U, PipelineSchedule::GPipe},
    {4U, 1U, PipelineSchedule::ZeroBubbleH1},
    {2U, 2U, PipelineSchedule::ZeroBubbleV},
    {4U, 1U, PipelineSchedule::DualPipe},
    {2U, 2U, PipelineSchedule::DualPipeV}};

}  // namespace

TEST_CASE("a training step with micro-batches left out is the one with all, operation by operation",
          "[scenario][recurrence]") {
  const auto [pipeline, chunks, schedule] = GENERATE(from_range(schedules));
  const Sharding sharding =
      GENERATE(Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters);
  const bool overlap = GENERATE(false, true);
  if (has_fused_steps(schedule) &&
      (sharding == Sharding::Gradients || sharding == Sharding::Parameters)) {
    return;
  }
  const Cluster c(two_nodes(), test::library("nccl"));
  const MessageTimes times(c.topology, c.cost);
  TrainingJob job = test::small_job(test::small_model());
  job.overlap.parameters = job.overlap.gradients = job.overlap.pipeline = overlap;
  const StepParts parts = test::parts_of(job);
  std::uint64_t folded = 0;
  for (const std::uint32_t micro_batches : {1U, 2U, 4U, 7U, 16U, 21U, 32U, 40U}) {
    const Layout layout = layout_of(2, pipeline, chunks, schedule, sharding, micro_batches);
    if (!problems(layout, job.model, job.sequence, 16).empty()) continue;
    CAPTURE(pipeline, to_string(schedule), to_string(sharding), overlap, micro_batches);
    const Workload few = expand(parts, layout, times);
    const Workload all = expand(parts, layout, times, MicroBatches::All);
    test::check_same_programs(canonical(unrolled(few)), canonical(all));
    const ReductionCheck check = check_short(c, few);
    test::check_same_results(replay(c.topology, c.cost, all).result, check.reduced.result);
    folded += left_out(few);
    if (micro_batches == 40) {
      CHECK(held(few) * 3 < held(all) * 2);
      // It was played short: the long way has many more events. Stages of gpipe run ahead of slower
      // ones, ever further, and so do gathers of parameters.
      const bool steady = schedule != PipelineSchedule::GPipe &&
                          !(pipeline > 1 && sharding == Sharding::Parameters && overlap);
      if (!steady) continue;
      CHECK(check.reduced.result.events * 3 < replay(c.topology, c.cost, all).result.events * 2);
    }
  }
  CHECK(folded > 0);
}

TEST_CASE("repeated programs are played a few times", "[scenario][recurrence]") {
  const std::uint32_t repeat = GENERATE(1U, 4U, 5U, 6U, 50U);
  CAPTURE(repeat);
  const Cluster c(two_nodes(), test::library("nccl"));
  const Workload workload = c.read(fmt::format(R"({{"ranks":16,
    "groups":{{"tp":["0-7","8-15"],"dp":["0,8","1,9","2,10","3,11","4,12","5,13","6,14","7,15"]}},
    "programs":[
      {{"ranks":"0-7","repeat":{0},"ops":[
        {{"id":"k","op":"compute","flops":"100 GFLOP","bytes":"30 MB","dtype":"bf16"}},
        {{"id":"x","op":"all_reduce","bytes":"16 MiB","group":"tp","after":["k"]}},
        {{"id":"g","op":"all_reduce","bytes":"5 MiB","group":"dp","stream":"dp","after":["k"]}},
        {{"id":"s","op":"send","peer":"+8","bytes":"3 MiB","stream":"p2p"}}]}},
      {{"ranks":"8-15","repeat":{0},"ops":[
        {{"id":"k","op":"compute","flops":"130 GFLOP","bytes":"20 MB","dtype":"bf16"}},
        {{"id":"x","op":"all_reduce","bytes":"16 MiB","group":"tp","after":["k"]}},
        {{"id":"r","op":"recv","peer":"-8","bytes":"3 MiB","stream":"p2p"}},
        {{"id":"g","op":"all_reduce","bytes":"5 MiB","group":"dp","stream":"dp"}}]}}]}})",
                                               repeat));
  CHECK(held(workload) == std::min(repeat, 4U) * 8U);
  const ReductionCheck check = check_short(c, workload);
  CHECK(check.full.result.operations == std::uint64_t{repeat} * 64);
}

TEST_CASE("collectives that repeat a million times cost as a few", "[scenario][recurrence]") {
  const Cluster c(two_nodes(), test::library("nccl"));
  const auto read = [&](std::uint32_t repeat) {
    return c.read(fmt::format(R"({{"collectives":[
      {{"op":"all_reduce","bytes":"16 MiB","repeat":{0}}},
      {{"op":"all_gather","bytes":"8 MiB","repeat":2}},
      {{"op":"all_reduce","bytes":"1 MiB","repeat":{0}}}]}})",
                              repeat));
  };
  check_short(c, read(20));
  const Result many = replay(c.topology, c.cost, read(1'000'000)).result;
  const Result some = replay(c.topology, c.cost, read(10)).result;
  const Result more = replay(c.topology, c.cost, read(11)).result;
  CHECK(many.events == some.events);
  CHECK(many.operations == 16 * 2'000'002U);
  CHECK(many.time == some.time + 999'990 * (more.time - some.time));
}

TEST_CASE("programs that run on without a rhythm in common are played to the end",
          "[scenario][recurrence]") {
  const Cluster c(two_nodes(), test::library("nccl"));
  // The second one's kernels are beside the first one's all-reduces, ever later.
  const Workload workload = c.read(R"({"ranks":16,
    "groups":{"half":["0-7"]},
    "programs":[
      {"ranks":"0-7","repeat":40,"ops":[
        {"id":"x","op":"all_reduce","bytes":"16 MiB","group":"half"},
        {"id":"k","op":"copy","bytes":"3 MB","after":["x"]}]},
      {"ranks":"8-15","repeat":40,"ops":[
        {"id":"k","op":"copy","bytes":"5 MB"}]}]})");
  CHECK(left_out(workload) == 36);
  const ReductionCheck check = check_short(c, workload);
  CHECK(check.reduced.result.operations == 40 * 8 * 3);
}

TEST_CASE("a run that needs some copies to settle is given more", "[scenario][recurrence]") {
  const Cluster c(two_nodes(), test::library("nccl"));
  // The delay runs ahead of the calls by less every time, until they take turns.
  const Workload workload = c.read(R"({"ranks":16,"groups":{"half":["0-7"]},
    "programs":[
      {"ranks":"8-15","ops":[{"id":"once","op":"delay","duration":"2ms"}]},
      {"ranks":"0-7","repeat":60,"ops":[
        {"id":"x","op":"all_reduce","bytes":"16 MiB","group":"half"}]}]})");
  const ReductionCheck check = check_short(c, workload);
  CHECK(check.reduced.result.events < check.full.result.events);
}

namespace {

// The programs several times over, each stream in its own time.
Workload copied(const Workload& once, std::uint32_t held, std::uint64_t elided) {
  Workload out = once;
  for (Program& program : out.programs) {
    const std::vector<Operation> ops = std::move(program.ops);
    program.ops.clear();
    for (std::uint32_t copy = 0; copy < held; ++copy) {
      for (Operation op : ops) {
        op.id += fmt::format("#{}", copy + 1);
        op.section = 0;
        op.copy = copy;
        for (std::uint32_t& other : op.after)
          other += copy * static_cast<std::uint32_t>(ops.size());
        program.ops.push_back(std::move(op));
      }
    }
  }
  out.sections = {{elided, "copies", 1}};
  return out;
}

struct Drawn {
  std::uint32_t cases = 0;
  std::uint32_t shortened = 0;
};

Drawn draw(std::uint64_t first_seed, std::uint32_t cases, std::uint32_t most_gpus) {
  Drawn drawn;
  for (std::uint64_t seed = first_seed; drawn.cases < cases; ++seed) {
    CAPTURE(seed);
    REQUIRE(seed < first_seed + 10 * cases);
    try {
      test::RandomJob job = test::random_job(seed, most_gpus);
      CAPTURE(job.description);
      const Workload workload = copied(job.workload, 4, 1 + seed % 40);
      const bool regular = std::ranges::all_of(
          workload.programs, [](const Program& p) { return irregularity(p, 0).empty(); });
      if (!regular) continue;
      const Cluster c(std::move(job.topology), test::library(job.library));
      const ReductionCheck check = check_short(c, workload);
      ++drawn.cases;
      // With as many events for each copy.
      const Result long_way = replay(c.topology, c.cost, unrolled(workload)).result;
      if (check.reduced.result.events < long_way.events) ++drawn.shortened;
    } catch (const InputError&) {       // No fabric of that form, no algorithm of the library.
    } catch (const SimulationError&) {  // A fault cut the cluster in two.
    }
  }
  return drawn;
}

}  // namespace

TEST_CASE("drawn workloads that repeat on drawn clusters come out as the long way",
          "[scenario][recurrence]") {
  const Drawn drawn = draw(1, 150, 32);
  CHECK(drawn.shortened >= 20);
}

TEST_CASE("drawn workloads that repeat come out as the long way on larger clusters",
          "[.][scenario][recurrence][large]") {
  draw(20'000, 400, 128);
}

TEST_CASE("the timeline says what was left out, and goes on with its number",
          "[scenario][recurrence]") {
  const Cluster c(two_nodes(), test::library("nccl"));
  const MessageTimes times(c.topology, c.cost);
  const TrainingJob job = test::small_job(test::small_model());
  const StepParts parts = test::parts_of(job);
  const Layout layout =
      layout_of(2, 4, 1, PipelineSchedule::OneForwardOneBackward, Sharding::Optimizer, 200);
  const Workload workload = expand(parts, layout, times);
  const Replay done = replay(c.topology, c.cost, workload, {.timeline = true});
  const std::uint64_t more = left_out(workload);
  std::vector<Time> ends(done.trace.tracks.size());
  std::size_t elided = 0;
  bool last = false;
  for (const Slice& slice : done.trace.slices) {
    CHECK(slice.begin >= ends[slice.track]);
    ends[slice.track] = slice.end;
    if (slice.category == "elided") {
      CHECK(slice.name == fmt::format("{} more micro-batches", more));
      ++elided;
    }
    last = last || slice.name.ends_with("backward 199");
  }
  CHECK(elided > 8);
  CHECK(last);
}
