#include "simulate/ledger.hpp"

#include <catch2/catch.hpp>

using namespace flyover;
using namespace flyover::literals;
using Activity = Ledger::Activity;

namespace {

Time at(Duration d) {
  return Time{d};
}

}  // namespace

TEST_CASE("a rank counts for the most telling of what it does", "[simulate]") {
  Ledger ledger({1}, 1);
  ledger.begin(0, Activity::Compute, 0, at(0us));
  ledger.begin(0, Activity::Moving, 0, at(10us));  // Hidden behind compute until 30 us.
  ledger.end(0, Activity::Compute, 0, at(30us));
  ledger.begin(0, Activity::Starting, 0, at(35us));  // Hidden behind moving bytes.
  ledger.end(0, Activity::Moving, 0, at(50us));
  ledger.end(0, Activity::Starting, 0, at(60us));
  ledger.begin(0, Activity::PeerWait, 0, at(70us));
  ledger.end(0, Activity::PeerWait, 0, at(90us));

  const Breakdown b = ledger.close({{"tp", {{0}}}}, at(100us));
  CHECK(b.compute_us == Approx(30));
  CHECK(b.exposed_us.at("tp") == Approx(20));
  CHECK(b.startup_us == Approx(10));
  CHECK(b.bubble_us == Approx(20));
  CHECK(b.idle_us == Approx(20));
}

TEST_CASE("the parts are averages over the ranks and add up to the run", "[simulate]") {
  Ledger ledger({1, 1, 1, 1}, 2);
  ledger.begin(0, Activity::Compute, 0, at(0us));
  ledger.end(0, Activity::Compute, 0, at(40us));
  ledger.begin(1, Activity::Moving, 1, at(0us));
  ledger.end(1, Activity::Moving, 1, at(20us));
  ledger.begin(2, Activity::Moving, 2, at(0us));  // Sends and receives.
  ledger.end(2, Activity::Moving, 2, at(8us));
  const Breakdown b = ledger.close({{"dp", {}}, {"tp", {}}}, at(40us));
  CHECK(b.compute_us == Approx(10));
  CHECK(b.exposed_us.at("tp") == Approx(5));
  CHECK(b.exposed_us.at("p2p") == Approx(2));
  CHECK(b.exposed_us.count("dp") == 0);
  CHECK(b.compute_us + 5 + 2 + b.startup_us + b.bubble_us + b.idle_us == Approx(40));
}
