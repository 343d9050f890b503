// Operation graphs: who starts when, where the time goes, and what is said when nothing can go on.

#include <array>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;
using test::crossbar;
using test::library;

namespace {

double total(const Breakdown& b) {
  double sum = b.compute_us + b.startup_us + b.bubble_us + b.idle_us;
  for (const auto& [family, us] : b.exposed_us) sum += us;
  return sum;
}

}  // namespace

TEST_CASE("a collective starts when its last member has arrived, and the wait is idle time",
          "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns), library("ideal", {{"NCCL_ALGO", "Ring"}}));
  const Result r = c.run(R"({"ranks": 2, "groups": {"dp": [[0,1]]}, "programs": [
    {"ranks": "0", "ops": [{"id": "sum", "op": "all_reduce", "bytes": "1 GB", "group": "dp"}]},
    {"ranks": "1", "ops": [{"id": "late", "op": "delay", "duration": "30 ms"},
                           {"id": "sum", "op": "all_reduce", "bytes": "1 GB", "group": "dp",
                            "after": ["late"]}]}]})")
                       .result;
  CHECK(r.time == 40ms);
  CHECK(r.breakdown.idle_us == Approx(15'000));  // Rank 0 waits 30 ms, rank 1 not at all.
  CHECK(r.breakdown.compute_us == Approx(15'000));
  CHECK(r.breakdown.exposed_us.at("dp") == Approx(10'000));
  REQUIRE(r.collectives.size() == 1);
  CHECK(r.collectives[0].mean == 10ms);
  CHECK(r.collectives[0].mean_wait == 30ms);
  CHECK(r.collectives[0].busbw_GBps == Approx(100));
}

TEST_CASE("the breakdown adds up to the run", "[scenario][replay]") {
  const Cluster c(crossbar(8, 450_GBps, 1us));
  const Result r =
      c.run(
           R"({"ranks": 8, "groups": {"tp": [[0,1,2,3],[4,5,6,7]], "dp": [[0,4],[1,5],[2,6],[3,7]]},
    "programs": [{"ranks": "0-7", "ops": [
      {"id": "f", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16", "bytes": "1 GB"},
      {"id": "x", "op": "all_reduce", "bytes": "512 MiB", "group": "tp", "after": ["f"]},
      {"id": "y", "op": "all_gather", "bytes": "64 MiB", "group": "dp", "after": ["f"], "stream": "s"},
      {"id": "s", "op": "send", "bytes": "8 MiB", "peer": "+1", "wrap": true, "stream": "u", "after": ["x"]},
      {"id": "r", "op": "recv", "bytes": "8 MiB", "peer": "-1", "wrap": true, "stream": "v"},
      {"id": "g", "op": "compute", "flops": "500 GFLOP", "dtype": "bf16", "after": ["y", "r"]}]}]})")
          .result;
  CHECK(total(r.breakdown) == Approx(to_microseconds(r.time)).epsilon(1e-9));
  CHECK(r.operations == 48);
}

TEST_CASE("a slow GPU takes longer for what it computes, and for nothing else",
          "[scenario][replay]") {
  const auto times = [](double compute_factor, double memory_factor) {
    Topology topology = crossbar(2, 100_GBps, 0ns);
    topology.slow_gpu(1, compute_factor, memory_factor);
    const Cluster c(std::move(topology), library("ideal"));
    const auto run = [&](const std::string& op) {
      return c.time(
          fmt::format(R"({{"ranks": 2, "programs": [{{"ranks": "0-1", "ops": [{}]}}]}})", op));
    };
    return std::array{
        run(R"({"id": "k", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16", "efficiency": 0.5})"),
        run(R"({"id": "k", "op": "compute", "bytes": "1 GB", "memory_efficiency": 0.5})"),
        run(R"({"id": "k", "op": "compute", "duration": "3 ms"})"),
        run(R"({"id": "c", "op": "copy", "bytes": "1 GB"})"),
        run(R"({"id": "d", "op": "delay", "duration": "3 ms"})")};
  };
  const auto [flops, bytes, recorded, copy, delay] = times(1, 1);
  CHECK(times(0.75, 1) ==
        std::array{from_seconds(to_seconds(flops) / 0.75), bytes, Duration{4ms}, copy, delay});
  CHECK(times(1, 0.5) == std::array{flops, 2 * bytes, recorded, 2 * copy, delay});
}

TEST_CASE("a pipeline's bubble is the wait for a peer", "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns));
  const Result r = c.run(R"({"ranks": 2, "programs": [
    {"ranks": "0", "ops": [{"id": "f", "op": "delay", "duration": "20 ms"},
                           {"id": "s", "op": "send", "peer": 1, "bytes": "1 GB", "after": ["f"]}]},
    {"ranks": "1", "ops": [{"id": "r", "op": "recv", "peer": 0, "bytes": "1 GB"},
                           {"id": "g", "op": "delay", "duration": "20 ms", "after": ["r"]}]}]})")
                       .result;
  CHECK(r.time == 50ms);
  CHECK(r.breakdown.bubble_us == Approx(10'000));
  CHECK(r.breakdown.exposed_us.at("p2p") == Approx(10'000));
}

TEST_CASE("a group of one rank ends its collectives at once", "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns));
  CHECK(c.time(R"({"ranks": 2, "groups": {"tp": [[0],[1]]}, "programs": [{"ranks": "0-1", "ops": [
      {"id": "x", "op": "all_reduce", "bytes": "1 GB", "group": "tp"}]}]})") == 0ns);
}

TEST_CASE("a member that never calls is named, and who waits for it", "[scenario][replay]") {
  const Cluster c(crossbar(3, 100_GBps, 0ns));
  const std::string text = R"({"ranks": 3, "groups": {"tp": [[0,1,2]]}, "programs": [
    {"name": "p", "ranks": "0-1", "ops": [
      {"id": "x", "op": "all_reduce", "bytes": "1 MB", "group": "tp"},
      {"id": "y", "op": "all_reduce", "bytes": "1 MB", "group": "tp"}]},
    {"name": "q", "ranks": "2", "ops": [
      {"id": "x", "op": "all_reduce", "bytes": "1 MB", "group": "tp"}]}]})";
  CHECK_THROWS_AS(c.time(text), SimulationError);
  CHECK_THROWS_WITH(c.time(text),
                    Catch::Contains("deadlock at") &&
                        Catch::Contains("2 of 5 operations cannot run") &&
                        Catch::Contains("\"y\" on group \"tp\": ranks 0, 1 wait for rank 2, whose "
                                        "program has 1 collectives on this group, not 2"));
}

