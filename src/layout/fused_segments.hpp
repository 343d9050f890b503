#pragma once

// A layer's items by the segments of a fused pair (fused_chunk.hpp).

#include <vector>

#include "flyover/layout/step_parts.hpp"

namespace flyover {

// Whether it is a dispatch or a combine, forward or backward: a message between expert ranks and
// nothing beside it.
[[nodiscard]] bool travels(const WorkItem& item);

// What a stack makes of a message's time. Kernels of experts' own have what they lose in theirs.
[[nodiscard]] double slowdown_of(const SoftwareStack& stack, const Message& message);

// A dispatch or combine as it goes on in a fused step.
[[nodiscard]] Message in_fused_step(Message message);

// SMs that messages of fused steps hold; 0: none that are known, and kernels lose `contention_of`
// instead.
[[nodiscard]] double contention_of(const TrainingJob& job);
[[nodiscard]] std::uint32_t held_sms(const TrainingJob& job, const Layout& layout);

// Whether fused steps of this layout run two micro-batches beside each other, or one after the
// other for want of messages to hide.
[[nodiscard]] bool fuses(const TrainingJob& job, const Layout& layout);

// Borrowed from the layer's work. Messages are null where there are none; those of expert layers
// behind the first of a head (multi-token prediction) stay among `after` and `attention`.
struct ForwardItems {
  std::vector<const WorkItem*> attention;
  const WorkItem* dispatch = nullptr;
  std::vector<const WorkItem*> experts;
  const WorkItem* combine = nullptr;
  std::vector<const WorkItem*> after;
};
[[nodiscard]] ForwardItems forward_items(const LayerWork& work);

struct BackwardItems {
  std::vector<const WorkItem*> before;
  const WorkItem* combine = nullptr;
  std::vector<const WorkItem*> experts;
  std::vector<const WorkItem*> expert_weights;
  const WorkItem* dispatch = nullptr;
  std::vector<const WorkItem*> attention;
  std::vector<const WorkItem*> weights;
};
[[nodiscard]] BackwardItems backward_items(const LayerWork& work);

}  // namespace flyover
