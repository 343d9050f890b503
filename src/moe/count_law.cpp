#include "moe/count_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "flyover/base/error.hpp"
#include "moe/gauss_rule.hpp"

namespace flyover::moe {

namespace {

using Counts = std::vector<std::uint32_t>;
using Odds = std::map<Counts, double>;

// More change no law by more than 1e-12, up to groups of 1,024 experts.
std::uint32_t gauss_points(std::uint32_t group_size) {
  return 64 + group_size / 4;
}

CountLaw made_law(const ExpertRouting& routing, const Odds& odds) {
  CountLaw law{
      .groups = routing.groups, .group_size = routing.experts / routing.groups, .outcomes = {}};
  for (const auto& [counts, probability] : odds) law.outcomes.push_back({counts, probability});
  return law;
}

void add(Odds& odds, Counts counts, double probability) {
  std::ranges::sort(counts, std::greater<>());
  odds[std::move(counts)] += probability;
}

// Experts in the order of their scores: all that come before the last group is opened are chosen,
// and then those of opened groups.
CountLaw chain(const ExpertRouting& routing) {
  const double group_size = routing.experts / routing.groups;
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
  return made_law(routing, now);
}

// Equal counts of an outcome, and how many of them there are.
struct Parts {
  std::vector<std::uint32_t> value;
  std::vector<std::uint32_t> number;

  explicit Parts(const Counts& counts) {
    for (const std::uint32_t count : counts) {
      if (value.empty() || value.back() != count) {
        value.push_back(count);
        number.push_back(0);
      }
      ++number.back();
    }
  }
};

// In how many ways groups can have these counts, the rest of them none; 0 when there are too few.
double arrangements(std::span<const std::uint32_t> number, std::uint32_t groups) {
  double ways = 1;
  std::uint32_t left = groups;
  for (const std::uint32_t n : number) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (left == 0) return 0;
      ways *= static_cast<double>(left) / (i + 1);
      --left;
    }
  }
  return ways;
}

// All ways to write `left` as at most `parts` counts, none above `most`.
void list_counts(std::uint32_t left, std::uint32_t parts, std::uint32_t most, Counts& counts,
                 std::vector<Counts>& out) {
  if (left == 0) out.push_back(counts);
  if (left == 0 || parts == 0) return;
  for (std::uint32_t next = std::min(left, most); next > 0; --next) {
    counts.push_back(next);
    list_counts(left - next, parts - 1, next, counts, out);
    counts.pop_back();
  }
}

// Of a group of s uniform scores, with S the sum of the two best and N of them above theta.
class GroupScores {
 public:
  GroupScores(std::uint32_t s, std::uint32_t k)
      : s_(s),
        most_(std::min(s, k)),
        having_(most_ + 1, 0),
        reaching_(most_ + 1, 0),
        choose_(most_ + 1, 1) {
    for (std::uint32_t x = 1; x <= most_; ++x) choose_[x] = choose_[x - 1] * (s - x + 1) / x;
  }

  // P(S <= tau): both below tau / 2, or the best above it and all others below tau - best.
  [[nodiscard]] double below(double tau) const {
    return 2 * power(tau / 2, s_) - power(std::max(0.0, tau - 1), s_);
  }
  [[nodiscard]] double density(double tau) const {
    return s_ * (power(tau / 2, s_ - 1) - power(std::max(0.0, tau - 1), s_ - 1));
  }

  // P(S > tau, N = x), after look().
  [[nodiscard]] double having(std::uint32_t x) const { return having_[x]; }
  // Density in theta of the x-th best at theta, with S > tau.
  [[nodiscard]] double reaching(std::uint32_t x) const { return reaching_[x]; }

  void look(double tau, double theta) {
    const double s = s_;
    const double rest = std::max(0.0, tau - theta);
    const double best = std::max(theta, tau - theta);  // That the best has at least, from N = 1.
    // theta^(s - x), to begin with.
    having_[most_] = power(theta, s_ - most_);
    for (std::uint32_t x = most_; x > 0; --x) having_[x - 1] = having_[x] * theta;
    if (most_ >= 2) reaching_[2] = best < 1 ? s * (s - 1) * having_[2] * (1 - best) : 0;

    const bool all_below = 2 * theta > tau;
    having_[0] = all_below ? having_[0] - 2 * power(tau / 2, s_) + power(rest, s_) : 0;
    reaching_[1] = all_below ? s * (having_[1] - power(rest, s_ - 1)) : 0;
    having_[1] = best < 1 ? s * having_[1] * (1 - best) - power(std::max(0.0, tau - best), s_) +
                                power(std::max(0.0, tau - 1), s_)
                          : 0;

    // x scores that are uniform above theta: their two best make S.
    const double t = std::max(0.0, (tau - 2 * theta) / (1 - theta));
    double half = t / 2;
    double over = std::max(0.0, t - 1);
    double above = 1 - theta;
    double enough = 0;  // For x - 1.
    for (std::uint32_t x = 2; x <= most_; ++x) {
      half *= t / 2;
      over *= std::max(0.0, t - 1);
      const double now = 1 - 2 * half + over;
      if (x > 2) reaching_[x] = choose_[x] * x * above * having_[x] * enough;
      above *= 1 - theta;
      having_[x] *= choose_[x] * above * now;
      enough = now;
    }
  }

