// The incremental solver against the same rounds written down plainly, on random systems; and the
// property that defines fairness, which needs no second solver.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "unit/engine/fluid_fixture.hpp"

using namespace flyover;
using flyover::test::Machine;

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

struct System {
  struct Stream {
    std::vector<Load> loads;
    double work, cap, flows;
    Duration delay;
  };
  std::vector<double> capacity;
  std::vector<Stream> streams;
};

// All rates of the streams in `active`, from scratch: see fluid.hpp.
std::vector<double> reference(const System& system, const std::vector<std::size_t>& active) {
  std::vector<double> left = system.capacity;
  std::vector<double> rate(system.streams.size(), 0.0);
  std::vector<std::size_t> open = active;
  while (!open.empty()) {
    std::vector<double> flows(left.size(), 0.0);
    for (const std::size_t s : open) {
      for (const Load& load : system.streams[s].loads) {
        flows[index(load.resource)] += system.streams[s].flows;
      }
    }
    const auto offer = [&](std::size_t s) {
      double least = system.streams[s].cap;
      for (const Load& load : system.streams[s].loads) {
        const auto r = index(load.resource);
        least = std::min(least, system.streams[s].flows * left[r] / flows[r] / load.weight);
      }
      return least;
    };
    std::vector<std::size_t> stopped;
    double growth = 1;
    for (const std::size_t s : open) {
      if (offer(s) == system.streams[s].cap) stopped.push_back(s);
    }
    if (stopped.empty()) {
      std::vector<double> taken(left.size(), 0.0);
      for (const std::size_t s : open) {
        for (const Load& load : system.streams[s].loads) {
          taken[index(load.resource)] += load.weight * offer(s);
        }
      }
      growth = unlimited;
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (taken[r] > 0) growth = std::min(growth, left[r] / taken[r]);
      }
      for (const std::size_t s : open) {
        growth = std::min(growth, system.streams[s].cap / offer(s));
      }
      for (const std::size_t s : open) {
        bool stops = system.streams[s].cap <= offer(s) * growth * (1 + 1e-9);
        for (const Load& load : system.streams[s].loads) {
          const auto r = index(load.resource);
          stops = stops || left[r] <= taken[r] * growth * (1 + 1e-9);
        }
        if (stops) stopped.push_back(s);
      }
    }
    REQUIRE(!stopped.empty());
    for (const std::size_t s : stopped) rate[s] = offer(s) * growth;
    for (const std::size_t s : stopped) {
      for (const Load& load : system.streams[s].loads) {
        left[index(load.resource)] -= load.weight * rate[s];
      }
      std::erase(open, s);
    }
  }
  return rate;
}

System random_system(std::mt19937_64& random, bool unit_weights = false) {
  const auto number = [&](std::uint64_t below) { return random() % below; };
  const auto real = [&](double low, double high) {
    return low * std::pow(high / low, static_cast<double>(random() % 1000) / 1000.0);
  };
  System system;
  const std::size_t resources = 1 + number(12);
  const bool round = number(2) == 0;  // Round numbers make ties.
  for (std::size_t r = 0; r < resources; ++r) {
    system.capacity.push_back(round ? static_cast<double>(1 + number(3)) * 100 : real(10, 1e4));
  }
  const std::size_t streams = 1 + number(24);
  for (std::size_t s = 0; s < streams; ++s) {
    System::Stream stream{{},
                          number(12) == 0 ? 0
                          : round         ? 1000
                                          : real(1, 1e4),
                          number(4) == 0 ? real(5, 1e3) : unlimited,
                          number(4) == 0 ? 3.0 : 1.0,
                          Duration{static_cast<std::int64_t>(number(4)) * 1'000'000'000'000}};
    std::vector<std::size_t> order(resources);
    for (std::size_t r = 0; r < resources; ++r) order[r] = r;
    std::ranges::shuffle(order, random);
    const std::size_t used = 1 + number(std::min<std::uint64_t>(resources, 5));
    for (std::size_t i = 0; i < used; ++i) {
      stream.loads.push_back(
          {ResourceId(order[i]), unit_weights || number(2) == 0 ? 1.0 : real(0.01, 10)});
    }
    system.streams.push_back(std::move(stream));
  }
  return system;
}

