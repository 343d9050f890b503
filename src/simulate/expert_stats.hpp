#pragma once

#include "flyover/moe/planner.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// What a result says of an exchange planned on a group of so many ranks; without other modes.
[[nodiscard]] ExpertStats expert_stats(const ExpertExchange& exchange, const ExpertPlan& plan,
                                       std::uint32_t ranks);

}  // namespace flyover
