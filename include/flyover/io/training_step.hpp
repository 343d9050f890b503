#pragma once

// From a training workload to what a replay runs.

#include <string>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/io/training_reader.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover::io {

// The GPU that all ranks were bought with. Throws InputError when there are several kinds.
[[nodiscard]] const GpuModel& bought_gpu_model(const Topology& topology);

// The same, for what takes ranks as equally fast: throws InputError for a GPU that is slower than
// bought, too.
[[nodiscard]] const GpuModel& only_gpu_model(const Topology& topology);

// What a GPU decides of a job: FP8 matrix units of Hopper read one operand order only (Transformer
// Engine's documentation), so quantised matrices need a transposed copy.
void suit_gpu(TrainingOptions& options, const GpuModel& gpu);

struct TrainingStep {
  Workload workload;
  MemoryUse memory;
  std::vector<std::string> warnings;  // The workload's assumptions, and what the replay leaves out.
};

// The operations of one step, with the kernels that the job's stack names. Requires a workload read
// for as many GPUs as the topology has. Throws InputError when these are of several kinds, when no
// kernels are known for them, or when there are more operations than a replay can hold.
[[nodiscard]] TrainingStep training_step(const TrainingWorkload& training, const Topology& topology,
                                         const CostModel& cost);

}  // namespace flyover::io
