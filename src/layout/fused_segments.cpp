#include "layout/fused_segments.hpp"

#include <algorithm>

namespace flyover {

bool travels(const WorkItem& item) {
  return item.kernels == 0 && item.message && item.message->group == GroupKind::Expert;
}

double slowdown_of(const SoftwareStack& stack, const Message& message) {
  return message.exchange ? 1 : stack.message_slowdown[static_cast<std::size_t>(message.group)];
}

Message in_fused_step(Message message) {
  if (message.exchange_beside) message.exchange = message.exchange_beside;
  return message;
}

double contention_of(const TrainingJob& job) {
  return job.overlap.mutual_slowdown ? job.stack.contention : 0;
}

std::uint32_t held_sms(const TrainingJob& job, const Layout& layout) {
  if (!job.overlap.mutual_slowdown) return 0;
  const Overlap& overlap = job.overlap;
  const bool own_kernels = overlap.dispatch == ExpertDispatch::Fused && overlap.expert_kernels;
  return own_kernels && fuses(job, layout) ? overlap.expert_kernels->sms : 0;
}

bool fuses(const TrainingJob& job, const Layout& layout) {
  return job.overlap.experts && layout.expert > 1 && has_fused_steps(layout.schedule);
}

ForwardItems forward_items(const LayerWork& work) {
  ForwardItems items;
  for (const WorkItem& item : work.forward) {
    if (travels(item) && items.dispatch == nullptr) {
      items.dispatch = &item;
    } else if (travels(item) && items.combine == nullptr) {
      items.combine = &item;
    } else {
      (items.dispatch == nullptr  ? items.attention
       : items.combine == nullptr ? items.experts
                                  : items.after)
          .push_back(&item);
    }
  }
  return items;
}

BackwardItems backward_items(const LayerWork& work) {
  BackwardItems items;
  // A layer without experts has nothing to wait for: its recomputation is as well in one place as
  // in another.
  for (const WorkItem& item : work.recompute) items.before.push_back(&item);
  const bool has_experts = std::ranges::any_of(work.backward, travels);
  for (const WorkItem& item : work.backward) {
    if (travels(item) && items.combine == nullptr) {
      items.combine = &item;
    } else if (travels(item) && items.dispatch == nullptr) {
      items.dispatch = &item;
    } else if (items.dispatch != nullptr || !has_experts) {
      (item.weight_gradient ? items.weights : items.attention).push_back(&item);
    } else if (items.combine != nullptr) {
      (item.weight_gradient ? items.expert_weights : items.experts).push_back(&item);
    } else {
      (item.weight_gradient ? items.weights : items.before).push_back(&item);
    }
  }
  return items;
}

}  // namespace flyover