 private:
  static double power(double x, std::uint32_t n) {
    double out = 1;
    for (; n > 0; n >>= 1U) {
      if ((n & 1U) != 0) out *= x;
      x *= x;
    }
    return out;
  }

  std::uint32_t s_;
  std::uint32_t most_;
  std::vector<double> having_;
  std::vector<double> reaching_;
  std::vector<double> choose_;  // C(s, x)
};

// The largest sum of a dropped group is tau, and the k-th best score of the kept groups theta:
//
//   P(counts) = G C(G-1, M) int dtau density(tau) below(tau)^(G-M-1)
//               int dtheta  sum over kept g of reaching_g  prod over kept h other than g of
//               having_h
//
// for counts of the M kept groups in one order. Between the lines theta = tau - 1, tau / 2 and tau
// the integrand is a polynomial, which Gauss' rule integrates to the last digits.
CountLaw integrated(const ExpertRouting& routing) {
  const std::uint32_t kept = routing.groups_chosen;
  const std::uint32_t group_size = routing.experts / routing.groups;
  std::vector<Counts> all;
  Counts none;
  list_counts(routing.chosen, kept, group_size, none, all);
  std::vector<Parts> parts;
  for (const Counts& counts : all) {
    Counts with_zeros = counts;
    with_zeros.resize(kept, 0);
    parts.emplace_back(with_zeros);
  }
  std::vector<double> sums(all.size(), 0);
  GroupScores scores(group_size, routing.chosen);
  const GaussRule rule(gauss_points(group_size));
  for (const double from : {0.0, 1.0}) {
    rule.over(from, from + 1, [&](double tau, double tau_weight) {
      double weight = tau_weight * scores.density(tau);
      for (std::uint32_t g = 0; g + 1 < routing.groups - kept; ++g) weight *= scores.below(tau);
      std::array<double, 4> edges = {0, tau / 2, tau, 1};
      if (tau > 1) edges = {0, tau - 1, tau / 2, 1};
      for (std::size_t panel = 0; panel < 3; ++panel) {
        rule.over(edges[panel], edges[panel + 1], [&](double theta, double theta_weight) {
          scores.look(tau, theta);
          for (std::size_t i = 0; i < all.size(); ++i) {
            double sum = 0;
            for (std::size_t g = 0; g < parts[i].value.size(); ++g) {
              if (parts[i].value[g] == 0) continue;
              double product = scores.reaching(parts[i].value[g]) * parts[i].number[g];
              for (std::size_t h = 0; h < parts[i].value.size(); ++h) {
                const std::uint32_t others = parts[i].number[h] - (g == h ? 1 : 0);
                for (std::uint32_t n = 0; n < others; ++n) {
                  product *= scores.having(parts[i].value[h]);
                }
              }
              sum += product;
            }
            sums[i] += weight * theta_weight * sum;
          }
        });
      }
    });
  }
  // G C(G-1, M): which group is the best dropped one, and which are kept.
  const std::array<std::uint32_t, 2> roles = {1, kept};
  const double ways = arrangements(roles, routing.groups);
  Odds odds;
  double total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double probability = ways * arrangements(parts[i].number, kept) * sums[i];
    odds[all[i]] = probability;
    total += probability;
  }
  require(std::abs(total - 1) < 1e-9, "probabilities that add up to 1");
  for (auto& [counts, probability] : odds) probability /= total;
  return made_law(routing, odds);
}

CountLaw remembered(const ExpertRouting& routing) {
  using Key = std::array<std::uint32_t, 4>;
  static std::mutex one_at_a_time;
  static std::map<Key, CountLaw> known;
  const std::lock_guard lock(one_at_a_time);
  const Key key = {routing.experts, routing.chosen, routing.groups, routing.groups_chosen};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, integrated(routing)).first->second;
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
  if (routing.gate == Gate::GroupMax || routing.groups_chosen == routing.groups) {
    return chain(routing);
  }
  return remembered(routing);
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
