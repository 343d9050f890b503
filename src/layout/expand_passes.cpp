#include "layout/expand_passes.hpp"

#include <algorithm>
#include <cmath>

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
  const std::int64_t share = kind == Pass::Forward                  ? 1
                             : layout_.recompute == Recompute::Full ? 3
                                                                    : 2;
  pass.host = std::max(Duration{}, host * share - pass.time - later.time);
  return pass;
}

void Passes::add(PreparedPass& pass, const WorkItem& item) const {
  PassItem made;
  made.name = item.name;
  made.compute = item.compute;
  made.flops = item.flops;
  made.bytes = item.bytes;
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
  pass.time += time;
  pass.items.push_back(made);
}

double Passes::seconds(const Message& message) const {
  return to_seconds(times_.time(layout_, message)) *
         parts_.job().stack.message_slowdown[static_cast<std::size_t>(message.group)];
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