TEST_CASE("ranks that wait for each other are both named", "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns));
  CHECK_THROWS_WITH(
      c.time(R"({"ranks": 2, "groups": {"a": [[0,1]], "b": [[0,1]]}, "programs": [
    {"name": "p", "ranks": "0", "ops": [
      {"id": "x", "op": "all_reduce", "bytes": "1 MB", "group": "a"},
      {"id": "y", "op": "all_reduce", "bytes": "1 MB", "group": "b"}]},
    {"name": "q", "ranks": "1", "ops": [
      {"id": "y", "op": "all_reduce", "bytes": "1 MB", "group": "b"},
      {"id": "x", "op": "all_reduce", "bytes": "1 MB", "group": "a"}]}]})"),
      Catch::Contains("\"x\" on group \"a\": rank 0 waits for rank 1, which waits in \"y\"") &&
          Catch::Contains("\"y\" on group \"b\": rank 1 waits for rank 0, which waits in \"x\""));
}

TEST_CASE("a send without its receive is a deadlock with both ends named", "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns));
  CHECK_THROWS_WITH(
      c.time(R"({"ranks": 2, "programs": [
    {"ranks": "0", "ops": [{"id": "s", "op": "send", "peer": 1, "bytes": "1 MB"}]},
    {"ranks": "1", "ops": [{"id": "d", "op": "delay", "duration": "1 us"}]}]})"),
      Catch::Contains("\"s\": rank 0 sends to rank 1, which has no matching receive"));
}

