// Are the best points, the Pareto front, the effects of inputs and the answers those that brute
// force and hand-made examples give?

#include "flyover/study/sweep_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <catch2/catch.hpp>

#include "support/dice.hpp"

namespace flyover {
namespace {

PointResult row(std::uint64_t number, SweepValues inputs, SweepValues outputs) {
  PointResult result;
  result.number = number;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  return result;
}

SweepObjective objective(const std::string& text, Goal goal = Goal::Minimise) {
  return {text, goal, Expression(text)};
}

std::vector<SweepObjective> objectives(const std::vector<std::pair<std::string, Goal>>& all) {
  std::vector<SweepObjective> list;
  for (const auto& [text, goal] : all) list.push_back(objective(text, goal));
  return list;
}

std::vector<std::uint64_t> numbers(const std::vector<PointResult>& rows,
                                   const std::vector<RankedPoint>& points) {
  std::vector<std::uint64_t> all;
  for (const RankedPoint& point : points) all.push_back(rows[point.row].number);
  return all;
}

const InputEffect& effect(const SweepSensitivity& sensitivity, const std::string& name) {
  const auto found = std::ranges::find(sensitivity.effects, name, &InputEffect::name);
  REQUIRE(found != sensitivity.effects.end());
  return *found;
}

// Three objectives of few values, so that there are ties; now and then one without a value.
std::vector<PointResult> drawn_rows(test::Dice& dice, std::uint32_t count) {
  std::vector<PointResult> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    SweepValues outputs;
    for (const std::string name : {"a", "b", "c"}) {
      if (!dice.one_in(30)) outputs.emplace_back(name, std::int64_t{dice.below(12)});
    }
    rows.push_back(row(i, {}, std::move(outputs)));
    if (dice.one_in(20)) rows.back().status = PointStatus::Failed;
  }
  dice.shuffle(rows);
  return rows;
}

std::vector<std::uint64_t> sorted_numbers(const std::vector<PointResult>& rows,
                                          const std::vector<std::size_t>& indices) {
  std::vector<std::uint64_t> all;
  for (const std::size_t i : indices) all.push_back(rows[i].number);
  std::ranges::sort(all);
  return all;
}

}  // namespace

TEST_CASE("the best points come first, equal ones by number", "[study][sweep]") {
  std::vector<PointResult> rows = {row(4, {}, {{"t", 2.0}}), row(3, {}, {{"t", 1.0}}),
                                   row(2, {}, {{"t", 2.0}}), row(1, {}, {{"t", 0.5}}),
                                   row(0, {}, {{"other", 0.0}})};
  rows[3].status = PointStatus::Excluded;
  CHECK(numbers(rows, best_points(rows, objective("t"), 10)) ==
        std::vector<std::uint64_t>{3, 2, 4});
  CHECK(numbers(rows, best_points(rows, objective("t"), 2)) == std::vector<std::uint64_t>{3, 2});
  CHECK(numbers(rows, best_points(rows, objective("t", Goal::Maximise), 2)) ==
        std::vector<std::uint64_t>{2, 4});
  CHECK(best_points(rows, objective("2 * t"), 1).front().value == 2.0);
  CHECK(best_points({}, objective("t"), 3).empty());
}

TEST_CASE("an objective that is no number is an error", "[study][sweep]") {
  const std::vector<PointResult> rows = {row(0, {{"kind", std::string("x")}}, {})};
  CHECK_THROWS_WITH(best_points(rows, objective("kind"), 1),
                    "\"kind\" is \"x\", expected a number");
}

TEST_CASE("a Pareto front has what no row beats, as brute force finds it", "[study][sweep]") {
  test::Dice dice(3);
  const std::vector<std::pair<std::string, Goal>> kinds = {
      {"a", Goal::Minimise}, {"b", Goal::Maximise}, {"c", Goal::Minimise}};
  for (int round = 0; round < 150; ++round) {
    const std::vector<PointResult> rows = drawn_rows(dice, 1 + dice.below(80));
    for (std::size_t count = 1; count <= kinds.size(); ++count) {
      const auto goals =
          objectives({kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(count)});
      const auto costs = [&](const PointResult& one) {
        std::vector<double> all;
        for (const SweepObjective& goal : goals) {
          const auto value = objective_value(goal, one);
          if (value) all.push_back(goal.goal == Goal::Minimise ? *value : -*value);
        }
        return all;
      };
      std::vector<std::size_t> expected;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::vector<double> mine = costs(rows[i]);
        if (mine.size() != count) continue;
        const bool beaten = std::ranges::any_of(rows, [&](const PointResult& other) {
          const std::vector<double> theirs = costs(other);
          return theirs.size() == count && theirs != mine &&
                 std::ranges::equal(theirs, mine, [](double x, double y) { return x <= y; });
        });
        if (!beaten) expected.push_back(i);
      }
      CAPTURE(round, count);
      const std::vector<std::size_t> front = pareto_front(rows, goals);
      CHECK(sorted_numbers(rows, front) == sorted_numbers(rows, expected));
      CHECK(std::ranges::is_sorted(
          front, {}, [&](std::size_t i) { return std::pair(costs(rows[i]), rows[i].number); }));
    }
  }
}

