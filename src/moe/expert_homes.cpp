#include "moe/expert_homes.hpp"

#include "flyover/moe/placement.hpp"

namespace flyover::moe {

ExpertHomes expert_homes(const ExpertRouting& routing, const ExpertGroup& group) {
  const std::vector<std::uint32_t> expert = expert_slots(routing, group);
  const auto of_rank = static_cast<std::uint32_t>(expert.size()) / group.ranks();
  std::vector<std::vector<std::uint32_t>> ranks(routing.experts);
  for (std::uint32_t s = 0; s < expert.size(); ++s) ranks[expert[s]].push_back(s / of_rank);
  ExpertHomes homes{.begin = {0}, .rank = {}};
  for (const auto& of_expert : ranks) {
    homes.rank.insert(homes.rank.end(), of_expert.begin(), of_expert.end());
    homes.begin.push_back(static_cast<std::uint32_t>(homes.rank.size()));
  }
  return homes;
}

}  // namespace flyover::moe
