// The router at the size of a large training cluster: 2,048 eight-GPU nodes, rail-optimised, and at
// that of a large expert-parallel group. Budgets: construction 50 ms, ring 150 ms, all-to-all 150
// ms.

#include <benchmark/benchmark.h>

#include "flyover/routing/router.hpp"
#include "flyover/topology/builders.hpp"

namespace {

using namespace flyover;
using namespace flyover::literals;

NodeSpec eight_gpus() {
  NodeSpec node;
  node.name = "eight-gpus";
  node.gpu.name = "gpu";
  node.gpu.scale_up = "nvlink4";
  node.gpus = node.nics = 8;
  node.scale_up = ScaleUp::Switched;
  node.lane_bandwidth = 25_GBps;
  node.links_per_switch = {5, 4, 4, 5};
  node.pcie_switches = 4;
  node.cpus = 2;
  node.pcie_bandwidth = 63_GBps;
  node.cpu_bandwidth = 40_GBps;
  node.nic_bandwidth = 50_GBps;
  return node;
}

Topology fat_tree(std::uint32_t nodes) {
  ClusterSpec spec;
  spec.nodes.push_back({eight_gpus(), nodes});
  spec.fabric.kind = FabricKind::FatTree;
  spec.fabric.radix = 128;
  return build_topology(spec);
}

Topology rail_cluster(std::uint32_t nodes, RoutingPolicy policy) {
  ClusterSpec spec;
  spec.nodes.push_back({eight_gpus(), nodes});
  spec.fabric.kind = FabricKind::RailOptimized;
  spec.fabric.nodes_per_unit = 32;
  spec.fabric.routing = policy;
  return build_topology(spec);
}

RoutingPolicy policy_of(const benchmark::State& state) {
  return state.range(0) == 0 ? RoutingPolicy::Adaptive : RoutingPolicy::Ecmp;
}

void router_construction(benchmark::State& state) {
  const Topology topology = rail_cluster(2048, RoutingPolicy::Adaptive);
  for (auto _ : state) {
    Router router(topology, {});
    benchmark::DoNotOptimize(router.rail(0));
  }
}
BENCHMARK(router_construction)->Unit(benchmark::kMillisecond);

// From the description of 131,072 GPUs in a fat tree to a router.
void set_up_fat_tree(benchmark::State& state) {
  for (auto _ : state) {
    const Topology topology = fat_tree(16384);
    Router router(topology, {});
    benchmark::DoNotOptimize(router.rail(0));
  }
}
BENCHMARK(set_up_fat_tree)->Unit(benchmark::kMillisecond);

// One ring per rail over all 16,384 GPUs: in node n, ring r goes round the node from GPU r and
// leaves from GPU r - 1 for GPU r - 1 of the next. 131,072 edges, nothing cached at the start.
void ring_all_reduce(benchmark::State& state) {
  constexpr std::uint32_t nodes = 2048, gpus = 8;
  const Topology topology = rail_cluster(nodes, policy_of(state));
  LoadMap load(topology.links.size());
  for (auto _ : state) {
    state.PauseTiming();
    const Router router(topology, {});
    state.ResumeTiming();
    for (std::uint32_t r = 0; r < gpus; ++r) {
      for (std::uint32_t n = 0; n < nodes; ++n) {
        for (std::uint32_t k = 0; k + 1 < gpus; ++k) {
          router.add_route(load, n * gpus + (r + k) % gpus, n * gpus + (r + k + 1) % gpus, 0.25, r);
        }
        // Enters and leaves on one rail, so that no byte changes rails in the fabric.
        const std::uint32_t last = (r + gpus - 1) % gpus;
        router.add_route(load, n * gpus + last, (n + 1) % nodes * gpus + last, 0.25, r);
      }
    }
    const std::vector<Hop> hops = load.take();
    benchmark::DoNotOptimize(hops.data());
  }
}
BENCHMARK(ring_all_reduce)->Arg(0)->Arg(1)->ArgName("ecmp")->Unit(benchmark::kMillisecond);

// All pairs of 1,024 GPUs, with PXN.
void all_to_all(benchmark::State& state) {
  constexpr std::uint32_t ranks = 1024;
  const Topology topology = rail_cluster(ranks / 8, policy_of(state));
  LoadMap load(topology.links.size());
  for (auto _ : state) {
    state.PauseTiming();
    const Router router(topology, {});
    state.ResumeTiming();
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint32_t to = 0; to < ranks; ++to) {
        if (from != to) router.add_route(load, from, to, 1.0 / ranks);
      }
    }
    const std::vector<Hop> hops = load.take();
    benchmark::DoNotOptimize(hops.data());
  }
}
BENCHMARK(all_to_all)->Arg(0)->Arg(1)->ArgName("ecmp")->Unit(benchmark::kMillisecond);

// One point-to-point route after another, as a replay asks for them.
void single_route(benchmark::State& state) {
  const Topology topology = rail_cluster(2048, policy_of(state));
  const Router router(topology, {});
  std::uint32_t rank = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(router.route(rank, (rank + 4099) % 16384).latency);
    rank = (rank + 1009) % 16384;
  }
}
BENCHMARK(single_route)->Arg(0)->Arg(1)->ArgName("ecmp")->Unit(benchmark::kMicrosecond);

}  // namespace
