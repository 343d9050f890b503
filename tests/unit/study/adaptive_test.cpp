// Does an adaptive sweep find what the exhaustive one finds, and how much does it leave out?

#include "flyover/study/adaptive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/dice.hpp"
#include "support/made_up_points.hpp"

using namespace flyover;

namespace {

// A random landscape: bounds that are true, estimates within the margin, ties, points without a
// value at some fidelity, negative values.
struct Landscape {
  std::uint64_t seed = 0;
  double margin = 0;
  double looseness = 0;  // Of bounds.
  bool negative = false;
  bool largest = false;
  bool coarse = false;  // Many ties.
};

class LandscapeEvaluator : public PointEvaluator {
 public:
  explicit LandscapeEvaluator(const Landscape& landscape) : land_(landscape) {}

  [[nodiscard]] PointResult evaluate(const SweepPoint& point, Fidelity fidelity) override {
    const auto draw = [&](std::uint64_t salt) {
      return test::mixed(point.number, 10 * land_.seed + salt);
    };
    PointResult result;
    if (draw(0) < 0.05) {
      result.status = PointStatus::Invalid;
      result.reason = "impossible";
      return result;
    }
    if (fidelity != Fidelity::Bound && draw(1) < 0.03) {
      result.status = PointStatus::Refused;
      result.reason = "too slow";
      return result;
    }
    // Often where the best are, which makes the others rise again.
    if (fidelity == Fidelity::Replay && draw(2) < 0.2) {
      result.status = PointStatus::Failed;
      result.reason = "deadlock";
      return result;
    }
    double value = 100 * std::pow(draw(3), 0.3) - (land_.negative ? 50 : 0);
    if (land_.coarse) value = std::round(value);
    const double better = land_.largest ? 1 : -1;
    if (fidelity == Fidelity::Bound) {
      value += better * land_.looseness * draw(4) * 100;
    } else if (fidelity == Fidelity::Estimate) {
      // |replay - e| <= m |e| for e = replay / (1 + x) and |x| <= m.
      value /= 1 + land_.margin * (2 * draw(5) - 1);
    }
    // Some bounds say nothing.
    if (fidelity != Fidelity::Bound || draw(6) > 0.01) result.outputs = {{"value", value}};
    return result;
  }

 private:
  Landscape land_;
};

struct Outcome {
  std::map<std::uint64_t, PointResult> rows;
  AdaptiveCounts counts;
};

AdaptiveObjective objective_of(const Landscape& land, std::uint32_t top, bool estimates) {
  AdaptiveObjective objective;
  objective.value = [](const SweepValues& outputs) -> std::optional<double> {
    const SweepValue* value = find(outputs, "value");
    return value ? std::optional(std::get<double>(*value)) : std::nullopt;
  };
  objective.largest = land.largest;
  objective.top = top;
  if (estimates) objective.margin = land.margin;
  return objective;
}

Outcome adaptive(const SweepPoints& points, const Landscape& land,
                 const AdaptiveObjective& objective, std::uint32_t threads,
                 const std::map<std::uint64_t, PointResult>& earlier = {},
                 Fidelity fidelity = Fidelity::Replay) {
  ThreadRunner runner(
      points, [&] { return std::make_unique<LandscapeEvaluator>(land); }, threads);
  Outcome outcome;
  outcome.rows = earlier;
  AdaptiveOptions options;
  options.fidelity = fidelity;
  options.round = 8;
  options.recall = [&](std::uint64_t number) -> std::optional<PointResult> {
    const auto found = outcome.rows.find(number);
    return found == outcome.rows.end() ? std::nullopt : std::optional(found->second);
  };
  outcome.counts = run_adaptive(
      points, runner,
      [&](const PointResult& result) { CHECK(outcome.rows.emplace(result.number, result).second); },
      objective, options);
  return outcome;
}

std::map<std::uint64_t, PointResult> exhaustive(const SweepPoints& points, const Landscape& land,
                                                Fidelity fidelity = Fidelity::Replay) {
  std::map<std::uint64_t, PointResult> rows;
  SweepOptions options;
  options.threads = 1;
  options.fidelity = fidelity;
  run_sweep(
      points, [&] { return std::make_unique<LandscapeEvaluator>(land); },
      [&](const PointResult& result) { rows.emplace(result.number, result); }, options);
  return rows;
}

// Value and number of the K best; ties with the last included.
std::vector<std::pair<double, std::uint64_t>> best(const std::map<std::uint64_t, PointResult>& rows,
                                                   const AdaptiveObjective& objective) {
  std::vector<std::pair<double, std::uint64_t>> all;
  for (const auto& [number, row] : rows) {
    if (row.status != PointStatus::Done) continue;
    const double value = objective.value(row.outputs).value();
    all.emplace_back(objective.largest ? -value : value, number);
  }
  std::ranges::sort(all);
  if (all.size() > objective.top) {
    const double last = all[objective.top - 1].first;
    std::erase_if(all, [&](const auto& each) { return each.first > last; });
  }
  return all;
}

bool same(const PointResult& a, const PointResult& b) {
  return a.number == b.number && a.status == b.status && a.reason == b.reason &&
         a.inputs == b.inputs && a.outputs == b.outputs;
}

bool same(const std::map<std::uint64_t, PointResult>& a,
          const std::map<std::uint64_t, PointResult>& b) {
  return std::ranges::equal(
      a, b, [](const auto& one, const auto& other) { return same(one.second, other.second); });
}

}  // namespace