TEST_CASE("the slices of a track never overlap, and cover what the ranks did",
          "[scenario][replay]") {
  const Cluster c(crossbar(4, 100_GBps, 2us));
  const Replay r =
      c.run(R"({"ranks": 4, "groups": {"tp": [[0,1],[2,3]], "dp": [[0,2],[1,3]]}, "programs": [
    {"ranks": "0-3", "ops": [
      {"id": "f", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16"},
      {"id": "x", "op": "all_reduce", "bytes": "100 MB", "group": "tp", "after": ["f"], "stream": "t"},
      {"id": "y", "op": "all_reduce", "bytes": "300 MB", "group": "dp", "after": ["f"], "stream": "d"},
      {"id": "g", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16", "after": ["x"]},
      {"id": "z", "op": "all_reduce", "bytes": "100 MB", "group": "tp", "stream": "t"}]}]})",
            {.timeline = true});
  REQUIRE(!r.trace.slices.empty());
  for (std::size_t i = 1; i < r.trace.slices.size(); ++i) {
    const Slice& before = r.trace.slices[i - 1];
    const Slice& after = r.trace.slices[i];
    if (before.track == after.track) REQUIRE(before.end <= after.begin);
  }
  // Byte for byte: the link track's area is what the links moved.
  double area = 0;
  for (const Slice& s : r.trace.slices) REQUIRE(s.begin < s.end);
  REQUIRE(r.trace.loads.size() > 1);
  for (std::size_t i = 0; i < r.trace.loads.size(); ++i) {
    const LoadChange& load = r.trace.loads[i];
    REQUIRE(load.share <= 1 + 1e-9);
    if (load.share == 0) continue;  // The last of a track is none.
    const LoadChange& next = r.trace.loads.at(i + 1);
    REQUIRE(next.track == load.track);
    REQUIRE(load.at < next.at);
    area += load.share * to_seconds(next.at - load.at);
  }
  const auto links = r.result.links.front();
  CHECK(links.name == "nvlink");
  CHECK(area == Approx(links.mean_utilisation * to_seconds(r.result.time)).epsilon(1e-6));
}

TEST_CASE("only some ranks of a large run are recorded, and the trace says so",
          "[scenario][replay]") {
  const Cluster c(crossbar(16, 100_GBps, 0ns));
  ReplayOptions options{.reduce = false, .timeline = true};
  options.timeline_ranks = 2;
  const char* workload = R"({"ranks": 16, "programs": [
    {"ranks": "0-7", "ops": [{"id": "a", "op": "delay", "duration": "1 us"}]},
    {"ranks": "8-15", "ops": [{"id": "b", "op": "delay", "duration": "1 us"}]}]})";
  const Replay full = c.run(workload, options);
  REQUIRE(full.trace.notes.size() == 1);
  CHECK(full.trace.notes[0] ==
        "3 of 16 ranks are recorded: the first of every program and the first 2");
  options.reduce = true;
  CHECK(c.run(workload, options).trace.notes.empty());  // Of both classes.
}

TEST_CASE("a load that changes too often is shown as means, which add up", "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns), library("ideal"));
  for (const bool reduce : {false, true}) {
    CAPTURE(reduce);
    const Replay r = c.run(R"({"ranks": 2, "groups": {"tp": [[0,1]]}, "programs": [
      {"ranks": "0-1", "repeat": 6001, "ops": [
        {"id": "x", "op": "all_reduce", "bytes": "1 MB", "group": "tp", "stream": "s"},
        {"id": "d", "op": "delay", "duration": "7 us", "stream": "s"}]}]})",
                           {.reduce = reduce, .timeline = true});
    double area = 0;
    for (std::size_t i = 0; i + 1 < r.trace.loads.size(); ++i) {
      REQUIRE(r.trace.loads[i].at < r.trace.loads[i + 1].at);
      area += r.trace.loads[i].share * to_seconds(r.trace.loads[i + 1].at - r.trace.loads[i].at);
    }
    CHECK(r.trace.loads.back().share == 0);
    CHECK(
        area ==
        Approx(r.result.links.front().mean_utilisation * to_seconds(r.result.time)).epsilon(1e-6));
    if (reduce) {  // Copies that are not played change nothing.
      CHECK(r.trace.loads.size() < 50);
      continue;
    }
    CHECK(r.trace.loads.size() <= 10'001);
    REQUIRE(!r.trace.notes.empty());
    CHECK(r.trace.notes.back() ==
          "the load of nvlink changes too often to be shown: means of 10.201701 us");
  }
}

