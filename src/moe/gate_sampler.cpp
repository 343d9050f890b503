#include "moe/gate_sampler.hpp"

#include <algorithm>
#include <limits>

#include "flyover/base/error.hpp"

namespace flyover::moe {

namespace {

// Draws that hit experts taken before are repeated so often; then the others are summed up, which
// costs more and draws the same.
constexpr int patience = 24;

}  // namespace

GateSampler::GateSampler(const ExpertRouting& routing)
    : gate_(routing.gate),
      taken_(routing.experts, 0) {
  if (!routing.popularity.empty()) {
    double sum = 0;
    for (const double p : routing.popularity) sum += p;
    for (const double p : routing.popularity) weight_.push_back(p / sum * routing.experts);
  }
  if (gate_ == Gate::GroupMax || gate_ == Gate::GroupSumOfTwo) {
    groups_ = routing.groups;
    kept_ = routing.groups_chosen;
    const std::uint32_t size = routing.experts / groups_;
    for (std::uint32_t g = 0; g < groups_; ++g) wheels_.push_back(wheel(g * size, size));
    opened_.reserve(groups_);
    open_.assign(groups_, 0);
    runners_.resize(groups_);
    ranking_.resize(groups_);
    first_time_.resize(kept_);
    for (std::uint32_t left = size; left > 0; --left) per_left_.push_back(1.0 / left);
    // Of a group that has none left.
    per_left_.push_back(std::numeric_limits<double>::infinity());
  }
  whole_ = {groups_};
  wheels_.push_back(wheel(0, routing.experts));
}

GateSampler::Wheel GateSampler::wheel(std::uint32_t first, std::uint32_t size) const {
  Wheel made{
      .first = first, .size = size, .weight = static_cast<double>(size), .keep = {}, .alias = {}};
  if (weight_.empty()) return made;
  const std::span<const double> weight = std::span(weight_).subspan(first, size);
  made.weight = 0;
  for (const double w : weight) made.weight += w;
  if (made.weight <= 0) return made;
  made.keep.assign(size, 1);
  made.alias.resize(size);
  std::vector<double> left;
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::uint32_t i = 0; i < size; ++i) {
    made.alias[i] = i;
    left.push_back(weight[i] * size / made.weight);
    (left[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t poor = small.back();
    const std::uint32_t rich = large.back();
    small.pop_back();
    made.keep[poor] = left[poor];
    made.alias[poor] = rich;
    left[rich] -= 1 - left[poor];
    if (left[rich] < 1) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  // What rounding leaves over is 1, but for experts that are never chosen.
  for (const std::uint32_t i : small) {
    if (weight[i] > 0) continue;
    made.keep[i] = 0;
    made.alias[i] = static_cast<std::uint32_t>(std::ranges::max_element(weight) - weight.begin());
  }
  return made;
}

std::uint32_t GateSampler::spin(const Wheel& wheel, Random& random) const {
  const std::uint32_t i = random.below(wheel.size);
  if (wheel.keep.empty()) return wheel.first + i;
  return wheel.first + (random.unit() < wheel.keep[i] ? i : wheel.alias[i]);
}

std::uint32_t GateSampler::take(std::uint32_t expert) {
  taken_[expert] = token_;
  return expert;
}

std::uint32_t GateSampler::next_of(std::span<const std::uint32_t> wheels, Random& random) {
  double total = 0;
  if (wheels.size() > 1) {
    for (const std::uint32_t w : wheels) total += wheels_[w].weight;
  }
  for (int i = 0; i < patience; ++i) {
    std::uint32_t of = wheels[0];
    if (wheels.size() > 1) {
      double at = random.unit() * total;
      for (const std::uint32_t w : wheels) {
        if (wheels_[w].weight <= 0) continue;
        of = w;
        at -= wheels_[w].weight;
        if (at < 0) break;
      }
    }
    const Wheel& on = wheels_[of];
    if (on.weight <= 0) break;
    const std::uint32_t expert = spin(on, random);
    if (!taken(expert)) return take(expert);
  }
  const auto weight_of = [&](std::uint32_t expert) {
    if (taken(expert)) return 0.0;
    return weight_.empty() ? 1.0 : weight_[expert];
  };
  double left = 0;
  for (const std::uint32_t w : wheels) {
    for (std::uint32_t i = 0; i < wheels_[w].size; ++i) left += weight_of(wheels_[w].first + i);
  }
  double at = random.unit() * left;
  std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t w : wheels) {
    for (std::uint32_t i = 0; i < wheels_[w].size; ++i) {
      const std::uint32_t expert = wheels_[w].first + i;
      const double weight = weight_of(expert);
      if (weight <= 0) continue;
      last = expert;
      at -= weight;
      if (at < 0) return take(expert);
    }
  }
  require(last != std::numeric_limits<std::uint32_t>::max(), "an expert left to choose");
  return take(last);
}

void GateSampler::draw(Random& random, std::span<std::uint32_t> chosen) {
  ++token_;
  switch (gate_) {
    case Gate::TopK:
    case Gate::Hash:
      return draw_best(random, chosen);
    case Gate::GroupMax:
      return draw_group_max(random, chosen);
    case Gate::GroupSumOfTwo:
      return draw_sum_of_two(random, chosen);
  }
}

void GateSampler::draw_best(Random& random, std::span<std::uint32_t> chosen) {
  for (std::uint32_t& expert : chosen) expert = next_of(whole_, random);
}

// The groups with the best single scores are the first that ring, and until there are enough of
// them every expert that rings is chosen.
void GateSampler::draw_group_max(Random& random, std::span<std::uint32_t> chosen) {
  opened_.clear();
  for (std::uint32_t& expert : chosen) {
    if (opened_.size() == kept_) {
      expert = next_of(opened_, random);
      continue;
    }
    expert = next_of(whole_, random);
    const std::uint32_t group = expert / wheels_[0].size;
    if (open_[group] == token_) continue;
    open_[group] = token_;
    opened_.push_back(group);
  }
}

double GateSampler::time_of_next(Runner& runner, Random& random) {
  if (weight_.empty()) return random.exponential() * per_left_[runner.rung];
  const Wheel& wheel = wheels_[runner.group];
  if (runner.left <= wheel.weight * 1e-6) {  // Of which rounding is no small part.
    runner.left = 0;
    for (std::uint32_t e = wheel.first; e < wheel.first + wheel.size; ++e) {
      if (!taken(e)) runner.left += weight_[e];
    }
    if (runner.left <= 0) return std::numeric_limits<double>::infinity();
  }
  return random.exponential() / runner.left;
}

std::uint32_t GateSampler::expert_of_next(Runner& runner, Random& random) {
  if (!(runner.time < std::numeric_limits<double>::infinity())) return 0;  // Of none.
  const std::uint32_t expert = next_of(std::span(&runner.group, 1), random);
  if (!weight_.empty()) runner.left -= weight_[expert];
  return expert;
}

void GateSampler::draw_sum_of_two(Random& random, std::span<std::uint32_t> chosen) {
  // When all are alike, who rings does not depend on when: groups that are dropped need no names.
  const bool alike = weight_.empty();
  for (std::uint32_t g = 0; g < groups_; ++g) {
    Runner& runner = runners_[g];
    runner = {.group = g, .left = wheels_[g].weight};
    runner.time = time_of_next(runner, random);
    if (!alike) runner.expert = expert_of_next(runner, random);
    runner.rung = 1;
    runner.second_time = runner.time + time_of_next(runner, random);
    if (!alike) runner.second = expert_of_next(runner, random);
    ranking_[g] = {portable_exp_minus(runner.time) + portable_exp_minus(runner.second_time), g};
  }
  std::ranges::partial_sort(ranking_, ranking_.begin() + kept_, [](const Rank& a, const Rank& b) {
    return a.score != b.score ? a.score > b.score : a.group < b.group;
  });
  for (std::uint32_t i = 0; i < kept_; ++i) first_time_[i] = runners_[ranking_[i].group].time;
  for (std::uint32_t& expert : chosen) {
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < kept_; ++i) {
      if (first_time_[i] < first_time_[best]) best = i;
    }
    Runner& runner = runners_[ranking_[best].group];
    expert = alike ? next_of(std::span(&runner.group, 1), random) : runner.expert;
    if (runner.rung == 1) {
      runner.time = runner.second_time;
      runner.expert = runner.second;
    } else {
      runner.time += time_of_next(runner, random);
      if (!alike) runner.expert = expert_of_next(runner, random);
    }
    ++runner.rung;
    first_time_[best] = runner.time;
  }
}

}  // namespace flyover::moe