TEST_CASE("on a full grid an input's share is its first-order effect", "[study][sweep]") {
  // y = 10 a + b + (a and c both high): variances of a two-valued effect d are d^2 / 4.
  std::vector<PointResult> rows;
  for (std::int64_t a = 0; a < 2; ++a) {
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t c = 0; c < 2; ++c) {
        const double y =
            10.0 * static_cast<double>(a) + static_cast<double>(b) + static_cast<double>(a * c);
        rows.push_back(row(rows.size(), {{"a", a}, {"b", b}, {"c", c}}, {{"y", y}}));
      }
    }
  }
  const SweepSensitivity found = sweep_sensitivity(rows, objective("y"));
  CHECK(found.rows == 8);
  CHECK(found.mean == Approx(5.75));
  const double a = 10.5 * 10.5 / 4;
  const double b = 1.0 / 4;
  const double c = 0.5 * 0.5 / 4;
  const double both = 0.5 * 0.5 / 4;  // Of the interaction, which is nobody's alone.
  const double total = a + b + c + both;
  CHECK(found.deviation == Approx(std::sqrt(total)));
  REQUIRE(found.effects.size() == 3);
  CHECK(found.effects[0].name == "a");
  CHECK(found.effects[1].name == "b");
  CHECK(effect(found, "a").share == Approx(a / total));
  CHECK(effect(found, "b").share == Approx(b / total));
  CHECK(effect(found, "c").share == Approx(c / total));
  CHECK(effect(found, "a").lowest_mean == Approx(0.5));
  CHECK(effect(found, "a").highest_mean == Approx(11.0));
  CHECK(effect(found, "a").lowest_at == "0");
  CHECK(effect(found, "a").highest_at == "1");
  CHECK(effect(found, "a").groups == 2);
  CHECK(effect(found, "a").chance == Approx(1.0 / 7));
  CHECK(effect(found, "a").rank_correlation.value() > 0.8);
}

TEST_CASE("words have no rank, and an input that never changes has no share", "[study][sweep]") {
  const std::vector<PointResult> rows = {
      row(0, {{"kind", std::string("ring")}, {"one", std::int64_t{1}}}, {{"y", 1.0}}),
      row(1, {{"kind", std::string("tree")}, {"one", std::int64_t{1}}}, {{"y", 3.0}})};
  const SweepSensitivity found = sweep_sensitivity(rows, objective("y"));
  CHECK(effect(found, "kind").share == 1.0);
  CHECK_FALSE(effect(found, "kind").rank_correlation.has_value());
  CHECK(effect(found, "kind").highest_at == "\"tree\"");
  CHECK(effect(found, "one").share == 0.0);
  CHECK(effect(found, "one").rank_correlation == 0.0);
}

TEST_CASE("an input that is off counts where it is on", "[study][sweep]") {
  std::vector<PointResult> rows;
  for (std::int64_t vp = 1; vp <= 4; ++vp) {
    rows.push_back(row(rows.size(), {{"vp", vp}}, {{"y", static_cast<double>(vp)}}));
    rows.push_back(row(rows.size(), {}, {{"y", 1000.0}}));
  }
  const SweepSensitivity found = sweep_sensitivity(rows, objective("y"));
  CHECK(found.rows == 8);
  CHECK(effect(found, "vp").rows == 4);
  CHECK(effect(found, "vp").share == Approx(1));
  CHECK(effect(found, "vp").rank_correlation.value() == Approx(1));
}

