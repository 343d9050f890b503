// Is the range of a run what its communication makes of it, and does comparing cancel what runs
// share?

#include "flyover/study/run_range.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/units.hpp"
#include "flyover/topology/builders.hpp"
#include "records.hpp"

namespace flyover::study_test {
namespace {

// Two nodes of eight GPUs: rings over ndr take 0.9 to 1.2 of their time, inside nodes 0.5 to 2.
ResidualRanges ranges() {
  Residuals residuals;
  residuals.correlation = {0, 0, 0, 0.5};
  residuals.gpus = {"H100-SXM"};
  residuals.classes = {{"nvlink4 + ndr", "ring", 3, {0.9, 1.2, 100, 10}},
                       {"nvlink4", "ring", 3, {0.5, 2, 100, 10}}};
  return ResidualRanges(residuals);
}

Topology cluster() {
  return build_topology(built(over(record("H100", 8, 2), "InfiniBand NDR")).cluster);
}

Workload workload() {
  Workload out;
  out.ranks = 16;
  GroupFamily dp{"dp", {{}}};
  GroupFamily tp{"tp", {{}, {}}};
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    dp.groups[0].push_back(rank);
    tp.groups[rank / 8].push_back(rank);
  }
  out.groups = {dp, tp};
  return out;
}

CollectiveStats calls(const std::string& group, std::uint32_t ranks, Duration mean) {
  CollectiveStats out;
  out.op = "all_reduce";
  out.group = group;
  out.ranks = ranks;
  out.bytes = 1_GiB;
  out.count = 1;
  out.mean = mean;
  return out;
}

Result ranged(Result result) {
  add_range(result, cluster(), workload(), "nccl", ranges());
  return result;
}

Result run_of(double compute_us, double exposed_us) {
  Result run;
  run.ranks = 16;
  run.time = from_seconds((compute_us + exposed_us) * 1e-6);
  run.breakdown = {compute_us, {{"dp", exposed_us}}, 0, 0, 0};
  run.collectives = {calls("dp", 16, from_seconds(exposed_us * 1e-6))};
  return ranged(run);
}

}  // namespace

TEST_CASE("a group's links are those of its domains and of what joins them", "[study]") {
  const Topology two = cluster();
  const GroupLinks inside = group_links(two, std::vector<std::uint32_t>{8, 9});
  CHECK(inside.links == "nvlink4");
  CHECK(inside.gpu == "H100-SXM");
  CHECK(inside.domains == 1);
  CHECK(group_links(two, std::vector<std::uint32_t>{7, 8}).links == "nvlink4 + ndr");
  CHECK(group_links(two, std::vector<std::uint32_t>{7, 8}).domains == 2);

  const Topology bare = build_topology(built(over(record("H100-PCIe", 4, 1), "PCIe")).cluster);
  CHECK(group_links(bare, std::vector<std::uint32_t>{0, 1}).links == "pcie");

  // Unequal islands.
  ClusterSpec mixed = built(over(record("H100", 8, 1), "")).cluster;
  mixed.nodes.push_back(built(record("B200", 8, 1)).cluster.nodes.front());
  mixed.fabric = built(over(record("H100", 8, 2), "InfiniBand NDR")).cluster.fabric;
  const GroupLinks across = group_links(build_topology(mixed), std::vector<std::uint32_t>{0, 8});
  CHECK(across.links == "nvlink4 and nvlink5 + ndr");
  CHECK(across.gpu == "B200-SXM and H100-SXM");
}

