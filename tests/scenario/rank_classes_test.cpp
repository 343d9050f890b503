// Reduced runs say what full ones do, and they are small where ranks behave alike.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/result_writer.hpp"
#include "flyover/io/timeline_writer.hpp"
#include "flyover/io/topology_reader.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"
#include "support/random_jobs.hpp"
#include "support/same_result.hpp"
#include "support/training.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;

namespace {

struct Sweep {
  std::uint32_t cases = 0;
  std::uint32_t reduced = 0;  // Cases in which ranks were alike.
};

Sweep sweep(std::uint64_t first_seed, std::uint32_t cases, std::uint32_t most_gpus) {
  Sweep sum;
  for (std::uint64_t seed = first_seed; sum.cases < cases; ++seed) {
    CAPTURE(seed);
    try {
      test::RandomJob job = test::random_job(seed, most_gpus);
      CAPTURE(job.description);
      const Cluster c(std::move(job.topology), test::library(job.library));
      const ReductionCheck check =
          verify_reduction({c.topology, c.cost}, {c.topology, c.cost}, job.workload);
      test::check_exact(check);
      ++sum.cases;
      if (check.reduced.result.classes < check.full.result.classes) ++sum.reduced;
    } catch (const InputError&) {       // No fabric of that form, no algorithm of the library.
    } catch (const SimulationError&) {  // A fault cut the cluster in two.
    }
    REQUIRE(seed < first_seed + 10 * cases);
  }
  return sum;
}

std::uint32_t classes(const Cluster& c, const Workload& workload) {
  const ReductionCheck check =
      verify_reduction({c.topology, c.cost}, {c.topology, c.cost}, workload);
  test::check_exact(check);
  CHECK(check.full.result.classes == workload.ranks);
  return check.reduced.result.classes;
}

}  // namespace

TEST_CASE("reduced and full runs agree in every start and end on drawn clusters and workloads",
          "[scenario][classes]") {
  const Sweep sum = sweep(1, 240, 64);
  CHECK(sum.reduced >= 80);
}

