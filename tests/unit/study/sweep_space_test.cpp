// Are the points of a sweep those that its file describes: all of a grid, once each, and samples
// that are spread as their method promises?

#include "flyover/study/sweep_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "support/dice.hpp"

namespace flyover {
namespace {

SweepAxis list(const std::string& name, std::vector<SweepValue> values,
               const std::string& when = "") {
  SweepAxis axis;
  axis.path = "workload." + name;
  axis.name = name;
  axis.values = std::move(values);
  if (!when.empty()) axis.when.emplace(when);
  return axis;
}

SweepAxis whole_numbers(const std::string& name, std::int64_t count, const std::string& when = "") {
  std::vector<SweepValue> values;
  for (std::int64_t i = 1; i <= count; ++i) values.emplace_back(i);
  return list(name, std::move(values), when);
}

SweepAxis between(const std::string& name, double low, double high) {
  SweepAxis axis;
  axis.path = "workload." + name;
  axis.name = name;
  axis.low = low;
  axis.high = high;
  return axis;
}

template <class... Axes>
SweepSpace space_of(Axes&&... axes) {
  SweepSpace space;
  (space.axes.push_back(std::forward<Axes>(axes)), ...);
  return space;
}

SweepSpace sample(SweepSpace space, SweepSampling sampling, std::uint64_t points) {
  space.sampling = sampling;
  space.points = points;
  return space;
}

std::string words(const SweepPoint& point) {
  std::string text;
  for (const auto& [name, value] : point.inputs) {
    text += (text.empty() ? "" : " ") + name + "=" + to_string(value);
  }
  return text;
}

std::vector<std::string> all_words(const SweepSpace& space) {
  const SweepPoints points(space);
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < points.size(); ++i) {
    CHECK(points.point(i).number == i);
    all.push_back(words(points.point(i)));
  }
  return all;
}

double number(const SweepPoint& point, const std::string& name) {
  const SweepValue value = *find(point.inputs, name);
  return std::holds_alternative<double>(value) ? std::get<double>(value)
                                               : static_cast<double>(std::get<std::int64_t>(value));
}

}  // namespace

TEST_CASE("values print as JSON has them", "[study][sweep]") {
  CHECK(to_string(SweepValue(true)) == "true");
  CHECK(to_string(SweepValue(std::int64_t{-3})) == "-3");
  CHECK(to_string(SweepValue(0.1)) == "0.1");
  CHECK(to_string(SweepValue(std::string("a\"b"))) == R"("a\"b")");
  SweepAxis axis = list("rate", {std::int64_t{400}});
  CHECK(setting_of(axis, axis.values[0]) == "400");
  axis.unit = "Gb/s";
  CHECK(setting_of(axis, axis.values[0]) == "400 Gb/s");
}

TEST_CASE("a grid is in row-major order of its axes", "[study][sweep]") {
  const SweepSpace space =
      space_of(whole_numbers("b", 2), list("a", {std::string("x"), false, 0.5}));
  CHECK(all_words(space) == std::vector<std::string>{"a=\"x\" b=1", "a=false b=1", "a=0.5 b=1",
                                                     "a=\"x\" b=2", "a=false b=2", "a=0.5 b=2"});
}

TEST_CASE("a space without axes is one point", "[study][sweep]") {
  CHECK(all_words(SweepSpace{}) == std::vector<std::string>{""});
}

TEST_CASE("an axis that is off collapses, so that no point appears twice", "[study][sweep]") {
  const SweepSpace space =
      space_of(list("schedule", {std::string("1f1b"), std::string("interleaved")}),
               whole_numbers("vp", 3, "schedule == 'interleaved'"), whole_numbers("mb", 2));
  CHECK(all_words(space) ==
        std::vector<std::string>{
            "mb=1 schedule=\"1f1b\"", "mb=2 schedule=\"1f1b\"",
            "mb=1 schedule=\"interleaved\" vp=1", "mb=2 schedule=\"interleaved\" vp=1",
            "mb=1 schedule=\"interleaved\" vp=2", "mb=2 schedule=\"interleaved\" vp=2",
            "mb=1 schedule=\"interleaved\" vp=3", "mb=2 schedule=\"interleaved\" vp=3"});
}

