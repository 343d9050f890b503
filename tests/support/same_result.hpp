#pragma once

// What results and programs of two runs of the same must have in common.

#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "flyover/simulate/replay.hpp"

namespace flyover::test {

inline bool close(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-9;
}

// Everything that results tell but events, which are fewer.
inline void check_same_results(const Result& a, const Result& b) {
  CHECK(a.time == b.time);
  CHECK(a.ranks == b.ranks);
  CHECK(a.operations == b.operations);
  CHECK(close(a.breakdown.compute_us, b.breakdown.compute_us));
  CHECK(close(a.breakdown.startup_us, b.breakdown.startup_us));
  CHECK(close(a.breakdown.bubble_us, b.breakdown.bubble_us));
  CHECK(close(a.breakdown.idle_us, b.breakdown.idle_us));
  REQUIRE(a.breakdown.exposed_us.size() == b.breakdown.exposed_us.size());
  for (const auto& [family, us] : a.breakdown.exposed_us) {
    CHECK(close(us, b.breakdown.exposed_us.at(family)));
  }
  REQUIRE(a.collectives.size() == b.collectives.size());
  for (std::size_t i = 0; i < a.collectives.size(); ++i) {
    const CollectiveStats& x = a.collectives[i];
    const CollectiveStats& y = b.collectives[i];
    CHECK(x.op == y.op);
    CHECK(x.group == y.group);
    CHECK(x.count == y.count);
    CHECK(std::abs((x.mean - y.mean).count()) <= 1);
    CHECK(std::abs((x.mean_wait - y.mean_wait).count()) <= 1);
    CHECK(x.longest == y.longest);
    CHECK(close(x.busbw_GBps, y.busbw_GBps));
    CHECK(x.channels == y.channels);
    CHECK(x.alone == y.alone);
    CHECK(x.bottleneck == y.bottleneck);
  }
  CHECK(a.bottleneck == b.bottleneck);
  CHECK(a.warnings == b.warnings);
  REQUIRE(a.links.size() == b.links.size());
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    const ResourceClassStats& x = a.links[i];
    const ResourceClassStats& y = b.links[i];
    CAPTURE(x.name);
    CHECK(x.name == y.name);
    CHECK(x.count == y.count);
    CHECK(x.capacity == y.capacity);
    CHECK(close(x.amount, y.amount));
    CHECK(close(x.peak_utilisation, y.peak_utilisation));
    CHECK(close(x.busiest_utilisation, y.busiest_utilisation));
    CHECK(x.busiest == y.busiest);
  }
}

inline void check_exact(const ReductionCheck& check) {
  INFO(check.first);
  CHECK(check.differences == 0);
  CHECK(check.largest == Duration{});
  check_same_results(check.full.result, check.reduced.result);
}

// All but which copy of a section an operation is of.
inline void check_same_programs(const Workload& a, const Workload& b) {
  REQUIRE(a.programs.size() == b.programs.size());
  for (std::size_t p = 0; p < a.programs.size(); ++p) {
    REQUIRE(a.programs[p].ops.size() == b.programs[p].ops.size());
    for (std::size_t i = 0; i < a.programs[p].ops.size(); ++i) {
      const Operation& x = a.programs[p].ops[i];
      const Operation& y = b.programs[p].ops[i];
      const bool same = x.id == y.id && x.kind == y.kind && x.collective == y.collective &&
                        x.name == y.name && x.stream == y.stream && x.after == y.after &&
                        x.flops == y.flops && x.bytes == y.bytes && x.duration == y.duration &&
                        x.group == y.group && x.slowdown == y.slowdown && x.peer == y.peer &&
                        x.tag == y.tag;
      CAPTURE(p, i, x.id, y.id, x.name, y.name, x.after, y.after);
      REQUIRE(same);
    }
  }
}

}  // namespace flyover::test
