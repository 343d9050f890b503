// Simulated time against formulas, to 1e-9, with the library that has no overheads.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/cluster.hpp"
#include "support/clusters.hpp"

using namespace flyover;
using namespace flyover::literals;
using test::Cluster;
using test::crossbar;
using test::library;
using test::rails;

namespace {

double seconds(Duration d) {
  return to_seconds(d);
}

std::string one(const std::string& op, std::int64_t bytes, const std::string& group = "all") {
  return fmt::format(R"({{"collectives":[{{"op":"{}","bytes":"{} B","group":"{}"}}]}})", op, bytes,
                     group);
}

Approx exactly(double value) {
  return Approx(value).epsilon(1e-9);
}

}  // namespace

TEST_CASE("ring all-reduce on a crossbar takes 2(n-1)/n S/B and 2(n-1) latencies", "[scenario]") {
  const auto n = GENERATE(2U, 3U, 8U, 64U);
  const std::int64_t size = std::int64_t{n}
                            << 30;  // So long that a picosecond is below 1e-9 of it.
  const Cluster c(crossbar(n, 450_GBps, 1us), library("ideal", {{"NCCL_ALGO", "Ring"}}));
  const double steps = 2.0 * (n - 1);
  const double expected = steps * (static_cast<double>(size) / n / 450e9 + 1e-6);
  CHECK(seconds(c.time(one("all_reduce", size))) == exactly(expected));
}

TEST_CASE("a ring sends 2(n-1)S/n bytes per GPU", "[scenario]") {
  const Cluster c(crossbar(8, 450_GBps, 1us), library("ideal", {{"NCCL_ALGO", "Ring"}}));
  const std::int64_t size = 1 << 27;
  const Result r = c.run(one("all_reduce", size)).result;
  double sent = 0;
  for (const ResourceClassStats& links : r.links) {
    if (links.name == "nvlink") sent = links.amount / 2;  // Up to the switch, and down.
  }
  CHECK(sent == exactly(8 * 2.0 * 7 / 8 * static_cast<double>(size)));
}

TEST_CASE("all-to-all over N nodes of 8 with a NIC per GPU has algbw = b N/(N-1)", "[scenario]") {
  const auto nodes = GENERATE(2U, 4U, 8U);
  const auto pxn = GENERATE("0", "1");
  const std::int64_t size = std::int64_t{1} << 30;
  const Cluster c(rails(nodes, Bandwidth{1e15}, 50_GBps, 0ns, 0ns),
                  library("ideal", {{"NCCL_PXN_DISABLE", pxn}}));
  const double algbw = static_cast<double>(size) / seconds(c.time(one("all_to_all", size)));
  CHECK(algbw == Approx(50e9 * nodes / (nodes - 1)).epsilon(1e-9));
}

TEST_CASE("NVLS loads every link with (1 + 1/n) S", "[scenario]") {
  const auto n = GENERATE(4U, 8U);
  const std::int64_t size = 1 << 30;
  const Cluster c(crossbar(n, 450_GBps, 0ns, true), library("ideal", {{"NCCL_ALGO", "NVLS"}}));
  const double expected = static_cast<double>(size) * (1 + 1.0 / n) / 450e9;
  CHECK(seconds(c.time(one("all_reduce", size))) == exactly(expected));
}

TEST_CASE("two messages over one link take half of it each", "[scenario]") {
  const Cluster c(crossbar(3, 100_GBps, 0ns));
  const std::string two = R"({"ranks": 3, "programs": [
    {"ranks": "0", "ops": [{"id": "a", "op": "send", "peer": 1, "bytes": "1 GB", "stream": "x"},
                           {"id": "b", "op": "send", "peer": 2, "bytes": "1 GB", "stream": "y"}]},
    {"ranks": "1-2", "ops": [{"id": "r", "op": "recv", "peer": 0, "bytes": "1 GB"}]}]})";
  CHECK(seconds(c.time(two)) == exactly(0.02));
}

TEST_CASE("collectives on different groups share the links that they both use", "[scenario]") {
  const Cluster c(crossbar(2, 100_GBps, 0ns), library("ideal", {{"NCCL_ALGO", "Ring"}}));
  const auto both = [](const char* second) {
    return fmt::format(R"({{"ranks": 2, "groups": {{"a": [[0,1]], "b": [[0,1]]}}, "programs": [
      {{"ranks": "0-1", "ops": [
        {{"id": "x", "op": "all_reduce", "bytes": "1 GB", "group": "a", "stream": "s"}},
        {{"id": "y", "op": "all_reduce", "bytes": "1 GB", "group": "b", "stream": "{}"}}]}}]}})",
                       second);
  };
  // 1 GB over 100 GB/s takes 10 ms: together 20 ms, whether one after the other or side by side.
  CHECK(seconds(c.time(both("s"))) == exactly(0.02));
  CHECK(seconds(c.time(both("t"))) == exactly(0.02));
}

TEST_CASE("a kernel takes the longer of its compute and memory times", "[scenario]") {
  const Cluster c(crossbar(1, 100_GBps, 0ns));
  const auto kernel = [&](const char* flops, const char* bytes) {
    return seconds(c.time(fmt::format(
        R"({{"ranks": 1, "programs": [{{"ranks": "0", "ops": [
          {{"id": "k", "op": "compute", "flops": "{}", "bytes": "{}", "dtype": "bf16"}}]}}]}})",
        flops, bytes)));
  };
  CHECK(kernel("1 TFLOP", "1 GB") == exactly(0.01));
  CHECK(kernel("1 TFLOP", "50 GB") == exactly(0.05));
}

TEST_CASE("two kernels on one GPU take as long as one after the other", "[scenario]") {
  const Cluster c(crossbar(1, 100_GBps, 0ns));
  CHECK(seconds(c.time(R"({"ranks": 1, "programs": [{"ranks": "0", "ops": [
      {"id": "a", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16", "stream": "s"},
      {"id": "b", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16", "stream": "t"}]}]})")) ==
        exactly(0.02));
}

TEST_CASE("communication beside a kernel takes the SMs of its channels from it", "[scenario]") {
  // The all-reduce outlasts the kernel and holds 10 of 100 SMs all the while.
  const Cluster c(crossbar(2, 100_GBps, 0ns), library("ideal", {{"NCCL_ALGO", "Ring"},
                                                                {"NCCL_MIN_NCHANNELS", "10"},
                                                                {"NCCL_MAX_NCHANNELS", "10"}}));
  const Replay r = c.run(R"({"ranks": 2, "groups": {"dp": [[0,1]]}, "programs": [
    {"ranks": "0-1", "ops": [
      {"id": "sum", "op": "all_reduce", "bytes": "10 GB", "group": "dp"},
      {"id": "k", "op": "compute", "flops": "1 TFLOP", "dtype": "bf16"}]}]})",
                         {.timeline = true});
  CHECK(seconds(r.result.time) == exactly(0.1));
  CHECK(r.result.breakdown.compute_us == Approx(0.01 / 0.9 * 1e6).epsilon(1e-9));
}
