#include "moe/token_counter.hpp"

namespace flyover::moe {

void TokenCounter::count(Random& random, std::uint64_t tokens, std::span<double> node,
                         std::span<double> rank, std::span<double> pairs) {
  for (std::uint64_t t = 0; t < tokens; ++t) {
    ++token_;
    sampler_.draw(random, chosen_);
    for (const std::uint32_t expert : chosen_) {
      const auto home = homes_.of(expert);
      const std::uint32_t to =
          home.size() == 1 ? home[0] : home[random.below(static_cast<std::uint32_t>(home.size()))];
      ++pairs[to];
      if (rank_seen_[to] == token_) continue;
      rank_seen_[to] = token_;
      ++rank[to];
      const std::uint32_t at = group_.node[to];
      if (node_seen_[at] == token_) continue;
      node_seen_[at] = token_;
      ++node[at];
    }
  }
}

}  // namespace flyover::moe
