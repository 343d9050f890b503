#pragma once

// Points whose outputs are a formula, with bounds that are true and estimates that are as good as
// they say: what tests of sweeps evaluate.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flyover/study/adaptive.hpp"
#include "flyover/study/sweep.hpp"
#include "flyover/study/sweep_space.hpp"

namespace flyover::test {

constexpr double made_up_margin = 0.1;

// A grid of so many points, rounded up to a multiple of 20.
inline SweepSpace made_up_space(std::uint64_t points) {
  const auto axis = [](const char* name, std::vector<SweepValue> values) {
    SweepAxis out;
    out.path = name;
    out.name = name;
    out.values = std::move(values);
    return out;
  };
  std::vector<SweepValue> large;
  for (std::uint64_t i = 0; i < (points + 19) / 20; ++i) {
    large.emplace_back(static_cast<std::int64_t>(i));
  }
  SweepSpace space;
  space.axes.push_back(axis("large", std::move(large)));
  space.axes.push_back(axis("small", {1.5, 0.1, 1e-9, -3.25}));
  space.axes.push_back(axis("word", {std::string("a"), std::string("b"), std::string("c, \"d\""),
                                     std::string("e"), std::string()}));
  return space;
}

// A well-mixed number in [0, 1) (splitmix64).
inline double mixed(std::uint64_t number, std::uint64_t salt) {
  std::uint64_t z = (number + 1) * 0x9e3779b97f4a7c15U + salt * 0xd1b54a32d192ed03U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

class MadeUpEvaluator : public PointEvaluator {
 public:
  explicit MadeUpEvaluator(std::chrono::microseconds delay = {}, std::int64_t throw_at = -1,
                           std::uint64_t seed = 0)
      : delay_(delay),
        throw_at_(throw_at),
        seed_(seed) {}

  [[nodiscard]] PointResult evaluate(const SweepPoint& point, Fidelity fidelity) override {
    // Unequal ones, so that threads overtake each other.
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_ * (1 + point.number % 3));
    const auto number = static_cast<std::int64_t>(point.number);
    if (number == throw_at_)
      throw std::logic_error("point " + std::to_string(number) + " is broken");
    PointResult result;
    if (number % 17 == 3) {
      result.status = PointStatus::Invalid;
      result.reason = "3 does not divide\n\"17\", or so";
      return result;
    }
    if (fidelity == Fidelity::Replay && number % 29 == 5) {
      result.status = PointStatus::Failed;
      result.reason = "deadlock";
      return result;
    }
    result.outputs = {{"cost", cost(point.number, fidelity)}, {"fits", number % 2 == 0}};
    return result;
  }

 private:
  [[nodiscard]] double cost(std::uint64_t number, Fidelity fidelity) const {
    // With many ties.
    const double value = std::floor(20 * mixed(number, seed_)) + 1 + mixed(number / 4, seed_ + 1);
    switch (fidelity) {
      case Fidelity::Bound:
        return value * (0.5 + 0.5 * mixed(number, seed_ + 2));
      case Fidelity::Estimate:
        // |value - estimate| <= 0.1 estimate.
        return value / (1 + made_up_margin * (2 * mixed(number, seed_ + 3) - 1));
      case Fidelity::Replay:
        break;
    }
    return value;
  }

  std::chrono::microseconds delay_;
  std::int64_t throw_at_;
  std::uint64_t seed_;
};

inline AdaptiveObjective made_up_objective(std::uint32_t top) {
  return {.value = [](const SweepValues& outputs) -> std::optional<double> {
            const SweepValue* cost = find(outputs, "cost");
            return cost ? std::optional(std::get<double>(*cost)) : std::nullopt;
          },
          .largest = false,
          .top = top,
          .margin = made_up_margin};
}

}  // namespace flyover::test