TEST_CASE("a lone collective has its class's range and compute has none", "[study]") {
  const Result lone = run_of(0, 1000);
  CHECK(lone.low == 900us);
  CHECK(lone.high == 1200us);
  CHECK(to_microseconds(lone.collectives[0].low) == Approx(900));
  CHECK(to_microseconds(lone.collectives[0].high) == Approx(1200));
  REQUIRE(lone.range.size() == 1);
  CHECK(lone.range[0].links == "nvlink4 + ndr");
  CHECK(lone.range[0].algorithm == "ring");
  CHECK(lone.range[0].size == "larger");
  CHECK(lone.range[0].exposed_us == Approx(1000));
  CHECK(lone.range[0].correlation == 0.5);
  CHECK(lone.validity == std::vector<std::string>{"no measurement over nvlink4 + ndr"});

  const Result half = run_of(1000, 1000);
  CHECK(half.low == 1900us);
  CHECK(half.high == 2200us);
  CHECK(run_of(1000, 0).high == 1000us);
}

TEST_CASE("classes vary independently, calls of one class together", "[study]") {
  Result run;
  run.ranks = 16;
  run.time = 1000us;
  run.breakdown = {300, {{"dp", 400}, {"tp", 300}}, 0, 0, 0};
  run.collectives = {calls("dp", 16, 300us), calls("dp", 16, 100us), calls("tp", 8, 300us)};
  const Result r = ranged(run);
  REQUIRE(r.range.size() == 2);
  CHECK(r.range[0].links == "nvlink4");
  CHECK(r.range[0].exposed_us == Approx(300));
  CHECK(r.range[1].exposed_us == Approx(400));
  CHECK(to_microseconds(r.low) == Approx(1000 - std::hypot(400 * 0.1, 300 * 0.5)));
  CHECK(to_microseconds(r.high) == Approx(1000 + std::hypot(400 * 0.2, 300 * 1.0)));
}

TEST_CASE("start-up goes by calls, and waiting stretches as the rest does", "[study]") {
  Result run;
  run.ranks = 16;
  run.time = 1000us;
  run.breakdown = {300, {{"dp", 100}}, 100, 250, 250};
  run.collectives = {calls("dp", 16, 100us)};
  const Result r = ranged(run);
  CHECK(r.range[0].exposed_us == Approx(400));  // (100 + 100) x 1000 / 500.
  CHECK(to_microseconds(r.high) == Approx(1080));
}

TEST_CASE("messages are judged by the farthest pair of their size", "[study]") {
  Result run;
  run.time = 1000us;
  run.breakdown = {0, {{"p2p", 1000}}, 0, 0, 0};
  run.collectives = {calls("", 2, 1000us)};
  Workload sends = workload();
  Program program{"all", {0, 1}, {}};
  Operation send;
  send.kind = OpKind::Send;
  send.bytes = 1_GiB;
  send.peer = 7;
  send.peer_relative = true;
  program.ops = {send};
  sends.programs = {program};
  add_range(run, cluster(), sends, "nccl", ranges());
  CHECK(run.range[0].links == "nvlink4 + ndr");  // From 1 to 8.
}

TEST_CASE("what two runs share cancels when they are compared", "[study]") {
  const Result a = run_of(0, 1000);
  // Longer b: it may be 0.1 shorter, a may be 0.2 longer.
  const Result b = run_of(0, 1100);
  const Difference d = difference(a, b);
  CHECK(d.time == 100us);
  CHECK(to_microseconds(d.margin) == Approx(std::sqrt(110 * 110 + 200 * 200 - 110 * 200)));
  CHECK(d.within_error);
  CHECK(difference(b, a).time == -100us);
  CHECK(difference(b, a).margin == d.margin);
  CHECK(!difference(a, run_of(0, 1300)).within_error);

  // The gate from both sides.
  Result near = b;
  near.time = a.time + d.margin;
  CHECK(difference(a, near).within_error);
  near.time += 1_ps;
  CHECK(!difference(a, near).within_error);

  // Other classes share nothing.
  Result other = b;
  other.range[0].links = "nvlink5 + xdr";
  CHECK(to_microseconds(difference(a, other).margin) == Approx(std::hypot(110, 200)));
  CHECK(difference(a, a).within_error);
  CHECK(!difference(run_of(1000, 0), run_of(1001, 0)).within_error);
}

}  // namespace flyover::study_test