TEST_CASE("an adaptive sweep finds the best points of the exhaustive one", "[study][adaptive]") {
  test::Dice dice(1);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Landscape land;
    land.seed = seed;
    land.margin = dice.of<double>({0, 0.01, 0.1, 0.5});
    land.looseness = dice.of<double>({0, 0.05, 0.3, 2});
    land.negative = dice.one_in(2);
    land.largest = dice.one_in(2);
    land.coarse = dice.one_in(2);
    const SweepSpace space = test::made_up_space(20 * (1 + dice.below(20)));
    const SweepPoints points(space);
    const auto top = 1 + dice.below(dice.one_in(10) ? 1000 : 12);
    const AdaptiveObjective objective = objective_of(land, top, !dice.one_in(4));
    CAPTURE(seed, land.margin, land.looseness, land.negative, land.largest, land.coarse, top,
            points.size());

    const auto all = exhaustive(points, land);
    const Outcome outcome = adaptive(points, land, objective, 1);

    REQUIRE(outcome.rows.size() == points.size());
    CHECK(best(outcome.rows, objective) == best(all, objective));
    for (const auto& [number, row] : outcome.rows) {
      if (row.status == PointStatus::Done) CHECK(same(row, all.at(number)));
    }
  }
}

TEST_CASE("what counts as a value may be the estimate", "[study][adaptive]") {
  // Estimates are what they are here, and bounds are wide enough to be theirs too.
  const Landscape land{.seed = 5, .margin = 0, .looseness = 0.3};
  const SweepSpace space = test::made_up_space(400);
  const SweepPoints points(space);
  const AdaptiveObjective objective = objective_of(land, 5, true);

  const Outcome outcome = adaptive(points, land, objective, 2, {}, Fidelity::Estimate);

  CHECK(best(outcome.rows, objective) ==
        best(exhaustive(points, land, Fidelity::Estimate), objective));
  CHECK(outcome.counts.estimates == 0);
  CHECK(outcome.counts.replays < 200);
}

TEST_CASE("neither threads nor interruptions change an adaptive sweep", "[study][adaptive]") {
  test::Dice dice(2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Landscape land{.seed = seed, .margin = 0.1, .looseness = 0.3, .largest = seed % 2 == 0};
    const SweepSpace space = test::made_up_space(300);
    const SweepPoints points(space);
    const AdaptiveObjective objective = objective_of(land, 10, true);
    CAPTURE(seed);

    const Outcome one = adaptive(points, land, objective, 1);
    const Outcome four = adaptive(points, land, objective, 4);
    // Any part of the rows may be what was there when it was interrupted.
    std::map<std::uint64_t, PointResult> earlier;
    for (const auto& [number, row] : one.rows) {
      if (dice.one_in(2)) earlier.emplace(number, row);
    }
    const Outcome resumed = adaptive(points, land, objective, 2, earlier);

    CHECK(same(one.rows, four.rows));
    CHECK(same(one.rows, resumed.rows));
    CHECK(one.counts.replays == four.counts.replays);
    CHECK(one.counts.replays == resumed.counts.replays);
    CHECK(one.counts.estimates == resumed.counts.estimates);
  }
}

TEST_CASE("an adaptive sweep counts what it saved", "[study][adaptive]") {
  const Landscape land{.seed = 3, .margin = 0.02, .looseness = 0.2};
  const SweepSpace space = test::made_up_space(2000);
  const SweepPoints points(space);

  const Outcome outcome = adaptive(points, land, objective_of(land, 5, true), 2);

  const AdaptiveCounts& counts = outcome.counts;
  const auto rows = [&](PointStatus status) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        outcome.rows, [&](const auto& row) { return row.second.status == status; }));
  };
  CHECK(counts.points == 2000);
  CHECK(counts.possible == 2000 - rows(PointStatus::Invalid));
  CHECK(counts.excluded_by_bound + counts.excluded_by_estimate == rows(PointStatus::Excluded));
  CHECK(counts.replays == rows(PointStatus::Done) + rows(PointStatus::Failed));
  CHECK(counts.possible ==
        counts.replays + rows(PointStatus::Refused) + rows(PointStatus::Excluded));
  CHECK(counts.replays < 100);
  CHECK(counts.estimates < 1000);
  const auto excluded = std::ranges::find_if(
      outcome.rows, [](const auto& row) { return row.second.status == PointStatus::Excluded; });
  REQUIRE(excluded != outcome.rows.end());
  CHECK_THAT(excluded->second.reason,
             Catch::Matchers::Matches("its (bound|estimate, at best,) .* is no match for the 5 "
                                      "best, which reach .*"));
  CHECK(find(excluded->second.outputs, "value") != nullptr);
}
