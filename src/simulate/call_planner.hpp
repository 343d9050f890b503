#pragma once

// What a call of a workload becomes on a group: collectives as the library would run them,
// exchanges of experts as their kernels do.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/moe/planner.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

// Whether the kernels of a plan hold their SMs from their start to their end, whatever rate they
// move at; others take SMs in proportion to their rate.
[[nodiscard]] constexpr bool holds_sms(const CollectivePlan& plan) {
  return plan.algorithm >= AlgorithmId::MoeNormal;
}

// ExpertPlan::local_copies; none of collectives.
[[nodiscard]] inline double local_copies(const ExpertPlan* experts) {
  return experts == nullptr ? 0 : experts->local_copies;
}

struct PlannedCall {
  CollectivePlan plan;
  const ExpertPlan* experts = nullptr;  // None of collectives. Lives as long as the planner.
};

// Borrows all, which must outlive it.
class CallPlanner {
 public:
  // `exchanges`: Workload::exchanges, which operations name by their place.
  CallPlanner(const Topology& topology, const CostModel& cost,
              const std::vector<ExpertExchange>& exchanges)
      : cost_(cost),
        exchanges_(exchanges),
        experts_(topology, cost) {}

  // `ranks`: of the cluster, in group order. Throws as CostModel and ExpertPlanner do.
  [[nodiscard]] PlannedCall plan(const Operation& op, std::span<const std::uint32_t> ranks,
                                 const PatternTracer& tracer = nullptr) const;
  // Of a collective: what the library would not choose, fastest first.
  [[nodiscard]] std::vector<CollectivePlan> alternatives(const Operation& op,
                                                         std::span<const std::uint32_t> ranks,
                                                         const PatternTracer& tracer) const;
  // Exchanges of a workload's calls that do not treat all ranks of a group alike, as found on the
  // first group of each family that calls them, in the order of programs, with ExpertCopies::basis.
  struct Uneven {
    const ExpertExchange* exchange = nullptr;
    std::string basis;
  };
  [[nodiscard]] std::vector<Uneven> not_balanced(const Workload& workload) const;

  // The same tokens in other modes, with the library's kernels for each, fastest first: alone, as
  // far as the group can run them. None where tokens are drawn one by one, which would cost as much
  // again for each.
  [[nodiscard]] std::vector<ExpertAlternative> other_modes(
      const Operation& op, std::span<const std::uint32_t> ranks) const;

  [[nodiscard]] const ExpertExchange& exchange(const Operation& op) const {
    return exchanges_[op.exchange];
  }

 private:
  const CostModel& cost_;
  const std::vector<ExpertExchange>& exchanges_;
  ExpertPlanner experts_;
  mutable std::map<std::pair<const ExpertExchange*, ExpertMode>, ExpertExchange> others_;
};

}  // namespace flyover
