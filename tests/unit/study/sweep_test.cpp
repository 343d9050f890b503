// Is every point evaluated once, handed over one at a time, and does trouble end the run?

#include "flyover/study/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/study/point_runner.hpp"
#include "support/made_up_points.hpp"

using namespace flyover;
using namespace std::chrono_literals;

namespace {

MakeEvaluator made_up(std::int64_t throw_at = -1) {
  return [=] { return std::make_unique<test::MadeUpEvaluator>(0us, throw_at); };
}

SweepOptions on(std::uint32_t threads) {
  SweepOptions options;
  options.threads = threads;
  return options;
}

}  // namespace

TEST_CASE("every point is evaluated once, whatever the number of threads", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(1000);
  const SweepPoints points(space);
  const auto threads = GENERATE(1U, 2U, 4U, 7U);
  CAPTURE(threads);

  std::map<std::uint64_t, PointResult> results;
  std::atomic<int> inside = 0;
  run_sweep(
      points, made_up(),
      [&](const PointResult& result) {
        CHECK(++inside == 1);
        CHECK(results.emplace(result.number, result).second);
        --inside;
      },
      on(threads));

  REQUIRE(results.size() == 1000);
  for (const auto& [number, result] : results) {
    const SweepPoint point = points.point(number);
    PointResult expected = test::MadeUpEvaluator().evaluate(point, Fidelity::Replay);
    CHECK(result.inputs == point.inputs);
    CHECK(result.outputs == expected.outputs);
    CHECK(result.status == expected.status);
    CHECK(result.reason == expected.reason);
    CHECK(result.seconds >= 0);
  }
}

TEST_CASE("points are handed out in order", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(200);
  const SweepPoints points(space);
  std::vector<std::uint64_t> numbers;

  run_sweep(
      points, made_up(), [&](const PointResult& result) { numbers.push_back(result.number); },
      on(1));

  CHECK(std::ranges::is_sorted(numbers));
}

TEST_CASE("points of an earlier run are left out", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(200);
  const SweepPoints points(space);
  std::vector<std::uint64_t> numbers;
  SweepOptions options = on(2);
  options.finished = [](std::uint64_t number) { return number % 10 != 4; };
  SweepProgress last;
  options.on_progress = [&](const SweepProgress& progress) { last = progress; };

  // The point before would throw.
  run_sweep(
      points, made_up(3), [&](const PointResult& result) { numbers.push_back(result.number); },
      options);

  CHECK(numbers.size() == 20);
  CHECK(std::ranges::all_of(numbers, [](std::uint64_t number) { return number % 10 == 4; }));
  CHECK(last.done == 200);
  CHECK(last.total == 200);
  CHECK(last.left_seconds == 0);
}

TEST_CASE("progress rises, with a rate and the time that is left", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(300);
  const SweepPoints points(space);
  std::vector<SweepProgress> reports;
  SweepOptions options = on(2);
  options.on_progress = [&](const SweepProgress& progress) { reports.push_back(progress); };
  const auto start = std::chrono::steady_clock::now();

  run_sweep(
      points, [] { return std::make_unique<test::MadeUpEvaluator>(1000us); },
      [](const PointResult&) {}, options);

  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  REQUIRE(reports.size() >= 2);
  CHECK(static_cast<double>(reports.size()) <= 2 + 5 * seconds);
  CHECK(std::ranges::is_sorted(reports, std::ranges::less(), &SweepProgress::done));
  CHECK(reports.front().per_second > 0);
  CHECK(reports.front().left_seconds ==
        Approx(static_cast<double>(300 - reports.front().done) / reports.front().per_second));
  CHECK(reports.back().done == 300);
}

TEST_CASE("a broken evaluator ends the sweep", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(100000);
  const SweepPoints points(space);
  const auto threads = GENERATE(1U, 4U);
  std::size_t results = 0;

  CHECK_THROWS_WITH(run_sweep(
                        points, made_up(500), [&](const PointResult&) { ++results; }, on(threads)),
                    "point 500 is broken");

  if (threads == 1) CHECK(results == 500);
}

TEST_CASE("an evaluator that cannot be made ends the sweep", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(100);
  const SweepPoints points(space);
  const MakeEvaluator make = []() -> std::unique_ptr<PointEvaluator> {
    throw std::runtime_error("no such file");
  };

  CHECK_THROWS_WITH(run_sweep(
                        points, make, [](const PointResult&) {}, on(4)),
                    "no such file");
}

TEST_CASE("a sink that throws ends the sweep and is called no more", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(10000);
  const SweepPoints points(space);
  int calls = 0;
  const ResultSink sink = [&](const PointResult&) {
    if (++calls == 100) throw std::runtime_error("the disk is full");
  };

  CHECK_THROWS_WITH(run_sweep(points, made_up(), sink, on(4)), "the disk is full");

  CHECK(calls == 100);
}

TEST_CASE("evaluators are kept from run to run, one per thread", "[study][sweep]") {
  const SweepSpace space = test::made_up_space(1000);
  const SweepPoints points(space);
  std::atomic<int> made = 0;
  ThreadRunner runner(
      points,
      [&] {
        ++made;
        return std::make_unique<test::MadeUpEvaluator>();
      },
      1);
  const ResultSink sink = [](const PointResult&) {};

  run_sweep(points, runner, sink, {});
  run_sweep(points, runner, sink, {});

  CHECK(made == 1);
}

TEST_CASE("points that a condition refuses need no evaluator", "[study][sweep]") {
  SweepSpace space = test::made_up_space(40);
  space.where.emplace_back("large < 0");
  const SweepPoints points(space);
  const MakeEvaluator make = []() -> std::unique_ptr<PointEvaluator> {
    throw std::runtime_error("none is needed");
  };
  std::vector<PointResult> results;

  run_sweep(
      points, make, [&](const PointResult& result) { results.push_back(result); }, on(1));

  REQUIRE(results.size() == 40);
  CHECK(results.back().status == PointStatus::Refused);
  CHECK(results.back().reason == points.point(39).refused);
  CHECK(results.back().inputs == points.point(39).inputs);
}

TEST_CASE("chunks grow while points are quick and shrink when they are slow", "[study][sweep]") {
  ChunkSize chunk(1, 8);
  for (int i = 0; i < 3; ++i) chunk.took(chunk.now(), 1ms);
  CHECK(chunk.now() == 8);
  chunk.took(8, 1ms);
  CHECK(chunk.now() == 8);
  chunk.took(8, 20ms);
  CHECK(chunk.now() == 8);
  chunk.took(3, 1ms);  // There were no more: that says nothing.
  CHECK(chunk.now() == 8);
  for (int i = 0; i < 5; ++i) chunk.took(chunk.now(), 60ms);
  CHECK(chunk.now() == 1);
}
