#include "moe/sum_of_two_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "flyover/base/error.hpp"
#include "moe/arrangements.hpp"
#include "moe/gauss_rule.hpp"
#include "moe/portable.hpp"

namespace flyover::moe {

namespace {

// More change no law by more than 1e-12, up to groups of 1,024 experts.
std::uint32_t gauss_points(std::uint32_t group_size) {
  return 64 + group_size / 4;
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
  std::uint32_t s_;
  std::uint32_t most_;
  std::vector<double> having_;
  std::vector<double> reaching_;
  std::vector<double> choose_;  // C(s, x)
};

}  // namespace

// The largest sum of a dropped group is tau, and the k-th best score of the kept groups theta:
//
//   P(counts) = G C(G-1, M) int dtau density(tau) below(tau)^(G-M-1)
//               int dtheta  sum over kept g of reaching_g  prod over kept h other than g of
//               having_h
//
// for counts of the M kept groups in one order. Between the lines theta = tau - 1, tau / 2 and tau
// the integrand is a polynomial, which Gauss' rule integrates to the last digits.
std::vector<CountLaw::Outcome> sum_of_two_outcomes(const ExpertRouting& routing) {
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
  std::vector<CountLaw::Outcome> outcomes;
  double total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    outcomes.push_back({all[i], ways * arrangements(parts[i].number, kept) * sums[i]});
    total += outcomes.back().probability;
  }
  require(std::abs(total - 1) < 1e-9, "probabilities that add up to 1");
  for (CountLaw::Outcome& outcome : outcomes) outcome.probability /= total;
  return outcomes;
}

}  // namespace flyover::moe
