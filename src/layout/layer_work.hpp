#pragma once

// The kernels and messages of one layer, of the embedding and of the head, for one micro-batch on
// one rank: docs/layouts.md, "Work and messages". `domain`: see StepParts.

#include "flyover/layout/layout.hpp"
#include "flyover/layout/step_parts.hpp"
#include "layout/kernel_sum.hpp"

namespace flyover {

[[nodiscard]] LayerWork layer_work(const TrainingJob& job, const StepKernels& kernels,
                                   const Layout& layout, std::uint32_t layer, std::uint32_t domain);
[[nodiscard]] LayerWork embedding_work(const TrainingJob& job, const StepKernels& kernels,
                                       const Layout& layout);
// The final norm, the projection, the loss, and blocks for multi-token prediction with theirs.
[[nodiscard]] LayerWork head_work(const TrainingJob& job, const StepKernels& kernels,
                                  const Layout& layout, std::uint32_t domain);

}  // namespace flyover