TEST_CASE("reduced and full runs agree on drawn clusters of up to 512 GPUs",
          "[.][scenario][classes][large]") {
  sweep(10'000, 300, 512);
}

namespace {

// 32 nodes of 8 GPUs on 8 rails: an all-reduce inside nodes, then one between them.
Workload homogeneous(std::uint32_t nodes) {
  Workload workload;
  workload.name = "homogeneous";
  workload.ranks = 8 * nodes;
  workload.groups = {{"tp", {}}, {"dp", std::vector<std::vector<std::uint32_t>>(8)}};
  Program program{"p", {}, {}};
  for (std::uint32_t r = 0; r < workload.ranks; ++r) {
    if (r % 8 == 0) workload.groups[0].groups.emplace_back();
    workload.groups[0].groups.back().push_back(r);
    workload.groups[1].groups[r % 8].push_back(r);
    program.ranks.push_back(r);
  }
  Operation op;
  op.id = op.name = "k";
  op.kind = OpKind::Compute;
  op.dtype = "bf16";
  op.flops = Flops{1e12};
  op.stream = "compute";
  program.ops.push_back(op);
  for (std::uint32_t family = 0; family < 2; ++family) {
    Operation call;
    call.id = call.name = fmt::format("c{}", family);
    call.kind = OpKind::Collective;
    call.bytes = 64_MiB;
    call.group = family;
    call.stream = "comm";
    call.after = {0};
    program.ops.push_back(call);
  }
  workload.programs = {program};
  return workload;
}

Topology rails(std::uint32_t nodes) {
  return test::rails(nodes, 450_GBps, 50_GBps, 500ns, 1us);
}

}  // namespace

TEST_CASE("the ranks of a homogeneous job on rails are one class", "[scenario][classes]") {
  const std::uint32_t nodes = GENERATE(2U, 4U, 32U, 40U);
  const Cluster c(rails(nodes), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  CHECK(classes(c, homogeneous(nodes)) == 1);
}

TEST_CASE("a slow link splits off what it touches, and no more", "[scenario][classes]") {
  Topology topology = rails(8);
  // The ranks of the rail wait for its slowest NIC, and those of all nodes for them.
  Override slow;
  slow.selector = "nic[node=3,index=5]";
  slow.factor = 0.5;
  apply_override(topology, slow);
  const Cluster c(std::move(topology), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  CHECK(classes(c, homogeneous(8)) == 2);
}

TEST_CASE("a node of slow GPUs splits off, and no more", "[scenario][classes]") {
  Topology topology = rails(8);
  GpuModel slow = test::plain_gpu();
  slow.name = "slow";
  slow.flops["bf16"] = FlopRate{80e12};
  topology.gpu_models.push_back(slow);
  topology.nodes[NodeId{2}].gpu_model = 1;
  const Cluster c(std::move(topology), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  CHECK(classes(c, homogeneous(8)) == 2);
}

TEST_CASE("a straggler splits off its node, its rail, and itself", "[scenario][classes]") {
  Topology topology = rails(8);
  topology.slow_gpu(17, 0.8, 1);
  const Cluster c(std::move(topology), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  // Itself, its node, its rail, everybody else: all of them begin their kernels alike.
  CHECK(classes(c, homogeneous(8)) == 4);
}

TEST_CASE("classes do not depend on the order of programs and groups", "[scenario][classes]") {
  for (std::uint64_t seed = 500; seed < 520; ++seed) {
    test::RandomJob job = test::random_job(seed, 32);
    CAPTURE(job.description);
    try {
      const Cluster c(job.topology, test::library(job.library));
      const Replay a = replay(c.topology, c.cost, job.workload, {.timeline = true});
      const Replay b =
          replay(c.topology, c.cost, test::shuffled(job.workload, seed), {.timeline = true});
      CHECK(io::result_json(a.result) == io::result_json(b.result));
      CHECK(io::timeline_json(a.trace, a.result) == io::timeline_json(b.trace, b.result));
    } catch (const InputError&) {
    } catch (const SimulationError&) {
    }
  }
}

TEST_CASE("a deadlock is told rank by rank", "[scenario][classes]") {
  const Cluster c(rails(2), test::library("nccl"));
  Workload workload = homogeneous(2);
  workload.programs[0].ranks.pop_back();
  const auto message = [&](bool reduce) {
    try {
      static_cast<void>(replay(c.topology, c.cost, workload, {.reduce = reduce}));
    } catch (const SimulationError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(message(true) == message(false));
  CHECK(message(true).starts_with("deadlock at"));
}

TEST_CASE("tracks of classes say for how many ranks they stand", "[scenario][classes]") {
  const Cluster c(rails(4), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  const Replay replayed = replay(c.topology, c.cost, homogeneous(4), {.timeline = true});
  CHECK(replayed.trace.tracks.front().process == "rank 0 (node0/gpu0), stands for 32 ranks: 0-31");

  // A straggler parts its rail and its node from the rest.
  Topology topology = rails(4);
  topology.slow_gpu(17, 0.8, 1);
  const Cluster slow(std::move(topology), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  const Replay parted = replay(slow.topology, slow.cost, homogeneous(4), {.timeline = true});
  std::vector<std::string> processes;
  for (const Track& track : parted.trace.tracks) {
    if (processes.empty() || processes.back() != track.process) processes.push_back(track.process);
  }
  CHECK(processes == std::vector<std::string>{
                         "rank 0 (node0/gpu0), stands for 21 ranks: 0, 2-8, 10-15, 24, 26-31",
                         "rank 1 (node0/gpu1), stands for 3 ranks: 1, 9, 25",
                         "rank 16 (node2/gpu0), stands for 7 ranks: 16, 18-23",
                         "rank 17 (node2/gpu1)", "links"});
}

namespace {

// Every dimension of parallelism, on `gpus` GPUs.
std::vector<Layout> layouts(std::uint32_t gpus, bool experts) {
  std::vector<Layout> list;
  for (const std::uint32_t tensor : {1U, 2U, 6U}) {
    for (const std::uint32_t context : {1U, 2U}) {
      for (const auto& [pipeline, chunks, schedule] :
           {std::tuple{1U, 1U, PipelineSchedule::OneForwardOneBackward},
            std::tuple{2U, 2U, PipelineSchedule::Interleaved},
            std::tuple{4U, 1U, PipelineSchedule::ZeroBubbleH1},
            std::tuple{4U, 1U, PipelineSchedule::GPipe},
            std::tuple{2U, 2U, PipelineSchedule::ZeroBubbleV},
            std::tuple{4U, 1U, PipelineSchedule::DualPipe},
            std::tuple{2U, 2U, PipelineSchedule::DualPipeV}}) {
        for (const Sharding sharding :
             {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
          Layout layout;
          layout.tensor = tensor;
          layout.sequence_parallel = tensor > 1;
          layout.context = context;
          layout.pipeline = pipeline;
          layout.virtual_stages = chunks;
          layout.schedule = schedule;
          layout.sharding = sharding;
          layout.expert = experts ? 2 : 1;
          if (gpus % (tensor * context * pipeline) != 0) continue;
          const bool fused = has_fused_steps(schedule);
          if (fused && (sharding == Sharding::Gradients || sharding == Sharding::Parameters)) {
            continue;
          }
          layout.data = gpus / (tensor * context * pipeline);
          list.push_back(test::with_batch(layout, fused ? 2 * pipeline : 4));
        }
      }
    }
  }
  return list;
}

}  // namespace

TEST_CASE("training steps in all dimensions of parallelism are reduced exactly",
          "[scenario][classes]") {
  const bool experts = GENERATE(false, true);
  const std::uint32_t nodes = GENERATE(3U, 4U);
  const bool degraded = GENERATE(false, true);
  Topology topology = rails(nodes);
  if (degraded) {
    Override slow;
    slow.selector = "nic[node=1,index=2]";
    slow.factor = 0.5;
    apply_override(topology, slow);
  }
  const Cluster c(std::move(topology), test::library("nccl"));
  const MessageTimes times(c.topology, c.cost);
  const TrainingJob job =
      test::small_job(experts ? test::small_expert_model() : test::small_model());
  const StepParts parts = test::parts_of(job);
  std::uint32_t steps = 0;
  for (const Layout& layout : layouts(8 * nodes, experts)) {
    if (!problems(layout, job.model, job.sequence, 8 * nodes).empty()) continue;
    CAPTURE(nodes, degraded, layout.tensor, layout.context, layout.pipeline,
            to_string(layout.schedule), to_string(layout.sharding));
    CHECK(classes(c, expand(parts, layout, times)) <= 8 * nodes);
    ++steps;
  }
  CHECK(steps >= 10);
}

TEST_CASE("a step whose tensor groups are nodes has a few classes of ranks a stage",
          "[scenario][classes]") {
  // The ring of the all-reduce over all ranks enters and leaves a node at ranks of its own.
  const Cluster c(rails(8), test::library("nccl", {{"NCCL_ALGO", "Ring"}}));
  const MessageTimes times(c.topology, c.cost);
  TrainingJob job = test::small_job(io::load_model("llama3-8b"));
  job.model.layers = 16;
  const StepParts parts = test::parts_of(job);
  Layout layout;
  layout.tensor = 8;
  layout.sequence_parallel = true;
  layout.pipeline = 4;
  layout.virtual_stages = 2;
  layout.schedule = PipelineSchedule::Interleaved;
  layout.data = 2;
  layout = test::with_batch(layout, 8);
  REQUIRE(problems(layout, job.model, job.sequence, 64).empty());
  CHECK(classes(c, expand(parts, layout, times)) == 16);
}
