#pragma once

// One search for layouts on a cluster: what plan shows and compare sets side by side.

#include <cstdint>

#include "cli/inputs.hpp"
#include "cli/plan_output.hpp"
#include "cli/training_inputs.hpp"
#include "flyover/study/plan.hpp"

namespace flyover::cli {

// Replays of one search together; docs/formats/plan.md has what that takes.
inline constexpr std::uint64_t most_replayed_operations = 5'000'000;

struct PlanRequest {
  std::uint32_t gpus = 0;          // The first ones of the cluster.
  std::uint32_t global_batch = 0;  // 0: usual_batch.
  LayoutChoices choices;
  PlanOptions options;
  std::uint32_t replays = 0;  // So many of the best are also run in full,
  std::uint64_t replay_limit = most_replayed_operations;  // while they have no more together.
  bool keep_refusals = false;
};

// Near to 4 Mi tokens, from 1,024 GPUs on 16 Mi, as models of these sizes were trained with: a
// power of two times the odd part of the number of GPUs, so that every data parallel size divides
// it that leaves a sequence for each rank.
[[nodiscard]] std::uint32_t usual_batch(std::uint32_t gpus, std::uint32_t sequence);

// `own` is this thread's.
[[nodiscard]] GpuPlan plan_on(const Cluster& cluster, const TrainingInputs& training,
                              const ClusterTimer& own, const PlanRequest& request);

}  // namespace flyover::cli
