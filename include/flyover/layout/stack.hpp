#pragma once

// A software era as data: configs/stacks/*.json (io/stack_reader.hpp). The same hardware got faster
// over releases; what a release does by default, what its kernels lose inside a training step and
// what its host code costs is here, each value with its source. Equations: docs/models/step.md.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/layout/group_kind.hpp"
#include "flyover/layout/kernel_model.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/training_options.hpp"

namespace flyover {

// Kernels inside a step take so many times what they take alone (KernelTimer): power limits the
// clocks of a GPU that is busy for minutes, caches are cold, shapes are less even. Of the rules
// that match, each value of the last that states it (above 0) counts.
struct SlowdownRule {
  KernelScope where;
  double gemm = 0;
  double grouped_gemm = 0;  // Where no rule states it, as gemm.
  double attention = 0;
  double elementwise = 0;  // Also what a stack moves through memory beyond the least.
};

// Whose published results a stack speaks for: frameworks whose name and version begin so.
struct FrameworkMatch {
  std::string name;
  std::string version;  // "": any.
};

struct SoftwareStack {
  std::string name;  // "megatron-2021", "nemo-25", "torchtitan"
  std::string summary;
  std::string date;     // From when on, "2024-11".
  std::string kernels;  // Name of the kernel model.
  std::string source;
  std::vector<FrameworkMatch> frameworks;
  std::vector<SlowdownRule> slowdowns;

  // The host's share of a layer's forward (its backward takes twice that) and of one micro-batch;
  // a layer on the GPU takes at least as long. CUDA graphs leave nothing of either.
  Duration layer_host{};
  // What experts add to it: the host waits for counts of tokens before it can go on.
  Duration expert_layer_host{};
  Duration micro_batch_host{};
  // Once per step, whatever the model: data, optimizer's launches, logging.
  Duration step_host{};
  // Messages take so many times what the cost model says, by the group that exchanges them: what
  // chunking, late starts and traffic of others cost.
  std::array<double, group_kinds> message_slowdown{};
  // A kernel runs by this share slower while a message is under way beside it.
  double contention = 0;
  // The slowest of n ranks takes 1 + straggling x log2(n) times the mean.
  double straggling = 0;

  // What it does when a job does not say.
  TrainingOptions options;
  Overlap overlap;
  Sharding sharding = Sharding::Optimizer;
  bool keep_gathered = false;  // Layout::keep_gathered, of pipelines with ZeRO-3.
  Recompute recompute = Recompute::None;
  std::vector<std::string> recompute_modules;  // With Selective.
  bool sequence_parallel = true;               // With tensor parallelism.
  // Published results that do not state virtual stages have a chunk per layer where layers and
  // micro-batches divide; a job that does not has one per stage.
  bool interleaved = false;
  std::uint32_t vocabulary_multiple = 128;
};

// Whether one of its frameworks is meant.
[[nodiscard]] inline bool speaks_for(const SoftwareStack& stack, std::string_view framework,
                                     std::string_view version) {
  return std::ranges::any_of(stack.frameworks, [&](const FrameworkMatch& match) {
    return framework.starts_with(match.name) && version.starts_with(match.version);
  });
}

}  // namespace flyover
