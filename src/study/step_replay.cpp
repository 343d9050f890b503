#include "flyover/study/step_replay.hpp"

#include <cmath>
#include <utility>

#include "flyover/layout/expand.hpp"
#include "flyover/simulate/replay.hpp"

namespace flyover {

StepReplay replay_step(const Topology& topology, const CostModel& cost, const StepParts& parts,
                       const MessageTimes& times, const Layout& layout,
                       std::uint64_t most_operations) {
  StepReplay result;
  // Ranks of a stage share their program.
  result.operations = expanded_operations(parts, layout, times) / (ranks(layout) / layout.pipeline);
  if (result.operations > most_operations) return result;
  Result replayed = replay(topology, cost, expand(parts, layout, times)).result;
  const double stragglers = 1 + parts.job().stack.straggling * std::log2(ranks(layout));
  result.time = from_seconds(to_seconds(replayed.time) * stragglers);
  result.replayed = replayed.time;
  result.breakdown = std::move(replayed.breakdown);
  result.bottleneck = std::move(replayed.bottleneck);
  return result;
}

}  // namespace flyover
