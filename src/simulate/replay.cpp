#include "flyover/simulate/replay.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "flyover/workload/repetition.hpp"
#include "simulate/call_planner.hpp"
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

Cast full_cast_that_fits(const Workload& workload, const ClusterResources& resources) {
  std::uint64_t operations = 0;
  for (const Program& program : workload.programs) {
    operations += meant_operations(workload, program) * program.ranks.size();
  }
  if (operations > most_operations) {
    throw InputError(
        fmt::format("a full run of {} operations on {} ranks: there is room for {}; one by classes "
                    "of ranks, if "
                    "it finishes, has no such limit",
                    operations, workload.ranks, most_operations));
  }
  return full_cast(canonical(unrolled(workload)), resources.size());
}

// Operations of programs that a run by classes holds in about as much.
constexpr std::uint64_t most_held = 5'000'000;

// How many more copies of sections are written down when those that are do not show a steady state:
// few first, then all.
constexpr std::array<std::uint64_t, 4> more_copies = {0, 6, 30, all_copies};

struct Reduced {
  Cast cast;
  Played played;
  OperationTimes times;
};

// None when there is no reduced cast or it cannot finish: the full run says why.
std::optional<Reduced> play_reduced(const Topology& topology, const CostModel& cost,
                                    const CallPlanner& planner, const ClusterResources& resources,
                                    const Workload& workload, const ReplayOptions& options,
                                    bool with_times) {
  for (const std::uint64_t copies : more_copies) {
    if (copies == all_copies) {
      std::uint64_t held = 0;
      for (const Program& program : workload.programs) held += meant_operations(workload, program);
      if (held > most_held) {
        throw InputError(
            fmt::format("its repeats do not come to a steady state, and written out the workload "
                        "has {} operations in its programs: there is room for {}",
                        held, most_held));
      }
    }
    auto cast =
        reduced_cast(topology, cost, planner, resources, canonical(unrolled(workload, copies)));
    if (!cast) return std::nullopt;
    Reduced reduced{std::move(*cast), {}, {}};
    reduced.played = run(topology, cost, planner, resources, reduced.cast, options,
                         with_times ? &reduced.times : nullptr);
    if (reduced.played.end == RunEnd::Finished) return reduced;
    if (reduced.played.end == RunEnd::Stuck) return std::nullopt;
  }
  return std::nullopt;
}

// Why every rank is played, a sentence for each exchange that does not treat ranks alike.
std::vector<std::string> uneven_exchanges(const CallPlanner& planner, const Workload& workload) {
  std::vector<std::string> out;
  for (const auto& [exchange, basis] : planner.not_balanced(workload)) {
    out.push_back(
        fmt::format("exchange \"{}\" treats ranks differently ({}): every rank is simulated",
                    exchange->name, basis));
  }
  return out;
}

// Which operation of a program with copies left out an operation of the whole program is, and how
// much later it happens.
class Counterparts {
 public:
  struct Place {
    std::uint32_t op = 0;
    Duration later{};
  };

  // `done`: where the program's streams begin in LeftOut::done.
  Counterparts(const Program& whole, const Program& shortened, std::uint32_t first_stream,
               const std::vector<LeftOut>& left_out)
      : places_(whole.ops.size()) {
    const StreamOrder all = stream_order(whole);
    const StreamOrder some = stream_order(shortened);
    for (std::uint32_t s = 0; s < all.ops.size(); ++s) {
      const auto own = static_cast<std::uint32_t>(std::ranges::find(some.names, all.names[s]) -
                                                  some.names.begin());
      require(own < some.names.size(), "a stream that both programs have");
      std::vector<Place> stream;
      for (const std::uint32_t op : some.ops[own]) stream.push_back({op, {}});
      // What was left out first comes last here, so that numbers of operations stay true until
      // then.
      for (auto out = left_out.rbegin(); out != left_out.rend(); ++out) {
        const std::uint32_t period = section_ranges(shortened, some, out->section)[own].period;
        insert(stream, out->done[first_stream + own], period, *out);
      }
      require(stream.size() == all.ops[s].size(), "as many operations as the whole program has");
      for (std::size_t i = 0; i < stream.size(); ++i) places_[all.ops[s][i]] = stream[i];
    }
  }

  [[nodiscard]] const Place& operator[](std::uint32_t op) const { return places_[op]; }