void start(Machine& machine, const System& system, std::size_t number) {
  const System::Stream& s = system.streams[number];
  machine.start_numbered(number, s.loads, s.work, s.delay, s.cap, s.flows);
}

void load(Machine& machine, const System& system) {
  for (const double c : system.capacity) machine.fluid.add_resource(c);
  for (std::size_t s = 0; s < system.streams.size(); ++s) start(machine, system, s);
}

}  // namespace

TEST_CASE("after every solve the rates are those of a solve from scratch", "[engine][property]") {
  std::mt19937_64 random(GENERATE(range(0U, 20U)));
  for (int round = 0; round < 250; ++round) {
    const System system = random_system(random);
    Machine machine;
    load(machine, system);
    while (machine.step()) {
      if (!machine.solved) continue;
      std::vector<std::size_t> active;
      for (const auto& [number, id] : machine.running()) active.push_back(number);
      const auto expected = reference(system, active);
      std::vector<double> used(system.capacity.size(), 0.0);
      for (const std::size_t s : active) {
        REQUIRE(machine.rate(s) == Approx(expected[s]).epsilon(1e-9));
        for (const Load& l : system.streams[s].loads) {
          used[index(l.resource)] += l.weight * machine.rate(s);
        }
      }
      for (std::size_t r = 0; r < used.size(); ++r) {
        REQUIRE(used[r] <= system.capacity[r] * (1 + 1e-9));
      }
    }

    REQUIRE(machine.ends.size() == system.streams.size());
    std::vector<double> moved(system.capacity.size(), 0.0);
    for (const auto& s : system.streams) {
      for (const Load& l : s.loads) moved[index(l.resource)] += l.weight * s.work;
    }
    for (std::size_t r = 0; r < moved.size(); ++r) {
      REQUIRE(machine.fluid.use(ResourceId(r)).amount == Approx(moved[r]).epsilon(1e-9));
    }
  }
}

TEST_CASE("the order in which streams of one picosecond start changes nothing",
          "[engine][property]") {
  std::mt19937_64 random(GENERATE(range(0U, 10U)));
  for (int round = 0; round < 100; ++round) {
    const System system = random_system(random);
    Machine forward;
    load(forward, system);
    forward.run();

    Machine shuffled;
    for (const double c : system.capacity) shuffled.fluid.add_resource(c);
    std::vector<std::size_t> order(system.streams.size());
    for (std::size_t s = 0; s < order.size(); ++s) order[s] = s;
    std::ranges::shuffle(order, random);
    for (const std::size_t s : order) start(shuffled, system, s);
    shuffled.run();
    REQUIRE(shuffled.ends == forward.ends);
  }
}

TEST_CASE("every stream is at its cap or has the largest share of a full resource",
          "[engine][property]") {
  std::mt19937_64 random(GENERATE(range(0U, 10U)));
  for (int round = 0; round < 200; ++round) {
    const System system = random_system(random, /*unit_weights=*/true);
    Machine machine;
    load(machine, system);
    while (machine.step()) {
      if (!machine.solved) continue;
      for (const auto& [number, id] : machine.running()) {
        const System::Stream& stream = system.streams[number];
        bool bottlenecked = machine.rate(number) >= stream.cap * (1 - 1e-9);
        for (const Load& load : stream.loads) {
          double used = 0;
          double largest = 0;
          for (const auto& [other, other_id] : machine.running()) {
            for (const Load& theirs : system.streams[other].loads) {
              if (theirs.resource != load.resource) continue;
              used += machine.rate(other);
              largest = std::max(largest, machine.rate(other) / system.streams[other].flows);
            }
          }
          bottlenecked =
              bottlenecked || (used >= system.capacity[index(load.resource)] * (1 - 1e-9) &&
                               machine.rate(number) / stream.flows >= largest * (1 - 1e-9));
        }
        REQUIRE(bottlenecked);
      }
    }
  }
}