TEST_CASE("an axis is off where its condition needs one that is off", "[study][sweep]") {
  const SweepSpace space = space_of(whole_numbers("a", 2), whole_numbers("b", 2, "a == 2"),
                                    whole_numbers("c", 2, "b == 2 or true"));
  CHECK(all_words(space) == std::vector<std::string>{"a=1", "a=2 b=1 c=1", "a=2 b=1 c=2",
                                                     "a=2 b=2 c=1", "a=2 b=2 c=2"});
}

TEST_CASE("the points of any conditional grid are those of nested loops, each once",
          "[study][sweep]") {
  test::Dice dice(11);
  for (int round = 0; round < 200; ++round) {
    SweepSpace space;
    const std::uint32_t axes = 1 + dice.below(5);
    for (std::uint32_t i = 0; i < axes; ++i) {
      std::string when;
      if (i > 0 && dice.one_in(2)) {
        const std::string one(1, static_cast<char>('a' + dice.below(i)));
        const std::string other(1, static_cast<char>('a' + dice.below(i)));
        when = dice.of<std::string>({one + " > 1", one + " + " + other + " <= 3",
                                     one + " == 2 or " + other + " == 1",
                                     "not (" + one + " == " + other + ")"});
      }
      space.axes.push_back(
          whole_numbers(std::string(1, static_cast<char>('a' + i)), 1 + dice.below(4), when));
    }

    // Nested loops, without any counting.
    std::vector<SweepValues> expected = {{}};
    for (const SweepAxis& axis : space.axes) {
      std::vector<SweepValues> longer;
      for (const SweepValues& before : expected) {
        const bool known =
            !axis.when || std::ranges::all_of(axis.when->names(), [&](const std::string& name) {
              return find(before, name) != nullptr;
            });
        if (axis.when && (!known || !axis.when->holds(before))) {
          longer.push_back(before);
          continue;
        }
        for (const SweepValue& value : axis.values) {
          longer.push_back(before);
          longer.back().emplace_back(axis.name, value);  // Names ascend with the axes.
        }
      }
      expected = std::move(longer);
    }

    const SweepPoints points(space);
    REQUIRE(points.size() == expected.size());
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < points.size(); ++i) {
      const SweepPoint point = points.point(i);
      REQUIRE(point.inputs == expected[i]);
      CHECK(seen.insert(words(point)).second);
    }
  }
}

