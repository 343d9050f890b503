#pragma once

// Lets a cast play its workload: the place where time passes.

#include <optional>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/simulate/replay.hpp"
#include "flyover/topology/topology.hpp"
#include "simulate/cast.hpp"
#include "simulate/resources.hpp"

namespace flyover {

// By instance: Ranks numbers them.
struct OperationTimes {
  std::vector<Time> begun;
  std::vector<Time> ended;
};

// None when it cannot finish. `times`: filled unless null.
[[nodiscard]] std::optional<Replay> run(const Topology& topology, const CostModel& cost,
                                        const ClusterResources& resources, const Cast& cast,
                                        const ReplayOptions& options,
                                        OperationTimes* times = nullptr);

// Likewise, of a full cast; throws SimulationError when it cannot finish, with a report of who
// waits for whom.
[[nodiscard]] Replay run_full(const Topology& topology, const CostModel& cost,
                              const ClusterResources& resources, const Cast& cast,
                              const ReplayOptions& options, OperationTimes* times = nullptr);

}  // namespace flyover
