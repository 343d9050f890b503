#include "flyover/simulate/replay.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "simulate/rank_classes.hpp"
#include "simulate/run.hpp"

namespace flyover {

namespace {

void check_fit(const Topology& topology, const Workload& workload) {
  validate(workload);
  if (workload.ranks > topology.gpus.size()) {
    throw InputError(fmt::format("the workload has {} ranks, but the topology has {} GPUs",
                                 workload.ranks, topology.gpus.size()));
  }
}

// What a full run holds in a few gigabytes.
constexpr std::uint64_t most_operations = 200'000'000;

Cast full_cast_that_fits(Workload workload, const ClusterResources& resources) {
  std::uint64_t operations = 0;
  for (const Program& program : workload.programs) {
    operations += std::uint64_t{program.ops.size()} * program.ranks.size();
  }
  if (operations > most_operations) {
    throw InputError(
        fmt::format("a full run of {} operations on {} ranks: there is room for {}; one by classes "
                    "of ranks, if "
                    "it finishes, has no such limit",
                    operations, workload.ranks, most_operations));
  }
  return full_cast(std::move(workload), resources.size());
}

// Compares all operations of all ranks.
class Comparison {
 public:
  Comparison(const Cast& full, const OperationTimes& full_times, const Cast& reduced,
             const OperationTimes& reduced_times)
      : full_(full),
        full_times_(full_times),
        reduced_(reduced),
        reduced_times_(reduced_times),
        ranks_(full.workload),
        players_(reduced.workload) {}

  void fill(ReductionCheck& check) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::uint64_t first = ranks_.first(rank);
      const std::uint64_t own = ranks_.first(rank + 1) - first;
      const std::uint64_t played = players_.first(reduced_.player_of[rank]);
      for (std::uint32_t op = 0; op < own; ++op) {
        compare(check, rank, op, "begins", full_times_.begun[first + op],
                reduced_times_.begun[played + op]);
        compare(check, rank, op, "ends", full_times_.ended[first + op],
                reduced_times_.ended[played + op]);
      }
      check.operations += own;
    }
  }

 private:
  void compare(ReductionCheck& check, std::uint32_t rank, std::uint32_t op, const char* what,
               Time full, Time reduced) const {
    if (full == reduced) return;
    const Duration difference = full > reduced ? full - reduced : reduced - full;
    if (check.differences++ == 0) {
      check.first = fmt::format(
          "\"{}\" of rank {} {} at {} ps in the full run and at {} ps in the reduced one",
          full_.workload.programs[ranks_.program(rank)].ops[op].id, rank, what,
          full.time_since_epoch().count(), reduced.time_since_epoch().count());
    }
    check.largest = std::max(check.largest, difference);
  }

  const Cast& full_;
  const OperationTimes& full_times_;
  const Cast& reduced_;
  const OperationTimes& reduced_times_;
  Ranks ranks_;
  Ranks players_;
};

}  // namespace

Replay replay(const Topology& topology, const CostModel& cost, const Workload& workload,
              const ReplayOptions& options) {
  check_fit(topology, workload);
  const ClusterResources resources(topology, options.scale);
  if (options.reduce) {
    const auto cast = reduced_cast(topology, cost, resources, canonical(workload));
    if (cast) {
      if (auto done = run(topology, cost, resources, *cast, options)) return std::move(*done);
    }
    // What is wrong the full run tells rank by rank.
  }
  const Cast cast = full_cast_that_fits(canonical(workload), resources);
  return run_full(topology, cost, resources, cast, options);
}

ReductionCheck verify_reduction(const TimedCluster& full, const TimedCluster& reduced,
                                const Workload& workload, const ReplayOptions& options) {
  check_fit(full.topology, workload);
  check_fit(reduced.topology, workload);
  const ClusterResources every(full.topology, options.scale);
  const Cast full_cast = full_cast_that_fits(canonical(workload), every);
  OperationTimes full_times;
  ReductionCheck check;
  check.full = run_full(full.topology, full.cost, every, full_cast, options, &full_times);

  const ClusterResources resources(reduced.topology, options.scale);
  const auto cast = reduced_cast(reduced.topology, reduced.cost, resources, canonical(workload));
  require(cast.has_value(), "what runs in full can be reduced");
  OperationTimes reduced_times;
  auto done = run(reduced.topology, reduced.cost, resources, *cast, options, &reduced_times);
  require(done.has_value(), "what finishes in full finishes reduced");
  check.reduced = std::move(*done);
  Comparison(full_cast, full_times, *cast, reduced_times).fill(check);
  return check;
}

}  // namespace flyover
