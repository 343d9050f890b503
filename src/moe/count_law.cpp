#include "moe/count_law.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "moe/arrangements.hpp"
#include "moe/sum_of_two_law.hpp"

namespace flyover::moe {

namespace {

using Odds = std::map<Counts, double>;

void add(Odds& odds, Counts counts, double probability) {
  std::ranges::sort(counts, std::greater<>());
  odds[std::move(counts)] += probability;
}

// Experts in the order of their scores: all that come before the last group is opened are chosen,
// and then those of opened groups.
std::vector<CountLaw::Outcome> chain(const ExpertRouting& routing) {
  const std::uint32_t group_size = routing.experts / routing.groups;
  Odds now = {{{}, 1.0}};
  for (std::uint32_t t = 0; t < routing.chosen; ++t) {
    Odds next;
    for (const auto& [counts, probability] : now) {
      const auto opened = static_cast<double>(counts.size());
      const bool all_open = counts.size() == routing.groups_chosen;
      const double left = (all_open ? opened * group_size : routing.experts) - t;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] == group_size) continue;
        Counts more = counts;
        ++more[i];
        add(next, std::move(more), probability * (group_size - counts[i]) / left);
      }
      if (all_open) continue;
      Counts more = counts;
      more.push_back(1);
      add(next, std::move(more), probability * (routing.groups - opened) * group_size / left);
    }
    now = std::move(next);
  }
  std::vector<CountLaw::Outcome> outcomes;
  for (const auto& [counts, probability] : now) outcomes.push_back({counts, probability});
  return outcomes;
}

std::vector<CountLaw::Outcome> remembered(const ExpertRouting& routing) {
  using Key = std::array<std::uint32_t, 4>;
  static std::mutex one_at_a_time;
  static std::map<Key, std::vector<CountLaw::Outcome>> known;
  const std::lock_guard lock(one_at_a_time);
  const Key key = {routing.experts, routing.chosen, routing.groups, routing.groups_chosen};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, sum_of_two_outcomes(routing)).first->second;
}

// x of a group's experts, chosen at random, all stay away from a set.
class Stay {
 public:
  Stay(const GroupShares& shares, std::uint32_t group_size)
      : untouched_(group_size - static_cast<std::uint32_t>(shares.size())),
        group_size_(group_size),
        polynomial_{1} {
    for (const double share : shares) {
      if (share >= 1) continue;  // A factor of 1 + 0 z.
      polynomial_.push_back(0);
      for (std::size_t i = polynomial_.size() - 1; i > 0; --i) {
        polynomial_[i] += (1 - share) * polynomial_[i - 1];
      }
    }
  }

  [[nodiscard]] double operator()(std::uint32_t x) const {
    double sum = 0;
    for (std::uint32_t i = 0; i < polynomial_.size() && i <= x; ++i) {
      if (x - i > untouched_) continue;
      // C(untouched, x - i) / C(group_size, x), in factors that cannot overflow.
      double term = polynomial_[i];
      std::uint32_t at = 0;
      for (; at < x - i; ++at) {
        term *= static_cast<double>(untouched_ - at) / (group_size_ - at);
      }
      for (; at < x; ++at) term *= static_cast<double>(at + 1) / (group_size_ - at);
      sum += term;
    }
    return sum;
  }

 private:
  std::uint32_t untouched_;
  std::uint32_t group_size_;
  std::vector<double> polynomial_;
};

}  // namespace

CountLaw count_law(const ExpertRouting& routing) {
  const bool limited = routing.gate == Gate::GroupMax || routing.gate == Gate::GroupSumOfTwo;
  if (!limited) {
    return {.groups = 1, .group_size = routing.experts, .outcomes = {{{routing.chosen}, 1.0}}};
  }
  const bool ordered = routing.gate == Gate::GroupMax || routing.groups_chosen == routing.groups;
  return {.groups = routing.groups,
          .group_size = routing.experts / routing.groups,
          .outcomes = ordered ? chain(routing) : remembered(routing)};
}

double hit_probability(const CountLaw& law, std::span<const GroupShares> touched) {
  const auto untouched_groups = law.groups - static_cast<std::uint32_t>(touched.size());
  std::vector<Stay> stay;
  for (const GroupShares& shares : touched) stay.emplace_back(shares, law.group_size);

  double miss = 0;
  for (const CountLaw::Outcome& outcome : law.outcomes) {
    const Parts parts(outcome.counts);
    // By the counts that are left, after some of the touched groups have theirs: the weight of all
    // ways to get there.
    std::map<std::vector<std::uint32_t>, double> ways = {{parts.number, 1.0}};
    for (const Stay& of : stay) {
      std::map<std::vector<std::uint32_t>, double> next;
      for (const auto& [left, weight] : ways) {
        next[left] += weight;  // This group has none.
        for (std::size_t i = 0; i < left.size(); ++i) {
          if (left[i] == 0) continue;
          std::vector<std::uint32_t> fewer = left;
          --fewer[i];
          next[fewer] += weight * of(parts.value[i]);
        }
      }
      ways = std::move(next);
    }
    double staying = 0;
    for (const auto& [left, weight] : ways) {
      staying += weight * arrangements(left, untouched_groups);
    }
    miss += outcome.probability * staying / arrangements(parts.number, law.groups);
  }
  return 1 - miss;
}

}  // namespace flyover::moe
