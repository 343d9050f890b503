#pragma once

#include <vector>

#include "moe/count_law.hpp"

namespace flyover::moe {

// How the counts of Gate::GroupSumOfTwo fall when scores are uniform and groups are dropped
// (groups_chosen < groups): docs/models/moe-routing.md has the integral.
[[nodiscard]] std::vector<CountLaw::Outcome> sum_of_two_outcomes(const ExpertRouting& routing);

}  // namespace flyover::moe
