#pragma once

#include <cstdint>
#include <vector>

#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"
#include "moe/expert_homes.hpp"

namespace flyover::moe {

// What a token brings, expected: the probability that each node and rank gets it, and pairs by
// rank.
struct Reach {
  std::vector<double> node;
  std::vector<double> rank;
  std::vector<double> pairs;
};

// When all experts are alike: exact.
[[nodiscard]] Reach expected_reach(const ExpertRouting& routing, const ExpertGroup& group,
                                   const ExpertHomes& homes);

// With popularity: from so many tokens, drawn with a fixed seed; once per process for equal
// arguments, from whatever thread.
constexpr std::uint32_t estimated_tokens = 1U << 18U;
[[nodiscard]] Reach estimated_reach(const ExpertRouting& routing, const ExpertGroup& group,
                                    const ExpertHomes& homes);

}  // namespace flyover::moe