TEST_CASE("a grid of more points than memory holds can be numbered", "[study][sweep]") {
  SweepSpace space;
  for (char name = 'a'; name <= 'i'; ++name) {
    space.axes.push_back(whole_numbers(std::string(1, name), 100, name == 'i' ? "a > 50" : ""));
  }
  const SweepPoints points(space);
  CHECK(points.size() == 50 * 100'000'000'000'000 + 50 * 10'000'000'000'000'000);
  CHECK(words(points.point(0)) == "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1");
  CHECK(words(points.point(points.size() - 1)) ==
        "a=100 b=100 c=100 d=100 e=100 f=100 g=100 h=100 i=100");
  CHECK(words(points.point(50 * 100'000'000'000'000)) == "a=51 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1");

  space.axes.push_back(whole_numbers("j", 100));
  CHECK_THROWS_WITH(SweepPoints(space),
                    "the grid has more than 9e18 points: shorten lists or draw a sample");
}

TEST_CASE("conditions on inputs refuse points, others are left to who has outputs",
          "[study][sweep]") {
  SweepSpace space = space_of(whole_numbers("tp", 2), whole_numbers("pp", 2, "tp == 2"));
  space.derived.emplace_back("gpus", Expression("tp * pp"));
  space.derived.emplace_back("half", Expression("gpus / 2"));
  space.where.emplace_back("tp == 1 or half < 2");
  space.where.emplace_back("fits_in_memory and tp > 100");
  const SweepPoints points(space);
  REQUIRE(points.size() == 3);
  CHECK(words(points.point(0)) == "tp=1");
  CHECK(points.point(0).refused.empty());
  CHECK(words(points.point(1)) == "gpus=2 half=1 pp=1 tp=2");
  CHECK(points.point(1).refused.empty());
  CHECK(words(points.point(2)) == "gpus=4 half=2 pp=2 tp=2");
  CHECK(points.point(2).refused == "\"tp == 1 or half < 2\" does not hold");

  CHECK(input_names(space) == std::vector<std::string>{"gpus", "half", "pp", "tp"});
  CHECK(uses_only(space.where[0], input_names(space)));
  CHECK_FALSE(uses_only(space.where[1], input_names(space)));
}

TEST_CASE("what cannot be worked out at a point is its reason", "[study][sweep]") {
  SweepSpace space = space_of(whole_numbers("a", 2), whole_numbers("b", 1, "a == 2"));
  space.derived.emplace_back("inverse", Expression("1 / (a - 2)"));
  space.where.emplace_back("b == 1");
  const SweepPoints points(space);
  CHECK(points.point(0).refused == "\"b == 1\" needs b, which has no value here");
  CHECK(points.point(1).refused == "inverse: \"1 / (a - 2)\" is no finite number here");
}

TEST_CASE("a condition of an axis that mixes up kinds is an error of the grid", "[study][sweep]") {
  const SweepSpace space = space_of(whole_numbers("a", 2), whole_numbers("b", 2, "a == 'x'"));
  CHECK_THROWS_WITH(SweepPoints(space),
                    "when of b: character 3 of \"a == 'x'\": == compares like "
                    "with like, got 1 and \"x\"");
}

TEST_CASE("samples stay in range and are the same for the same seed", "[study][sweep]") {
  const auto method =
      GENERATE(SweepSampling::Random, SweepSampling::LatinHypercube, SweepSampling::Sobol);
  SweepSpace space = space_of(between("x", -1, 3), between("y", 10, 1000), between("n", 1, 6),
                              list("word", {std::string("a"), std::string("b"), std::string("c")}),
                              whole_numbers("b", 9, "word == 'b'"));
  space.axes[1].logarithmic = true;
  space.axes[2].whole = true;
  space = sample(std::move(space), method, 600);
  const SweepPoints points(space);
  REQUIRE(points.size() == 600);
  std::vector<int> n(7);
  int below_100 = 0;
  int words_b = 0;
  for (std::uint64_t i = 0; i < points.size(); ++i) {
    const SweepPoint point = points.point(i);
    CHECK(point.refused.empty());
    const double x = number(point, "x");
    const double y = number(point, "y");
    CHECK((x >= -1 && x <= 3));
    CHECK((y >= 10 && y <= 1000));
    below_100 += y < 100 ? 1 : 0;
    ++n.at(static_cast<std::size_t>(std::get<std::int64_t>(*find(point.inputs, "n"))));
    const bool is_b = *find(point.inputs, "word") == SweepValue(std::string("b"));
    words_b += is_b ? 1 : 0;
    CHECK((find(point.inputs, "b") != nullptr) == is_b);
    CHECK(points.point(i).inputs == point.inputs);
  }
  const int tolerance = method == SweepSampling::Random ? 60 : 4;
  CHECK(std::abs(below_100 - 300) <= tolerance);
  CHECK(std::abs(words_b - 200) <= tolerance);
  CHECK(n[0] == 0);
  for (std::size_t i = 1; i < n.size(); ++i) CHECK(std::abs(n[i] - 100) <= tolerance);

  CHECK(SweepPoints(space).point(5).inputs == points.point(5).inputs);
  SweepSpace other = sample(space_of(between("x", -1, 3)), method, 600);
  other.seed = 2;
  const bool same = number(SweepPoints(other).point(5), "x") == number(points.point(5), "x");
  CHECK(same == (method == SweepSampling::Sobol));
}

TEST_CASE("samples are these points on every machine", "[study][sweep]") {
  const auto first = [](SweepSampling method) {
    SweepSpace space = sample(space_of(between("x", 0, 1), between("y", 1, 100)), method, 8);
    space.axes[1].logarithmic = true;
    return words(SweepPoints(space).point(3));
  };
  CHECK(first(SweepSampling::Random) == "x=0.856743784154 y=8.25313857792");
  CHECK(first(SweepSampling::LatinHypercube) == "x=0.232092857361 y=23.1514018555");
}

TEST_CASE("a Latin hypercube has one point in every part of every axis", "[study][sweep]") {
  const auto count = GENERATE(1U, 2U, 3U, 7U, 64U, 100U, 1000U, 4097U);
  CAPTURE(count);
  SweepSpace space = space_of(between("a", 0, 1), between("b", 0, 1), between("c", 0, 1));
  space = sample(std::move(space), SweepSampling::LatinHypercube, count);
  const SweepPoints points(space);
  for (const std::string name : {"a", "b", "c"}) {
    std::set<std::int64_t> parts;
    for (std::uint64_t i = 0; i < count; ++i) {
      parts.insert(static_cast<std::int64_t>(std::floor(number(points.point(i), name) * count)));
    }
    CHECK(parts.size() == count);
    CHECK(*parts.begin() == 0);
    CHECK(*parts.rbegin() == count - 1);
  }
}

TEST_CASE("axes of a Latin hypercube are not tied to each other", "[study][sweep]") {
  constexpr std::uint32_t count = 1000;
  SweepSpace space = space_of(between("a", 0, 1), between("b", 0, 1));
  space = sample(std::move(space), SweepSampling::LatinHypercube, count);
  const SweepPoints points(space);
  double product = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    product += (number(points.point(i), "a") - 0.5) * (number(points.point(i), "b") - 0.5);
  }
  CHECK(std::fabs(product / count * 12) < 0.1);  // The correlation; 0.03 is its deviation.
}

