// Whole jobs at scale: from the description of a cluster to the end of a collective.

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "flyover/collective/algorithms.hpp"
#include "flyover/cost/cost_model.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/io/workload_reader.hpp"
#include "flyover/layout/expand.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/simulate/chunk_replay.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/topology/builders.hpp"
#include "support/clusters.hpp"
#include "support/llama_405b.hpp"

namespace {

using namespace flyover;
using namespace flyover::literals;

Library library(const std::string& name, const char* algorithm) {
  Library out = io::read_library(io::library_document(name));
  set_variable(out.settings, "NCCL_ALGO", algorithm);
  return out;
}

Workload one_all_reduce(std::uint32_t gpus) {
  return io::read_workload(
      io::Document::parse("bench",
                          R"({"collectives":[{"op":"all_reduce","bytes":"1 GiB","group":"all"}]})"),
      gpus);
}

// One ring all-reduce of 1 GiB on a SuperPOD, all edges explicit, topology and routing included.
void ring_all_reduce_superpod(benchmark::State& state) {
  const Library nccl = library("nccl", "Ring");
  for (auto _ : state) {
    const Topology topology =
        io::load_topology(fmt::format("superpod-h100:{}", state.range(0) / 8));
    const Router router(topology, {});
    const CostModel cost(topology, router, nccl);
    const Replay done =
        replay(topology, cost, one_all_reduce(static_cast<std::uint32_t>(topology.gpus.size())));
    benchmark::DoNotOptimize(done.result.time);
  }
}
BENCHMARK(ring_all_reduce_superpod)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

// The same on a flat switch, as a stream: the replay alone.
void ring_flat_as_stream(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const Topology topology = test::crossbar(gpus, 450_GBps, 1us);
  const Library ideal = library("ideal", "Ring");
  const Workload workload = one_all_reduce(gpus);
  for (auto _ : state) {
    const Router router(topology, {});
    const CostModel cost(topology, router, ideal);
    benchmark::DoNotOptimize(replay(topology, cost, workload).result.time);
  }
}
BENCHMARK(ring_flat_as_stream)->Arg(1024)->Unit(benchmark::kMillisecond);

// ... and chunk by chunk, schedule included: 2(n-1)n messages.
void ring_flat_by_chunks(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const Topology topology = test::crossbar(gpus, 450_GBps, 1us);
  const Router router(topology, {});
  const Library ideal = library("ideal", "Ring");
  const CostModel cost(topology, router, ideal);
  std::vector<std::uint32_t> ranks(gpus);
  std::iota(ranks.begin(), ranks.end(), 0U);
  const CollectiveShape shape{.op = CollectiveOp::AllReduce, .group = cost.shape(ranks)};
  std::uint64_t events = 0;
  for (auto _ : state) {
    const Schedule schedule =
        find_algorithm(CollectiveOp::AllReduce, AlgorithmId::Ring)->schedule(shape, 1_GiB);
    const ChunkReplay done = replay_chunks(topology, router, schedule, ranks);
    events = done.events;
    benchmark::DoNotOptimize(done.time);
  }
  state.counters["events"] = static_cast<double>(events);
}
BENCHMARK(ring_flat_by_chunks)->Arg(512)->Arg(1024)->Unit(benchmark::kMillisecond);

// All-to-all as a stream, all pairs routed.
void all_to_all_rails(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const Topology topology = test::rails(gpus / 8, 450_GBps, 50_GBps, 500ns, 1us);
  const Library ideal = library("ideal", "direct");
  const Workload workload = io::read_workload(
      io::Document::parse(
          "bench", R"({"collectives":[{"op":"all_to_all","bytes":"256 MiB","group":"all"}]})"),
      gpus);
  for (auto _ : state) {
    const Router router(topology, {});
    const CostModel cost(topology, router, ideal);
    benchmark::DoNotOptimize(replay(topology, cost, workload).result.time);
  }
}
BENCHMARK(all_to_all_rails)->Arg(256)->Arg(512)->Arg(1024)->Unit(benchmark::kMillisecond);

// One table of `flyover bench`: 31 sizes from 8 bytes to 8 GiB on two DGX H100. Budget: 20 ms after
// start-up. Cold routes and traces the group first; built has done so.
void collective_table(benchmark::State& state) {
  const bool cold = state.range(0) == 1;
  const Topology topology = io::load_topology("dgx-h100:2");
  const Library nccl = io::read_library(io::library_document("nccl"));
  CollectiveCall call;
  call.ranks.resize(topology.gpus.size());
  std::iota(call.ranks.begin(), call.ranks.end(), 0U);
  const auto table = [&](const CostModel& cost) {
    for (int power = 3; power <= 33; ++power) {
      call.bytes = Bytes{std::int64_t{1} << power};
      benchmark::DoNotOptimize(cost.choose(call).plan.alone);
    }
  };
  const Router built_router(topology, {});
  const CostModel built(topology, built_router, nccl);
  for (auto _ : state) {
    if (cold) {
      const Router router(topology, {});
      table(CostModel(topology, router, nccl));
    } else {
      table(built);
    }
  }
}
BENCHMARK(collective_table)->Arg(0)->Arg(1)->ArgName("cold")->Unit(benchmark::kMillisecond);

// A graph replay's cost per operation: 512 ranks in groups of 8, kernels and collectives by turns.
void graph_replay(benchmark::State& state) {
  const Topology topology = test::rails(64, 450_GBps, 50_GBps, 500ns, 1us);
  const Library nccl = io::read_library(io::library_document("nccl"));
  const Router router(topology, {});
  const CostModel cost(topology, router, nccl);
  std::string groups;
  for (int g = 0; g < 64; ++g)
    groups += fmt::format("{}\"{}-{}\"", g == 0 ? "" : ",", 8 * g, 8 * g + 7);
  const Workload workload = io::read_workload(
      io::Document::parse("bench", fmt::format(R"({{"ranks":512,"groups":{{"tp":[{}]}},"programs":[
        {{"ranks":"0-511","repeat":200,"ops":[
          {{"id":"k","op":"compute","flops":"100 GFLOP","dtype":"bf16"}},
          {{"id":"x","op":"all_reduce","bytes":"16 MiB","group":"tp","after":["k"]}}]}}]}})",
                                               groups)),
      512);
  std::uint64_t operations = 0;
  for (auto _ : state) {
    const Replay done = replay(topology, cost, workload);
    operations += done.result.operations;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(operations));
}
BENCHMARK(graph_replay)->Unit(benchmark::kMillisecond);

