#pragma once

// A layout's step run as an operation graph, to hold its estimate to.

#include <cstdint>
#include <optional>
#include <string>

#include "flyover/base/units.hpp"
#include "flyover/cost/cost_model.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_parts.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

struct StepReplay {
  std::uint64_t operations = 0;  // Of one rank of every stage.
  // Stragglers included, which a replay does not have, as estimates count them; nothing when there
  // are more operations than the limit.
  std::optional<Duration> time;
  // Of the replay itself, without stragglers; where it has a time.
  Duration replayed{};
  Breakdown breakdown;
  std::string bottleneck;
};

// Requires a layout without problems and as many GPUs as it has ranks.
[[nodiscard]] StepReplay replay_step(const Topology& topology, const CostModel& cost,
                                     const StepParts& parts, const MessageTimes& times,
                                     const Layout& layout, std::uint64_t most_operations);

}  // namespace flyover
