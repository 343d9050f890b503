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
