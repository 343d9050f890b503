#include "flyover/study/step_replay.hpp"

#include <cmath>

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
  const Duration alone = replay(topology, cost, expand(parts, layout, times)).result.time;
  const double stragglers = 1 + parts.job().stack.straggling * std::log2(ranks(layout));
  result.time = from_seconds(to_seconds(alone) * stragglers);
  return result;
}

}  // namespace flyover
