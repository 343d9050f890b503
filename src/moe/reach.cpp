#include "moe/reach.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "moe/count_law.hpp"
#include "moe/token_counter.hpp"

namespace flyover::moe {

namespace {

// The probability for each of some sets of slots that a token goes there. `set_of`: by rank.
std::vector<double> hits(const ExpertRouting& routing, const CountLaw& law,
                         const ExpertHomes& homes, std::span<const std::uint32_t> set_of,
                         std::uint32_t sets) {
  // By set and group, both in order.
  std::vector<std::map<std::uint32_t, GroupShares>> shares(sets);
  std::map<std::uint32_t, std::uint32_t> copies;  // Of an expert, by set.
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    const auto home = homes.of(e);
    copies.clear();
    for (const std::uint32_t rank : home) ++copies[set_of[rank]];
    for (const auto& [set, here] : copies) {
      shares[set][e / law.group_size].push_back(static_cast<double>(here) /
                                                static_cast<double>(home.size()));
    }
  }
  // Sets that look alike are asked for once, which also makes their numbers equal bit for bit.
  std::map<std::vector<GroupShares>, double> known;
  std::vector<double> hit;
  for (auto& by_group : shares) {
    std::vector<GroupShares> touched;
    for (auto& [g, of_group] : by_group) {
      std::ranges::sort(of_group);
      touched.push_back(std::move(of_group));
    }
    std::ranges::sort(touched);
    const auto found = known.find(touched);
    if (found != known.end()) {
      hit.push_back(found->second);
      continue;
    }
    hit.push_back(hit_probability(law, touched));
    known.emplace(std::move(touched), hit.back());
  }
  return hit;
}

Reach drawn_reach(const ExpertRouting& routing, const ExpertGroup& group,
                  const ExpertHomes& homes) {
  Reach reach{.node = std::vector<double>(group.nodes(), 0),
              .rank = std::vector<double>(group.ranks(), 0),
              .pairs = std::vector<double>(group.ranks(), 0)};
  Random random(0, 1);
  TokenCounter(routing, group, homes)
      .count(random, estimated_tokens, reach.node, reach.rank, reach.pairs);
  for (std::vector<double>* of : {&reach.node, &reach.rank, &reach.pairs}) {
    for (double& count : *of) count /= estimated_tokens;
  }
  return reach;
}

// All that an estimate depends on.
struct ReachKey {
  std::array<std::uint32_t, 5> gate;
  std::vector<double> popularity;
  std::vector<std::uint32_t> homes_begin;
  std::vector<std::uint32_t> homes_rank;
  std::vector<std::uint32_t> node;

  auto operator<=>(const ReachKey&) const = default;
};

}  // namespace

Reach expected_reach(const ExpertRouting& routing, const ExpertGroup& group,
                     const ExpertHomes& homes) {
  const CountLaw law = count_law(routing);
  std::vector<std::uint32_t> itself(group.ranks());
  for (std::uint32_t r = 0; r < group.ranks(); ++r) itself[r] = r;
  Reach reach{.node = hits(routing, law, homes, group.node, group.nodes()),
              .rank = hits(routing, law, homes, itself, group.ranks()),
              .pairs = {}};
  // Each expert has k / E of the tokens. Slots by the number of copies of their expert, so that
  // ranks which hold as many of each kind get equal numbers.
  std::vector<std::map<std::size_t, std::uint32_t>> slots(group.ranks());
  for (std::uint32_t e = 0; e < routing.experts; ++e) {
    const auto home = homes.of(e);
    for (const std::uint32_t rank : home) ++slots[rank][home.size()];
  }
  for (const auto& by_copies : slots) {
    double experts = 0;
    for (const auto& [copies, number] : by_copies) {
      experts += number / static_cast<double>(copies);
    }
    reach.pairs.push_back(routing.chosen * experts / routing.experts);
  }
  return reach;
}

Reach estimated_reach(const ExpertRouting& routing, const ExpertGroup& group,
                      const ExpertHomes& homes) {
  constexpr std::size_t most_known = 64;
  static std::mutex one_at_a_time;
  static std::map<ReachKey, Reach> known;
  ReachKey key{.gate = {routing.experts, routing.chosen, static_cast<std::uint32_t>(routing.gate),
                        routing.groups, routing.groups_chosen},
               .popularity = routing.popularity,
               .homes_begin = homes.begin,
               .homes_rank = homes.rank,
               .node = group.node};
  const std::lock_guard lock(one_at_a_time);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  Reach reach = drawn_reach(routing, group, homes);
  if (known.size() == most_known) known.clear();
  known.emplace(std::move(key), reach);
  return reach;
}

}  // namespace flyover::moe
