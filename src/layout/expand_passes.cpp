#include "layout/expand_passes.hpp"

#include <algorithm>
#include <cmath>

#include "layout/fused_segments.hpp"

namespace flyover {

std::string_view to_string(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return "forward";
    case Pass::Backward:
      return "backward";
    case Pass::InputGradient:
      return "input gradient";
    case Pass::WeightGradient:
      return "weight gradient";
  }
  return "";
}

const PreparedPass& Passes::of(const LayerWork& work, Pass kind, Duration host) {
  const auto [place, is_new] = known_.try_emplace({&work, kind});
  PreparedPass& pass = place->second;
  if (!is_new) return pass;
  // Host code is as long for both gradients together, and is waited for with the first.
  PreparedPass later;
  if (kind == Pass::Forward) {
    for (const WorkItem& item : work.forward) add(pass, item);
  } else {
    if (kind != Pass::WeightGradient) {
      for (const WorkItem& item : work.recompute) add(pass, item);
    }
    for (const WorkItem& item : work.backward) {
      const bool now =
          kind == Pass::Backward || item.weight_gradient == (kind == Pass::WeightGradient);
      add(now ? pass : later, item);
    }
  }
  if (kind == Pass::WeightGradient) return pass;
  pass.host = std::max(Duration{}, this->host(kind, host) - pass.time - later.time);
  return pass;
}

const FusedForward& Passes::fused_forward(const LayerWork& work) {
  const auto [place, is_new] = fused_forwards_.try_emplace(&work);
  FusedForward& made = place->second;
  if (!is_new) return made;
  const ForwardItems items = forward_items(work);
  segment(made.attention, items.attention, made.kernels);
  message(made.dispatch, items.dispatch, made.messages);
  segment(made.experts, items.experts, made.kernels);
  message(made.combine, items.combine, made.messages);
  segment(made.after, items.after, made.kernels);
  return made;
}

const FusedBackward& Passes::fused_backward(const LayerWork& work) {
  const auto [place, is_new] = fused_backwards_.try_emplace(&work);
  FusedBackward& made = place->second;
  if (!is_new) return made;
  const BackwardItems items = backward_items(work);
  segment(made.before, items.before, made.kernels);
  message(made.combine, items.combine, made.messages);
  segment(made.experts, items.experts, made.kernels);
  segment(made.expert_weights, items.expert_weights, made.kernels);
  message(made.dispatch, items.dispatch, made.messages);
  segment(made.attention, items.attention, made.kernels);
  segment(made.weights, items.weights, made.kernels);
  return made;
}

Duration Passes::host(Pass pass, Duration forward) const {
  if (pass == Pass::Forward) return forward;
  return forward * (layout_.recompute == Recompute::Full ? 3 : 2);
}

void Passes::segment(std::vector<PassItem>& items, const std::vector<const WorkItem*>& from,
                     Duration& kernels) const {
  for (const WorkItem* item : from) {
    const TimedItem made = timed(*item);
    items.push_back(made.item);
    kernels += made.time;
  }
}

void Passes::message(std::optional<PassItem>& item, const WorkItem* from,
                     Duration& messages) const {
  if (from == nullptr) return;
  TimedItem made = timed(*from);
  made.item.exposed = in_fused_step(made.item.exposed);
  item = made.item;
  messages += from_seconds(seconds(made.item.exposed));
}

void Passes::add(PreparedPass& pass, const WorkItem& item) const {
  const TimedItem made = timed(item);
  pass.time += made.time;
  pass.items.push_back(made.item);
}

Passes::TimedItem Passes::timed(const WorkItem& item) const {
  PassItem made;
  made.name = item.name;
  made.compute = item.compute;
  made.flops = item.flops;
  made.bytes = item.bytes;
  made.memory_bound = item.memory_bound;
  made.message_first = item.message_first;
  Duration time = item.compute;
  if (item.message) {
    const Message& message = *item.message;
    made.exposed = made.hidden = message;
    made.hidden.bytes =
        Bytes{std::llround(static_cast<double>(message.bytes.count()) * item.hidden)};
    made.exposed.bytes = message.bytes - made.hidden.bytes;
    // WorkItem's formula.
    const double alone = seconds(message);
    const Duration beside = from_seconds(item.hidden * alone);
    made.compute += contention(item.compute, beside);
    time = from_seconds((1 - item.hidden) * alone) + std::max(made.compute, beside);
  }
  return {made, time};
}

double Passes::seconds(const Message& message) const {
  return to_seconds(times_.time(layout_, message)) * slowdown_of(parts_.job().stack, message);
}

Duration Passes::time(const std::vector<Message>& messages) const {
  double sum = 0;
  for (const Message& message : messages) sum += seconds(message);
  return from_seconds(sum);
}

Duration Passes::contention(Duration kernels, Duration messages) const {
  return from_seconds(parts_.job().stack.contention * to_seconds(std::min(kernels, messages)));
}

}  // namespace flyover
