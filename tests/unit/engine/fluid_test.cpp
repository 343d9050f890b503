#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "unit/engine/fluid_fixture.hpp"

using namespace flyover;
using namespace flyover::literals;
using flyover::test::Machine;

namespace {

Time at(Duration d) {
  return Time{d};
}

}  // namespace

TEST_CASE("a stream alone takes work over rate, rounded up", "[engine]") {
  Machine m;
  const ResourceId link = m.fluid.add_resource(3e9);
  m.start({{link, 1}}, 1e9);
  m.run();
  CHECK(m.ends[0] == at(Duration{333'333'333'334}));
  CHECK(m.fluid.use(link).amount == Approx(1e9).epsilon(1e-12));
  CHECK(m.fluid.use(link).peak == Approx(1).epsilon(1e-12));
}

TEST_CASE("two flows on one link take half each, and the rest speeds up when one ends",
          "[engine]") {
  Machine m;
  const ResourceId link = m.fluid.add_resource(1e9);
  m.start({{link, 1}}, 1e9);
  m.start({{link, 1}}, 2e9);
  m.run();
  CHECK(m.ends[0] == at(2s));
  CHECK(m.ends[1] == at(3s));
}

TEST_CASE("streams split a link by flows, whatever their weights", "[engine]") {
  // A ring that spreads over eight NICs, and a plain transfer on one of them.
  Machine m;
  std::vector<Load> ring;
  for (int i = 0; i < 8; ++i) ring.push_back({m.fluid.add_resource(50e9), 0.125});
  m.start(ring, 1e12);
  m.start({{ring[0].resource, 1}}, 1e12);
  m.step(), m.step(), m.step();
  CHECK(m.rate(0) == Approx(200e9).epsilon(1e-12));
  CHECK(m.rate(1) == Approx(25e9).epsilon(1e-12));
}

TEST_CASE("a stream of three flows gets three shares", "[engine]") {
  Machine m;
  const ResourceId link = m.fluid.add_resource(100);
  m.start({{link, 1}}, 1e6, {}, 1e300, 3);
  m.start({{link, 1}}, 1e6);
  m.step(), m.step(), m.step();
  CHECK(m.rate(0) == Approx(75));
  CHECK(m.rate(1) == Approx(25));
}

TEST_CASE("what a capped stream leaves goes to the others", "[engine]") {
  Machine m;
  const ResourceId link = m.fluid.add_resource(100);
  m.start({{link, 1}}, 1e6, {}, 10);
  m.start({{link, 1}}, 1e6);
  m.step(), m.step(), m.step();
  CHECK(m.rate(0) == Approx(10));
  CHECK(m.rate(1) == Approx(90));
}

TEST_CASE("a coupled stream is held by its slowest resource and frees the others", "[engine]") {
  Machine m;
  const ResourceId narrow = m.fluid.add_resource(10);
  const ResourceId wide = m.fluid.add_resource(100);
  m.start({{narrow, 1}, {wide, 1}}, 1e6);
  m.start({{wide, 1}}, 1e6);
  m.step(), m.step(), m.step();
  CHECK(m.rate(0) == Approx(10));
  CHECK(m.rate(1) == Approx(90));
}

TEST_CASE("flows split a link evenly though one of them comes from a slower link", "[engine]") {
  Machine m;
  const ResourceId slow = m.fluid.add_resource(50);
  const ResourceId fast = m.fluid.add_resource(100);
  const ResourceId shared = m.fluid.add_resource(60);
  m.start({{slow, 1}, {shared, 1}}, 1e6);
  m.start({{fast, 1}, {shared, 1}}, 1e6);
  m.step(), m.step(), m.step();
  CHECK(m.rate(0) == Approx(30));
  CHECK(m.rate(1) == Approx(30));
}

TEST_CASE("weights that pull two resources apart still fill both", "[engine]") {
  // s takes 1 of r and 3 of q, t the other way round: x (1 + 3) = 1.
  Machine m;
  const ResourceId r = m.fluid.add_resource(1);
  const ResourceId q = m.fluid.add_resource(1);
  m.start({{r, 1}, {q, 3}}, 1e3);
  m.start({{r, 3}, {q, 1}}, 1e3);
  m.step(), m.step(), m.step();
  CHECK(m.rate(0) == Approx(0.25));
  CHECK(m.rate(1) == Approx(0.25));
}

TEST_CASE("a stream without work or without resources ends when it starts", "[engine]") {
  Machine m;
  const ResourceId link = m.fluid.add_resource(100);
  m.start({{link, 1}}, 0, 5us);
  m.start({}, 1e9, 5us);
  m.start({}, 100, 5us, 50);
  m.run();
  CHECK(m.ends[0] == at(5us));
  CHECK(m.ends[1] == at(5us));
  CHECK(m.ends[2] == at(5us + 2s));
}

TEST_CASE("many streams that start together end together", "[engine]") {
  Machine m;
  const ResourceId link = m.fluid.add_resource(7e9);
  for (int i = 0; i < 999; ++i) m.start({{link, 1}}, 1e6);
  m.run();
  for (const auto& [number, end] : m.ends) REQUIRE(end == m.ends[0]);
  CHECK(m.ends[0] == at(Duration{142'714'285'715}));
}

TEST_CASE("a start leaves streams of other groups alone", "[engine]") {
  Machine m;
  const ResourceId a = m.fluid.add_resource(1e9);
  const ResourceId b = m.fluid.add_resource(1e9);
  m.start({{a, 1}}, 1e9);
  m.start({{b, 1}}, 1e9, 100ms);
  m.start({{b, 1}}, 1e9, 200ms);
  m.fluid.record_changes(true);
  m.run();
  CHECK(m.ends[0] == at(1s));
  CHECK(m.ends[1] == at(2000ms));
  CHECK(m.ends[2] == at(2100ms));
  int changes_of_first = 0;
  for (const RateChange& change : m.fluid.changes()) {
    if (change.payload == 0 && change.before == 0 && change.after == 1e9) {
      ++changes_of_first;
    }
  }
  CHECK(changes_of_first == 1);
}

TEST_CASE("a stream with twins ends as each of those that it stands for", "[engine]") {
  std::mt19937_64 random(3);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 100; ++round) {
    Machine all;
    Machine played;
    const std::uint32_t links = 1 + below(4);
    for (std::uint32_t r = 0; r < links; ++r) {
      const double capacity = 10.0 * (1 + below(9));
      all.fluid.add_resource(capacity);
      played.fluid.add_resource(capacity);
    }
    std::vector<std::uint64_t> first;  // By class: its first stream in `all`.
    std::uint64_t next = 0;
    for (std::uint32_t c = 1 + below(5); c > 0; --c) {
      const std::uint32_t count = 1 + below(4);
      std::vector<Load> loads;
      std::vector<Load> with_twins;
      for (std::uint32_t r = 0; r < links; ++r) {
        if (below(2) == 0 && !loads.empty()) continue;
        const double weight = 0.25 * (1 + below(8));
        loads.push_back({ResourceId{r}, weight});
        with_twins.push_back({ResourceId{r}, weight, count - 1, (count - 1) * weight});
      }
      const double work = 100.0 * (1 + below(50));
      const Duration delay = below(3) * 1s;
      const double cap = below(3) == 0 ? 3 : 1e300;
      first.push_back(next);
      for (std::uint32_t i = 0; i < count; ++i) {
        all.start_numbered(next++, loads, work, delay, cap, 1);
      }
      played.start_numbered(first.size() - 1, with_twins, work, delay, cap, 1);
    }
    all.run();
    played.run();
    for (std::size_t c = 0; c < first.size(); ++c) {
      // Sums round otherwise.
      CHECK(std::abs((played.ends[c] - all.ends[first[c]]).count()) <= 1);
    }
    for (std::uint32_t r = 0; r < links; ++r) {
      const ResourceUse& a = all.fluid.use(ResourceId{r});
      const ResourceUse& b = played.fluid.use(ResourceId{r});
      CHECK(a.amount == Approx(b.amount).epsilon(1e-12));
      CHECK(a.peak == Approx(b.peak).epsilon(1e-12));
    }
  }
}

TEST_CASE("a stream of infinite work holds its share until it is stopped", "[engine]") {
  Machine m;
  const ResourceId sms = m.fluid.add_resource(100);
  constexpr double endless = std::numeric_limits<double>::infinity();
  m.start({{sms, 1}}, endless, {}, 40, 1e5);
  m.start({{sms, 100}}, 2);  // Two seconds alone.
  m.start({}, 0, 1s);        // Something that happens then.
  while (m.ends.count(2) == 0) m.step();
  CHECK(m.rate(0) == 40);
  CHECK(m.rate(1) == Approx(0.6));
  m.stop(0);
  m.run();
  CHECK(m.ends[0] == at(1s));
  CHECK(m.ends[1] == at(1s + 1400ms));
  CHECK(m.fluid.use(sms).amount == Approx(40 + 200));
}

TEST_CASE("a stream that holds everything stops the others while it runs", "[engine]") {
  Machine m;
  const ResourceId sms = m.fluid.add_resource(100);
  constexpr double endless = std::numeric_limits<double>::infinity();
  m.start({{sms, 1}}, endless, {}, 100, 1e5);
  m.start({{sms, 100}}, 2);
  m.start({}, 0, 1s);
  while (m.ends.count(2) == 0) m.step();
  CHECK(m.rate(1) < 1.1e-5);
  m.stop(0);
  m.run();
  CHECK(at(3s) - m.ends[1] < 11us);
}