TEST_CASE("many different numbers are grouped with their neighbours", "[study][sweep]") {
  test::Dice dice(5);
  std::vector<PointResult> rows;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const double x = dice.below(1'000'000) / 1e6;
    const double noise = dice.below(1'000'000) / 1e6;
    rows.push_back(row(i, {{"x", x}, {"z", noise}}, {{"y", 4 * x + noise}}));
  }
  const SweepSensitivity found = sweep_sensitivity(rows, objective("y"));
  CHECK(effect(found, "x").groups == 16);
  CHECK(effect(found, "x").share == Approx(16.0 / 17).margin(0.02));
  CHECK(effect(found, "z").share == Approx(1.0 / 17).margin(0.03));
  CHECK(effect(found, "x").lowest_at.find(" to ") != std::string::npos);
  CHECK(effect(found, "x").rank_correlation.value() > 0.95);

  std::vector<PointResult> shuffled = rows;
  dice.shuffle(shuffled);
  const SweepSensitivity again = sweep_sensitivity(shuffled, objective("y"));
  for (const InputEffect& one : found.effects) {
    CHECK(effect(again, one.name).share == one.share);
    CHECK(effect(again, one.name).lowest_mean == one.lowest_mean);
  }
}

TEST_CASE("only the inputs that are asked for are looked at", "[study][sweep]") {
  const std::vector<PointResult> rows = {row(0, {{"a", 1.0}, {"b", 2.0}}, {{"y", 1.0}})};
  const std::vector<std::string> wanted = {"b", "never"};
  const SweepSensitivity found = sweep_sensitivity(rows, objective("y"), wanted);
  REQUIRE(found.effects.size() == 2);
  CHECK(effect(found, "b").rows == 1);
  CHECK(effect(found, "never").rows == 0);
  CHECK(sweep_sensitivity({}, objective("y")).effects.empty());
}

TEST_CASE("the cheapest that does X is the cheapest of those that do", "[study][sweep]") {
  std::vector<PointResult> rows = {
      row(0, {}, {{"cost", 1.0}, {"speed", 5.0}}), row(1, {}, {{"cost", 3.0}, {"speed", 20.0}}),
      row(2, {}, {{"cost", 2.0}, {"speed", 10.0}}), row(3, {}, {{"cost", 2.0}, {"speed", 11.0}}),
      row(4, {}, {{"cost", 0.1}})};
  SweepQuestion question{"fast enough", objective("cost"), {}};
  question.where.emplace_back("speed >= 10");
  const SweepAnswer found = answer(rows, question);
  CHECK(found.name == "fast enough");
  CHECK(found.considered == 5);
  CHECK(found.holding == 3);
  REQUIRE(found.best.has_value());
  CHECK(rows[found.best->row].number == 2);
  CHECK(found.best->value == 2.0);

  question.where.emplace_back("speed > 100");
  CHECK_FALSE(answer(rows, question).best.has_value());
  CHECK(answer(rows, question).holding == 0);
}

TEST_CASE("measures join the outputs, and conditions on outputs refuse", "[study][sweep]") {
  SweepConfig config;
  SweepAxis axis;
  axis.name = "tp";
  axis.values = {std::int64_t{1}};
  config.space.axes.push_back(std::move(axis));
  config.space.where.emplace_back("tp > 100");  // On inputs: not looked at here.
  config.space.where.emplace_back("fits and speed > 1");
  config.measures.emplace_back("speed", Expression("1 / time"));
  config.measures.emplace_back("twice", Expression("speed * 2"));

  PointResult fast = row(0, {{"tp", std::int64_t{1}}}, {{"fits", true}, {"time", 0.25}});
  finish_point(config, fast);
  CHECK(fast.status == PointStatus::Done);
  CHECK(fast.outputs == SweepValues{{"fits", true},
                                    {"speed", std::int64_t{4}},
                                    {"time", 0.25},
                                    {"twice", std::int64_t{8}}});

  PointResult slow = row(1, {{"tp", std::int64_t{1}}}, {{"fits", true}, {"time", std::int64_t{4}}});
  finish_point(config, slow);
  CHECK(slow.status == PointStatus::Refused);
  CHECK(slow.reason == "\"fits and speed > 1\" does not hold");
  CHECK(*find(slow.outputs, "speed") == SweepValue(0.25));

  PointResult endless =
      row(2, {{"tp", std::int64_t{1}}}, {{"fits", true}, {"time", std::int64_t{0}}});
  finish_point(config, endless);
  CHECK(endless.reason == "\"fits and speed > 1\" needs speed, which has no value here");

  PointResult failed = row(3, {{"tp", std::int64_t{1}}}, {});
  failed.status = PointStatus::Failed;
  finish_point(config, failed);
  CHECK(failed.status == PointStatus::Failed);
  CHECK(failed.outputs.empty());
}

}  // namespace flyover