TEST_CASE("Sobol's first points are those of Bratley and Fox", "[study][sweep]") {
  SweepSpace space = space_of(between("a", 0, 1), between("b", 0, 1), between("c", 0, 1));
  space = sample(std::move(space), SweepSampling::Sobol, 7);
  const SweepPoints points(space);
  const std::vector<std::vector<double>> expected = {
      {0.5, 0.5, 0.5},       {0.75, 0.25, 0.25},    {0.25, 0.75, 0.75},   {0.375, 0.375, 0.625},
      {0.875, 0.875, 0.125}, {0.625, 0.125, 0.875}, {0.125, 0.625, 0.375}};
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    const SweepPoint point = points.point(i);
    CAPTURE(i);
    CHECK(std::vector{number(point, "a"), number(point, "b"), number(point, "c")} == expected[i]);
  }
}

TEST_CASE("a Sobol sample fills every box of a binary partition alike", "[study][sweep]") {
  SweepSpace space = space_of(between("a", 0, 1), between("b", 0, 1));
  space = sample(std::move(space), SweepSampling::Sobol, 255);
  const SweepPoints points(space);
  std::vector<int> boxes(64);
  for (std::uint64_t i = 0; i < points.size(); ++i) {
    const SweepPoint point = points.point(i);
    ++boxes.at(static_cast<std::size_t>(number(point, "a") * 8) * 8 +
               static_cast<std::size_t>(number(point, "b") * 8));
  }
  // 256 points with the origin, which is left out.
  CHECK(boxes[0] == 3);
  boxes[0] = 4;
  CHECK(boxes == std::vector<int>(64, 4));
}

}  // namespace flyover
