// How fast layouts are listed, weighed and timed: what `flyover plan` is made of.

#include <benchmark/benchmark.h>

#include "flyover/cost/cost_model.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/study/layout_space.hpp"
#include "support/llama_405b.hpp"

namespace {

using namespace flyover;

LayoutSearch llama_405b(std::uint32_t gpus) {
  return {.model = io::load_model("llama3-405b"),
          .sequence = 8192,
          .gpus = gpus,
          .global_batch = 2048,
          .domain = 8,
          .sequence_parallel = true,
          .flash_attention = true,
          .choices = {}};
}

std::vector<Layout> all_layouts(const LayoutSpace& space) {
  Refusals refused;
  std::vector<Layout> layouts;
  for (const Layout& family : space.families(refused)) space.variants(family, layouts, refused);
  return layouts;
}

void list_layouts(benchmark::State& state) {
  const LayoutSpace space(llama_405b(16384));
  std::int64_t listed = 0;
  for (auto _ : state) listed += static_cast<std::int64_t>(all_layouts(space).size());
  state.SetItemsProcessed(listed);
}
BENCHMARK(list_layouts)->Unit(benchmark::kMillisecond);

// Pipeline 16 x 8 chunks, the ends without layers.
void memory_of_128_chunks(benchmark::State& state) {
  const LayoutSearch search = llama_405b(16384);
  const Layout layout = test::pipelined_405b(128);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        memory_use(search.model, layout, {}, search.sequence, Bytes{std::int64_t{80} << 30}));
  }
}
BENCHMARK(memory_of_128_chunks);

struct Cluster {
  Topology topology = io::load_topology("dgx-h100:128");
  Library library = io::read_library(io::library_document("nccl"));
  Router router{topology, {.pxn = library.settings.pxn}};
  CostModel cost{topology, router, library};
  SoftwareStack stack = io::load_stack(io::default_stack());
  StepParts parts{TrainingJob{.model = llama_405b(1024).model,
                              .sequence = 8192,
                              .options = stack.options,
                              .overlap = stack.overlap,
                              .stack = stack},
                  io::read_kernels(io::kernel_document(stack.kernels)), topology.gpu_models.front(),
                  topology.nodes[NodeId{0}].gpus};
  MessageTimes times{topology, cost};
  StepEstimator estimator{parts, times};
  std::vector<Layout> layouts;  // That fit.

  Cluster() {
    const LayoutSpace space(llama_405b(1024));
    for (Layout& layout : all_layouts(space)) {
      const Bytes capacity = topology.gpu_models.front().memory;
      if (memory_use(space.search().model, layout, stack.options, 8192, capacity).fits) {
        layouts.push_back(std::move(layout));
      }
    }
    // So that layers and messages are known.
    for (const Layout& layout : layouts) benchmark::DoNotOptimize(estimator.estimate(layout));
  }
};

const Cluster& cluster() {
  static const Cluster made;
  return made;
}

void estimate_known_layers(benchmark::State& state) {
  const Cluster& on = cluster();
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(on.estimator.estimate(on.layouts[next]));
    // A stride that meets all kinds of layouts soon.
    next = (next + 7919) % on.layouts.size();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(estimate_known_layers);

void bound_known_layers(benchmark::State& state) {
  const Cluster& on = cluster();
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(on.estimator.bound(on.layouts[next]));
    next = (next + 7919) % on.layouts.size();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(bound_known_layers);

}  // namespace