TEST_CASE("a timeline that nobody asked to be large has 100,000 operations, and every program",
          "[scenario][replay]") {
  const Cluster c(crossbar(16, 100_GBps, 0ns));
  const ReplayOptions options{.reduce = false, .timeline = true};
  const Replay r = c.run(R"({"ranks": 16, "programs": [
    {"ranks": "0-13", "repeat": 20000, "ops": [{"id": "a", "op": "delay", "duration": "1 us"}]},
    {"ranks": "14-15", "ops": [{"id": "b", "op": "delay", "duration": "1 us"}]}]})",
                         options);
  REQUIRE(r.trace.notes.size() == 1);
  CHECK(r.trace.notes[0] ==
        "5 of 16 ranks are recorded: the first of every program and as many more as make 100000 "
        "operations");
  std::vector<std::uint32_t> recorded;
  for (const Track& track : r.trace.tracks) {
    if (track.process != "links") recorded.push_back(track.rank);
  }
  CHECK(recorded == std::vector<std::uint32_t>{0, 1, 2, 3, 14});
}

TEST_CASE("a faster resource shortens the run by as much as it limits it", "[scenario][replay]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns), library("ideal", {{"NCCL_ALGO", "Ring"}}));
  const Workload w =
      c.read(R"({"ranks": 2, "groups": {"dp": [[0,1]]}, "programs": [{"ranks": "0-1", "ops": [
      {"id": "k", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16"},
      {"id": "x", "op": "all_reduce", "bytes": "3 GB", "group": "dp", "after": ["k"]}]}]})");
  const Duration baseline = replay(c.topology, c.cost, w).result.time;
  CHECK(baseline == 40ms);
  const auto gains = sensitivity(c.topology, c.cost, w, baseline);
  REQUIRE(gains.size() >= 3);
  CHECK(gains[0].name == "nvlink");
  CHECK(gains[0].gain == Approx(0.75 * (1 - 1 / 1.1)).epsilon(1e-6));
  CHECK(gains[1].name == "sm");
  CHECK(gains[1].gain == Approx(0.25 * (1 - 1 / 1.1)).epsilon(1e-6));
}

TEST_CASE("a data type that the GPU lacks is refused with those it has", "[scenario][replay]") {
  const Cluster c(crossbar(1, 100_GBps, 0ns));
  CHECK_THROWS_WITH(
      c.time(R"({"ranks": 1, "programs": [{"ranks": "0", "ops": [
      {"id": "k", "op": "compute", "flops": "1 TFLOP", "dtype": "fp4"}]}]})"),
      "operation \"k\" computes in \"fp4\", for which plain has no rate; it has bf16");
}

TEST_CASE("a workload runs on the first GPUs of a cluster that has more", "[scenario][replay]") {
  const Cluster c(crossbar(4, 100_GBps, 0ns));
  const Cluster larger(crossbar(6, 100_GBps, 0ns));
  const Workload w =
      c.read(R"({"collectives": [{"op": "all_reduce", "bytes": "1 MB", "group": "all"}]})");
  const Result there = replay(larger.topology, larger.cost, w).result;
  CHECK(there.time == replay(c.topology, c.cost, w).result.time);
  CHECK(there.ranks == 4);
}

TEST_CASE("a workload for more GPUs than there are is refused", "[scenario][replay]") {
  const Cluster c(crossbar(4, 100_GBps, 0ns));
  Workload w =
      c.read(R"({"collectives": [{"op": "all_reduce", "bytes": "1 MB", "group": "all"}]})");
  const Cluster other(crossbar(2, 100_GBps, 0ns));
  CHECK_THROWS_WITH(replay(other.topology, other.cost, w),
                    "the workload has 4 ranks, but the topology has 2 GPUs");
}
