#include "flyover/io/training_step.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/layout/expand.hpp"
#include "flyover/layout/message_times.hpp"

namespace flyover::io {

namespace {

// Of one rank of every stage: about 400 bytes each, and a few events for every class of ranks.
constexpr std::uint64_t max_operations = 5'000'000;

}  // namespace

const GpuModel& bought_gpu_model(const Topology& topology) {
  const GpuModel& first = topology.bought_gpu_model(0);
  for (std::uint32_t rank = 1; rank < topology.gpus.size(); ++rank) {
    const GpuModel& other = topology.bought_gpu_model(rank);
    if (!(other == first)) {
      throw InputError(
          fmt::format("a training layout needs GPUs of one kind: rank 0 has {}, rank {} has {}",
                      first.name, rank, other.name));
    }
  }
  return first;
}

const GpuModel& only_gpu_model(const Topology& topology) {
  for (std::uint32_t rank = 0; rank < topology.gpus.size(); ++rank) {
    const GpuModel& gpu = topology.gpu_model(rank);
    if (gpu.compute_factor < 1 || gpu.memory_factor < 1) {
      throw InputError(fmt::format(
          "{} is slower than bought (compute_factor {}, memory_factor {}), which only a replay "
          "tells (flyover run)",
          vertex_name(topology, topology.gpus[rank]), gpu.compute_factor, gpu.memory_factor));
    }
  }
  return bought_gpu_model(topology);
}

void suit_gpu(TrainingOptions& options, const GpuModel& gpu) {
  if (bytes_per_element(options.compute) < 2 && gpu.architecture == "hopper") {
    options.transposed_quantised = true;
  }
}

TrainingStep training_step(const TrainingWorkload& training, const Topology& topology,
                           const CostModel& cost) {
  const Layout& layout = training.layout;
  require(ranks(layout) == topology.gpus.size(), "training_step: a rank for each GPU");
  const GpuModel& gpu = bought_gpu_model(topology);
  TrainingJob job = training.job;
  suit_gpu(job.options, gpu);
  const StepParts parts(job, read_kernels(kernel_document(job.stack.kernels)), gpu,
                        topology.nodes[NodeId{0}].gpus);
  const MessageTimes times(topology, cost);
  // Ranks of a stage share their program.
  const std::uint64_t operations =
      expanded_operations(parts, layout, times) / (ranks(layout) / layout.pipeline);
  if (operations > max_operations) {
    throw InputError(fmt::format(
        "{}: the programs of {} pipeline stages have {} operations, even with few micro-batches "
        "written down, more than the {} that are replayed",
        training.name, layout.pipeline, operations, max_operations));
  }
  TrainingStep step;
  step.workload = expand(parts, layout, times);
  step.workload.name = training.name;
  step.memory = memory_use(job.model, layout, job.options, job.sequence, gpu.memory);
  step.warnings = training.assumptions;
  const auto slow_memory = std::ranges::find_if(
      topology.gpu_models, [](const GpuModel& model) { return model.memory_factor < 1; });
  if (slow_memory != topology.gpu_models.end()) {
    step.warnings.push_back(
        "kernels have computed durations: a GPU's compute_factor lengthens them, its memory_factor "
        "does not");
  }
  const double late = job.stack.straggling * std::log2(ranks(layout));
  if (late > 0) {
    step.warnings.push_back(
        fmt::format("ranks are equally fast; among {} the slowest takes about {:.1f} % longer ({})",
                    ranks(layout), 100 * late, job.stack.name));
  }
  return step;
}

}  // namespace flyover::io
