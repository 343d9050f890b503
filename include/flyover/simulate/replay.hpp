#pragma once

// Runs an operation graph on a cluster: the place where time passes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/trace/record.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

struct ReplayOptions {
  // Ranks that behave alike are simulated once. Times are the same either way.
  bool reduce = true;
  bool timeline = false;
  // The first rank of every program has tracks in a timeline, and so have the first ranks up to
  // this many; not stated: as many more in order of rank as make a timeline of 100,000 operations.
  // Reduced runs count the ranks that they simulate.
  std::optional<std::uint32_t> timeline_ranks = {};
  // Capacity factors by class name ("nvlink", "sm", "hbm", ...); "latency" divides start-ups and
  // link latencies. For what-if runs.
  std::map<std::string, double> scale = {};
};

struct Replay {
  Result result;
  Trace trace;  // Empty unless options.timeline.
};

// Rank r of the workload runs on GPU r of the topology, which may have more. A collective starts
// when all its members have arrived; the k-th collective of a program on a group meets the k-th of
// the other members' programs. A send meets the k-th receive of its (from, to, tag).
//
// Throws InputError for a workload that does not fit (mismatched collectives among them),
// SimulationError for one that cannot finish: unreachable peers, or a deadlock, with a report of
// who waits for whom.
[[nodiscard]] Replay replay(const Topology& topology, const CostModel& cost,
                            const Workload& workload, const ReplayOptions& options = {});

struct ReductionCheck {
  Replay full;
  Replay reduced;
  std::uint64_t operations = 0;   // Compared, of all ranks.
  std::uint64_t differences = 0;  // Starts and ends that differ.
  Duration largest{};
  std::string first;  // The first that differs, in words.
};

// A cluster as replays see it.
struct TimedCluster {
  const Topology& topology;
  const CostModel& cost;
};

// Runs a workload in full on one cluster and reduced on another, which may be the same or have the
// same with trunks (FabricSpec), and compares when every operation of every rank starts and ends.
// Throws as replay.
[[nodiscard]] ReductionCheck verify_reduction(const TimedCluster& full, const TimedCluster& reduced,
                                              const Workload& workload,
                                              const ReplayOptions& options = {});

// Runs again with each class of resources 10 % faster. Costs one replay per class.
[[nodiscard]] std::vector<Sensitivity> sensitivity(const Topology& topology, const CostModel& cost,
                                                   const Workload& workload, Duration baseline,
                                                   bool reduce = true);

}  // namespace flyover
