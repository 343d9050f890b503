#pragma once

// Lets a cast play its workload: the place where time passes.

#include <optional>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/topology/topology.hpp"
#include "simulate/call_planner.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// Copies of a section that were not played since the state recurred (recurrence.hpp).
struct LeftOut {
  std::uint32_t section = 0;
  std::uint64_t copies = 0;
  Duration period{};
  std::vector<std::uint32_t> done;  // By stream of each player: operations that had ended before.
};

// By instance: Ranks numbers them.
struct OperationTimes {
  std::vector<Time> begun;
  std::vector<Time> ended;
  std::vector<LeftOut> left_out;  // In order of time.
};

enum class RunEnd : std::uint8_t {
  Finished,
  Stuck,    // Operations remain that wait for each other.
  Unsteady  // Copies of a section are left out, and the state has not recurred in those played.
};

struct Played {
  RunEnd end = RunEnd::Stuck;
  std::optional<Replay> replay;  // Of a run that finished.
};

// `times`: filled unless null.
[[nodiscard]] Played run(const Topology& topology, const CostModel& cost,
                         const CallPlanner& planner, const ClusterResources& resources,
                         const Cast& cast, const ReplayOptions& options,
                         OperationTimes* times = nullptr);

// Likewise, of a full cast with all copies of sections; throws SimulationError when it cannot
// finish, with a report of who waits for whom.
[[nodiscard]] Replay run_full(const Topology& topology, const CostModel& cost,
                              const CallPlanner& planner, const ClusterResources& resources,
                              const Cast& cast, const ReplayOptions& options,
                              OperationTimes* times = nullptr);

}  // namespace flyover
