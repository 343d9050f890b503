#pragma once

// Where the time of every rank goes: see Breakdown.

#include <cstdint>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

class Ledger {
 public:
  // What a rank does with an operation, from most to least telling. Exposed communication is told
  // apart by family; `families` itself stands for sends and receives.
  enum class Activity : std::uint8_t { Compute, Moving, Starting, PeerWait };

  // `counts`: for how many ranks each stands.
  Ledger(std::vector<std::uint32_t> counts, std::uint32_t families);

  void begin(std::uint32_t rank, Activity activity, std::uint32_t family, Time now) {
    change(rank, activity, family, +1, now);
  }
  void end(std::uint32_t rank, Activity activity, std::uint32_t family, Time now) {
    change(rank, activity, family, -1, now);
  }

  // Seconds by class of activity, over all ranks, until now.
  [[nodiscard]] std::vector<double> totals(Time now) const;
  // What was charged between `before` and `after` is charged so many times more, and time goes on
  // that much later.
  void repeat(const std::vector<double>& before, const std::vector<double>& after,
              std::uint64_t times, Duration later);

  // Closes the books: averages over the ranks.
  [[nodiscard]] Breakdown close(const std::vector<GroupFamily>& families, Time end);

 private:
  // Classes: compute, one per family, p2p, starting, peer wait, idle.
  void change(std::uint32_t rank, Activity activity, std::uint32_t family, int by, Time now);
  [[nodiscard]] std::uint32_t class_of(Activity activity, std::uint32_t family) const;
  void charge(std::uint32_t rank, Time now);

  std::vector<std::uint32_t> counts_;  // By rank.
  std::uint32_t families_;
  std::uint32_t classes_;
  std::vector<std::uint32_t> running_;  // By rank, by class but idle.
  std::vector<std::uint32_t> current_;  // By rank: the class it counts for.
  std::vector<Time> since_;
  std::vector<double> total_;  // By class, seconds over all ranks.
};

}  // namespace flyover
