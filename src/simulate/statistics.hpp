#pragma once

// Collectives and messages of a run, counted by kind.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

class CallStatistics {
 public:
  // `count`: calls or messages that are alike; `exchange`: of experts, its name. Returns the sums
  // of the first call of its kind, for the alternatives to be filled in, else null.
  CollectiveStats* add_call(const Operation& op, const std::string& family,
                            const std::string& exchange, std::uint32_t ranks,
                            const CollectivePlan& plan, Duration taken, Duration waited,
                            std::uint32_t count);
  void add_message(Bytes bytes, const CollectivePlan& plan, Duration taken, std::uint32_t count);

  // Sums by kind, in the order in which kinds came.
  struct Totals {
    std::uint64_t count = 0;
    double taken = 0;
    double waited = 0;
  };
  [[nodiscard]] std::vector<Totals> totals() const;
  // What was added since `before` is added so many times more.
  void repeat(const std::vector<Totals>& before, std::uint64_t times);

  // In the order of family, collective, exchange, size.
  [[nodiscard]] std::vector<CollectiveStats> take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, std::uint32_t,
                         AlgorithmId, Protocol, std::uint32_t>;
  struct Sums {
    CollectiveStats stats;
    double taken = 0;
    double waited = 0;
    double factor = 1;  // busbw / algbw
  };
  Sums& sums(const std::string& family, const std::string& op, const std::string& exchange,
             std::uint32_t ranks, Bytes bytes, const CollectivePlan& plan, std::uint32_t count);

  std::map<Key, Sums> by_kind_;
  std::vector<Sums*> kinds_;  // As they came.
};

// One sentence: what takes most of the run, and what limits that.
[[nodiscard]] std::string describe_bottleneck(const Result& result);

}  // namespace flyover
