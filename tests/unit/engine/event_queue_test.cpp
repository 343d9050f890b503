#include "flyover/engine/event_queue.hpp"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

using namespace flyover;
using namespace flyover::literals;

namespace {

Time at(std::int64_t ps) {
  return Time{Duration{ps}};
}

std::vector<std::uint64_t> drain(EventQueue& queue) {
  std::vector<std::uint64_t> payloads;
  for (Event event; queue.pop(event);) payloads.push_back(event.payload);
  return payloads;
}

}  // namespace

TEST_CASE("events run by time, then phase, then order of scheduling", "[engine]") {
  EventQueue queue;
  queue.schedule(at(20), Phase::Finish, 0, 5);
  queue.schedule(at(10), Phase::Solve, 0, 4);
  queue.schedule(at(10), Phase::Start, 0, 2);
  queue.schedule(at(10), Phase::Start, 0, 3);
  queue.schedule(at(10), Phase::Finish, 0, 1);
  queue.schedule(at(0), Phase::Solve, 0, 0);
  CHECK(drain(queue) == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  CHECK(queue.now() == at(20));
}

TEST_CASE("an event for the present takes its place among those that wait", "[engine]") {
  EventQueue queue;
  queue.schedule(at(10), Phase::Start, 0, 1);
  queue.schedule(at(10), Phase::Solve, 0, 4);
  Event event;
  REQUIRE(queue.pop(event));
  queue.schedule(at(10), Phase::Start, 0, 3);
  queue.schedule(at(10), Phase::Finish, 0, 2);
  queue.schedule(at(10), Phase::Solve, 0, 5);
  CHECK(drain(queue) == std::vector<std::uint64_t>{2, 3, 4, 5});
}

TEST_CASE("a cancelled event never runs", "[engine]") {
  EventQueue queue;
  queue.schedule(at(10), Phase::Start, 0, 1);
  const auto second = queue.schedule(at(20), Phase::Start, 0, 2);
  const auto third = queue.schedule(at(20), Phase::Start, 0, 3);
  queue.cancel(second);
  queue.cancel(third);
  CHECK(queue.size() == 1);
  CHECK(drain(queue) == std::vector<std::uint64_t>{1});
  CHECK(queue.empty());
  CHECK(queue.now() == at(20));
}

TEST_CASE("the past cannot be scheduled", "[engine]") {
  EventQueue queue;
  queue.schedule(at(10), Phase::Start, 0, 0);
  Event event;
  queue.pop(event);
  CHECK_THROWS_AS(queue.schedule(at(9), Phase::Start, 0, 0), InternalError);
  CHECK_NOTHROW(queue.schedule(at(10), Phase::Start, 0, 0));
}

TEST_CASE("random schedules, cancellations and pops agree with a sorted list", "[engine]") {
  const auto seed = GENERATE(range(0U, 40U));
  std::mt19937_64 random(seed);
  // Short spans make ties, long ones use the upper buckets.
  const std::int64_t span = std::int64_t{1} << (1 + seed % 45);
  EventQueue queue;
  struct Expected {
    Time when;
    Phase phase;
    std::uint64_t payload;
    EventQueue::Handle handle;
  };
  std::vector<Expected> pending;
  std::uint64_t next = 0;
  const auto earlier = [](const Expected& a, const Expected& b) {
    return std::tie(a.when, a.phase, a.payload) < std::tie(b.when, b.phase, b.payload);
  };
  for (int step = 0; step < 3000; ++step) {
    const auto choice = random() % 10;
    if (choice < 5 || pending.empty()) {
      const Time when =
          queue.now() +
          Duration{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(span))};
      const auto phase = static_cast<Phase>(random() % 3);
      pending.push_back({when, phase, next, queue.schedule(when, phase, 0, next)});
      ++next;
    } else if (choice < 6) {
      const auto victim = pending.begin() + static_cast<std::ptrdiff_t>(random() % pending.size());
      queue.cancel(victim->handle);
      pending.erase(victim);
    } else {
      const auto first = std::ranges::min_element(pending, earlier);
      Event event;
      REQUIRE(queue.pop(event));
      REQUIRE(event.payload == first->payload);
      REQUIRE(event.when == first->when);
      pending.erase(first);
    }
    REQUIRE(queue.size() == pending.size());
  }
  std::ranges::sort(pending, earlier);
  for (const Expected& expected : pending) {
    Event event;
    REQUIRE(queue.pop(event));
    REQUIRE(event.payload == expected.payload);
  }
  CHECK(queue.empty());
}
