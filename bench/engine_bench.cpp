// The event queue and the fluid solver alone.

#include <cstdint>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "flyover/engine/event_queue.hpp"
#include "flyover/engine/fluid.hpp"

namespace {

using namespace flyover;

// The hold model: with `pending` events waiting, pop one and schedule another a random delay later.
void event_queue_hold(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::vector<Duration> delays(1 << 16);
  for (Duration& d : delays) d = Duration{static_cast<std::int64_t>(random() % 1'000'000'000)};
  std::size_t next = 0;
  const auto delay = [&] { return delays[next++ % delays.size()]; };

  EventQueue queue;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    queue.schedule(queue.now() + delay(), Phase::Start, 0, 0);
  }
  Event event;
  for (std::int64_t i = 0; i < 2 * state.range(0); ++i) {  // To the steady state.
    queue.pop(event);
    queue.schedule(queue.now() + delay(), Phase::Start, 0, 0);
  }
  for (auto _ : state) {
    queue.pop(event);
    benchmark::DoNotOptimize(event.payload);
    queue.schedule(queue.now() + delay(), Phase::Start, 0, 0);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_queue_hold)->Arg(1'000)->Arg(1'000'000);

// One stream ends and another starts among 100,000 others in disjoint groups of 8, each group on
// four links of its own.
void solver_start_and_end(benchmark::State& state) {
  constexpr std::uint32_t groups = 12'500;
  constexpr std::uint32_t links = 4;
  EventQueue queue;
  FluidSystem fluid(queue, 0, 1);
  std::vector<std::vector<Load>> loads(groups);
  for (auto& group : loads) {
    for (std::uint32_t l = 0; l < links; ++l) group.push_back({fluid.add_resource(50e9), 1});
  }
  std::uint64_t key = 0;
  for (const auto& group : loads) {
    for (int s = 0; s < 8; ++s) fluid.start({.loads = group, .work = 1e15, .key = key++});
  }
  Event event;
  const auto settle = [&] {
    while (queue.pop(event)) {
      if (event.kind == 1) {
        fluid.solve();
        return;
      }
      fluid.ended(event);
    }
  };
  settle();
  std::mt19937_64 random(1);
  for (auto _ : state) {
    // The visitor's work makes it end within the picosecond after its rate is known.
    fluid.start({.loads = loads[random() % groups], .work = 1e-4, .key = key++});
    settle();  // The solve of its start ...
    settle();  // ... and, after its end, of what it leaves.
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(solver_start_and_end);

// One stream ends and another starts in a system where everybody depends on everybody: 512 streams,
// each over 8 neighbours of 64 links of unequal capacity, so that rates take many rounds.
void solver_many_bottlenecks(benchmark::State& state) {
  constexpr std::uint32_t links = 64, streams = 512, length = 8;
  EventQueue queue;
  FluidSystem fluid(queue, 0, 1);
  std::vector<ResourceId> ring;
  for (std::uint32_t l = 0; l < links; ++l) ring.push_back(fluid.add_resource(1e9 * (l % 16 + 4)));
  std::vector<std::vector<Load>> loads(streams);
  for (std::uint32_t s = 0; s < streams; ++s) {
    for (std::uint32_t k = 0; k < length; ++k) {
      loads[s].push_back({ring[(s * 7 + k) % links], 1.0 / (k % 3 + 1)});
    }
  }
  std::uint64_t key = 0;
  for (const auto& path : loads) fluid.start({.loads = path, .work = 1e12, .key = key++});
  Event event;
  const auto settle = [&] {
    while (queue.pop(event)) {
      if (event.kind == 1) {
        fluid.solve();
        return;
      }
      fluid.ended(event);
    }
  };
  settle();
  for (auto _ : state) {
    fluid.start({.loads = loads[key % streams], .work = 1e-6, .key = key});
    ++key;
    settle();
    settle();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(solver_many_bottlenecks)->Unit(benchmark::kMicrosecond);

}  // namespace
