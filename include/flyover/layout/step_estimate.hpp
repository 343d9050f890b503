#pragma once

// The closed form of a training step's time: docs/models/step.md has the equations and how far it
// lies from a replay of the operation graph.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "flyover/base/units.hpp"
#include "flyover/layout/group_kind.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_parts.hpp"

namespace flyover {

// Where a step's time goes on its slowest stage. The parts add up to the step.
enum class StepPart : std::uint8_t {
  Compute,    // Kernels.
  Recompute,  // Kernels run again for the backward.
  Host,       // The GPU waits for the host.
  Tensor,     // Exposed messages, by dimension:
  Context,
  Expert,
  Pipeline,
  Data,    // gradients and parameters;
  Bubble,  // waiting for other stages;
  Optimizer,
  Straggling  // waiting for slower ranks.
};
inline constexpr std::size_t step_parts = 11;
// "compute", "recompute", "host", "exposed tp", "exposed cp", "exposed ep", "exposed pp",
// "exposed dp", "bubble", "optimizer", "straggling"
[[nodiscard]] std::string_view to_string(StepPart part);
// The part that messages of these groups are exposed in.
[[nodiscard]] StepPart exposed_part(GroupKind kind);

struct StepEstimate {
  Duration time{};
  std::array<Duration, step_parts> parts{};
  [[nodiscard]] Duration operator[](StepPart part) const {
    return parts[static_cast<std::size_t>(part)];
  }
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;           // model_flops_utilisation().
  double memory_bound = 0;  // Share of the kernels' time that waits for memory.
  std::uint32_t slowest_stage = 0;
  // The largest part, in words: "matrix multiplications", "memory bandwidth", "exposed tp", ...
  [[nodiscard]] std::string_view limit() const;
};

// 3 x forward FLOPs of the model (2 x with LoRA), attention counted causal, over a step of this
// length at the peak of the compute type.
[[nodiscard]] double model_flops_utilisation(const StepParts& parts, const Layout& layout,
                                             double step_seconds);

// Borrows parts and times. Microseconds per layout once layers and messages are known.
class StepEstimator {
 public:
  StepEstimator(const StepParts& parts, const MessageTimes& times);
  // Requires a layout without problems for the job's model and sequence.
  [[nodiscard]] StepEstimate estimate(const Layout& layout) const;
  // The time cannot be less: kernels on the fullest stage at their speed, with nothing exposed.
  [[nodiscard]] Duration bound(const Layout& layout) const;

 private:
  const StepParts* parts_;
  const MessageTimes* times_;
};

}  // namespace flyover