// A training step of Llama-3 405B (TP8, PP16, the rest DP, interleaved) on a three-tier fat tree of
// DGX H100, from the cluster's description to the result. `faults`: a NIC down, a slow GPU, and a
// spine at half of its rate.
void training_step_405b(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  TrainingJob job;
  job.model = io::load_model("llama3-405b");
  job.sequence = 8192;
  job.stack = io::load_stack("nemo-25");
  job.options = job.stack.options;
  job.overlap = job.stack.overlap;
  const KernelModel kernels = io::read_kernels(io::kernel_document(job.stack.kernels));
  const Layout layout = test::pipelined_405b(gpus / 128);
  const Library nccl = io::read_library(io::library_document("nccl-2.27"));
  const std::string cluster = fmt::format(
      R"({{"name":"fat-tree","node":{{"preset":"dgx-h100"}},"nodes":{},"fabric":{{"type":"fat-tree",
        "preset":"ndr","routing":"adaptive","radix":{}}}}})",
      gpus / 8, gpus > 65536 ? 128 : 64);
  std::uint32_t classes = 0;
  for (auto _ : state) {
    Topology topology = io::read_topology(
        io::Document::parse("bench", cluster),
        state.range(1) != 0 ? io::FabricDetail::Cables : io::FabricDetail::Trunks);
    if (state.range(1) != 0) {
      Override down;
      down.selector = "nic[node=5,index=3]";
      down.up = false;
      apply_override(topology, down);
      Override degraded;
      degraded.selector = "spine[index=1]";
      degraded.factor = 0.5;
      apply_override(topology, degraded);
      Override straggler;
      straggler.selector = "gpu[node=9,index=3]";
      straggler.compute_factor = 0.9;
      apply_override(topology, straggler);
    }
    const Router router(topology, {});
    const CostModel cost(topology, router, nccl);
    const StepParts parts(job, kernels, topology.gpu_model(0), 8);
    const MessageTimes times(topology, cost);
    const Replay done = replay(topology, cost, expand(parts, layout, times));
    classes = done.result.classes;
    benchmark::DoNotOptimize(done.result.time);
  }
  state.counters["classes"] = classes;
}
BENCHMARK(training_step_405b)
    ->ArgNames({"gpus", "faults"})
    ->Args({1024, 0})
    ->Args({16384, 0})
    ->Args({16384, 1})
    ->Args({131072, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