 private:
  static void insert(std::vector<Place>& stream, std::uint32_t done, std::uint32_t period,
                     const LeftOut& out) {
    std::vector<Place> more;
    for (std::uint64_t copy = 1; period > 0 && copy <= out.copies; ++copy) {
      for (std::uint32_t i = 0; i < period; ++i) {
        more.push_back(
            {stream[done - period + i].op, out.period * static_cast<std::int64_t>(copy)});
      }
    }
    stream.insert(stream.begin() + done, more.begin(), more.end());
  }

  std::vector<Place> places_;
};

// Compares all operations of all ranks.
class Comparison {
 public:
  Comparison(const Cast& full, const OperationTimes& full_times, const Reduced& reduced)
      : full_(full),
        full_times_(full_times),
        reduced_(reduced),
        ranks_(full.workload),
        players_(reduced.cast.workload) {
    std::uint32_t streams = 0;
    for (std::uint32_t player = 0; player < players_.size(); ++player) {
      first_stream_.push_back(streams);
      if (players_.program(player) == absent) continue;
      streams += static_cast<std::uint32_t>(
          reduced.cast.programs[players_.program(player)].streams.size());
    }
  }

  void fill(ReductionCheck& check) {
    for (std::uint32_t player = 0; player < players_.size(); ++player) {
      if (players_.program(player) != absent) compare_player(check, player);
    }
  }

 private:
  void compare_player(ReductionCheck& check, std::uint32_t player) {
    const std::uint32_t p = players_.program(player);
    const Program& whole = full_.workload.programs[p];
    const Counterparts counterparts(whole, reduced_.cast.workload.programs[p],
                                    first_stream_[player], reduced_.times.left_out);
    for (const std::uint32_t rank : whole.ranks) {
      if (reduced_.cast.player_of[rank] != player) continue;
      for (std::uint32_t op = 0; op < whole.ops.size(); ++op) {
        const Counterparts::Place& place = counterparts[op];
        const std::uint64_t played = players_.first(player) + place.op;
        compare(check, rank, op, "begins", full_times_.begun, reduced_.times.begun[played],
                place.later);
        compare(check, rank, op, "ends", full_times_.ended, reduced_.times.ended[played],
                place.later);
      }
      check.operations += whole.ops.size();
    }
  }

  void compare(ReductionCheck& check, std::uint32_t rank, std::uint32_t op, const char* what,
               const std::vector<Time>& full_times, Time played, Duration later) const {
    const Time full = full_times[ranks_.first(rank) + op];
    const Time reduced = played + later;
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
  const Reduced& reduced_;
  Ranks ranks_;
  Ranks players_;
  std::vector<std::uint32_t> first_stream_;  // By player.
};

}  // namespace

Replay replay(const Topology& topology, const CostModel& cost, const Workload& workload,
              const ReplayOptions& options) {
  check_fit(topology, workload);
  const ClusterResources resources(topology, options.scale);
  const CallPlanner planner(topology, cost, workload.exchanges);
  const std::vector<std::string> uneven = uneven_exchanges(planner, workload);
  if (options.reduce && uneven.empty()) {
    if (auto done = play_reduced(topology, cost, planner, resources, workload, options, false)) {
      return std::move(*done->played.replay);
    }
    // What is wrong the full run tells rank by rank.
  }
  const Cast cast = full_cast_that_fits(workload, resources);
  Replay done = run_full(topology, cost, planner, resources, cast, options);
  std::ranges::copy(uneven, std::back_inserter(done.result.warnings));
  return done;
}

ReductionCheck verify_reduction(const TimedCluster& full, const TimedCluster& reduced,
                                const Workload& workload, const ReplayOptions& options) {
  check_fit(full.topology, workload);
  check_fit(reduced.topology, workload);
  const ClusterResources every(full.topology, options.scale);
  const Cast full_cast = full_cast_that_fits(workload, every);
  OperationTimes full_times;
  ReductionCheck check;
  const CallPlanner full_planner(full.topology, full.cost, workload.exchanges);
  check.full =
      run_full(full.topology, full.cost, full_planner, every, full_cast, options, &full_times);

  const ClusterResources resources(reduced.topology, options.scale);
  const CallPlanner planner(reduced.topology, reduced.cost, workload.exchanges);
  auto played =
      play_reduced(reduced.topology, reduced.cost, planner, resources, workload, options, true);
  require(played.has_value(), "what finishes in full can be reduced and finishes reduced");
  check.reduced = std::move(*played->played.replay);
  Comparison(full_cast, full_times, *played).fill(check);
  return check;
}

}  // namespace flyover
