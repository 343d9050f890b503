#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "flyover/workload/expert_exchange.hpp"
#include "moe/random.hpp"

namespace flyover::moe {

// Draws the experts of tokens as a gate chooses them among scores that are independent.
//
// Expert e with weight w_e (popularity with mean 1; 1 without) has the score U^(1/w_e), U uniform
// on (0, 1): the best of all is e with odds w_e (Efraimidis & Spirakis 2006), and
// -log score = Exp / w_e is a race of exponential clocks. Order, and so what TopK and GroupMax
// choose, is that of Gumbel scores log w_e + Gumbel; GroupSumOfTwo adds the scores themselves,
// which without popularity are uniform (MOE.md 1.6: its Monte Carlo).
//
// Scores are not drawn one by one. A clock has no memory: the next to ring among some clocks is e
// with odds w_e, after Exp / (their sum of weights), whatever rang before. So only those that are
// looked at are drawn, with the same distribution; TopK and GroupMax need no times at all.
class GateSampler {
 public:
  // `routing` must have passed check_routing.
  explicit GateSampler(const ExpertRouting& routing);

  // k different experts, in the order of their scores. `chosen` has k elements. O(k), and
  // O(groups) for GroupSumOfTwo.
  void draw(Random& random, std::span<std::uint32_t> chosen);

 private:
  // Draws from a range of experts in constant time (Walker's aliases, by Vose's construction).
  struct Wheel {
    std::uint32_t first = 0;
    std::uint32_t size = 0;
    double weight = 0;  // Sum.
    // Empty when all are alike.
    std::vector<double> keep;
    std::vector<std::uint32_t> alias;
  };
  struct Runner {  // A group, by its next clock to ring.
    std::uint32_t group = 0;
    std::uint32_t rung = 0;  // Before it.
    double left = 0;         // Weight of those whose names are not drawn.
    double time = 0;
    std::uint32_t expert = 0;
    std::uint32_t second = 0;  // The one after the first.
    double second_time = 0;
  };
  struct Rank {
    double score = 0;
    std::uint32_t group = 0;
  };

  [[nodiscard]] Wheel wheel(std::uint32_t first, std::uint32_t size) const;
  [[nodiscard]] std::uint32_t spin(const Wheel& wheel, Random& random) const;
  [[nodiscard]] bool taken(std::uint32_t expert) const { return taken_[expert] == token_; }
  std::uint32_t take(std::uint32_t expert);
  // The next to ring among the clocks of the wheels that have not.
  std::uint32_t next_of(std::span<const std::uint32_t> wheels, Random& random);
  [[nodiscard]] double time_of_next(Runner& runner, Random& random);
  std::uint32_t expert_of_next(Runner& runner, Random& random);
  void draw_best(Random& random, std::span<std::uint32_t> chosen);
  void draw_group_max(Random& random, std::span<std::uint32_t> chosen);
  void draw_sum_of_two(Random& random, std::span<std::uint32_t> chosen);

  Gate gate_;
  std::uint32_t groups_ = 0;
  std::uint32_t kept_ = 0;
  std::vector<double> weight_;               // By expert; empty when all are alike.
  std::vector<Wheel> wheels_;                // By group; the last holds all experts.
  std::array<std::uint32_t, 1> whole_ = {};  // Its index.
  std::uint64_t token_ = 0;
  std::vector<std::uint64_t> taken_;  // By expert: the last token for which it was drawn.
  std::vector<std::uint64_t> open_;   // By group, likewise.
  std::vector<std::uint32_t> opened_;
  std::vector<Runner> runners_;
  std::vector<Rank> ranking_;
  std::vector<double> first_time_;  // Of the groups that are kept.
  std::vector<double> per_left_;    // By the number that rang: 1 / the others.
};

}  // namespace flyover::moe
