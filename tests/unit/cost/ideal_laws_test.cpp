// With the ideal library every time has a closed form.

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::cost_test {
namespace {

constexpr double tolerance = 1e-9;

using Catch::Matchers::WithinRel;

// n GPUs on one non-blocking switch, all in a domain of their own: `bandwidth` each way, two links
// of half of `latency` between any two.
Topology crossbar(std::uint32_t n, Bandwidth bandwidth, Duration latency) {
  NodeSpec node = switched_node({"hopper", "nvlink4", n, bandwidth, {1}, true});
  node.scale_up_latency = Duration{latency.count() / 2};
  node.nics = 0;
  return cluster(node, 1);
}

double seconds(const Bench& bench, CollectiveOp op, Bytes bytes, const std::string& algorithm) {
  const Choice choice = bench.choose(op, bytes);
  if (to_string(choice.plan.algorithm) == algorithm) return to_seconds(choice.plan.alone);
  for (const CollectivePlan& plan : choice.alternatives) {
    if (to_string(plan.algorithm) == algorithm) return to_seconds(plan.alone);
  }
  FAIL("no " << algorithm);
  return 0;
}

}  // namespace

TEST_CASE("an ideal ring all-reduce takes 2(n-1)/n S/B and 2(n-1) latencies", "[cost][law]") {
  const auto n = GENERATE(2U, 3U, 8U, 64U);
  CAPTURE(n);
  const Bench bench(crossbar(n, 450_GBps, 1us), "ideal");

  const double time = seconds(bench, CollectiveOp::AllReduce, 1_GiB, "ring");

  const double steps = 2.0 * (n - 1);
  const double expected = steps / n * static_cast<double>((1_GiB).count()) / 450e9 + steps * 1e-6;
  CHECK_THAT(time, WithinRel(expected, tolerance));
}

TEST_CASE("an ideal all-gather and reduce-scatter take (n-1)/n S/B and n-1 latencies",
          "[cost][law]") {
  const auto op = GENERATE(CollectiveOp::AllGather, CollectiveOp::ReduceScatter);
  const auto n = GENERATE(2U, 5U, 8U);
  CAPTURE(n, std::string(to_string(op)));
  const Bench bench(crossbar(n, 450_GBps, 1us), "ideal");

  const double time = seconds(bench, op, 1_GiB, "ring");

  const double expected =
      (n - 1.0) / n * static_cast<double>((1_GiB).count()) / 450e9 + (n - 1) * 1e-6;
  CHECK_THAT(time, WithinRel(expected, tolerance));
}

TEST_CASE("an ideal NVLS all-reduce moves (1 + 1/n) S over every GPU's links", "[cost][law]") {
  const auto n = GENERATE(2U, 4U, 8U, 72U);
  CAPTURE(n);
  const Bench bench(crossbar(n, 450_GBps, Duration{}), "ideal");

  const double time = seconds(bench, CollectiveOp::AllReduce, 1_GiB, "nvls");

  const double expected = (1 + 1.0 / n) * static_cast<double>((1_GiB).count()) / 450e9;
  CHECK_THAT(time, WithinRel(expected, tolerance));
}

TEST_CASE("an ideal tree all-reduce over two nodes moves S and not 2S over their NICs",
          "[cost][law]") {
  NodeSpec node = dgx_h100();
  node.scale_up_latency = Duration{};
  node.pcie_latency = Duration{};
  ClusterSpec spec;
  spec.nodes.push_back({node, 2});
  spec.fabric.kind = FabricKind::SingleSwitch;
  const Bench bench(build_topology(spec), "ideal", {{"NCCL_ALGO", "Tree"}});

  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 1_GiB).plan;

  double most_nic = 0;
  for (const Hop& hop : *plan.loads) {
    if (bench.topology.links[hop.link].kind == LinkKind::HostLeaf) {
      most_nic = std::max(most_nic, hop.share);
    }
  }
  CHECK_THAT(most_nic, WithinRel(1.0 / 8, tolerance));
}

TEST_CASE("an ideal all-to-all over N nodes has algbw b N/(N-1)", "[cost][law]") {
  const auto nodes = GENERATE(2U, 4U, 8U, 16U);
  const auto pxn_disabled = GENERATE("0", "1");
  CAPTURE(nodes, pxn_disabled);
  const Bench bench(dgx_h100(), nodes, "ideal",
                    {{"NCCL_PXN_DISABLE", pxn_disabled}, {"NCCL_ALGO", "Direct"}},
                    FabricKind::SingleSwitch);

  const CollectivePlan plan = bench.choose(CollectiveOp::AllToAll, 1_GiB).plan;

  const double transfer = to_seconds(plan.alone - plan.startup);
  const double expected = static_cast<double>((1_GiB).count()) * (nodes - 1) / nodes / 50e9;
  CHECK_THAT(transfer, WithinRel(expected, tolerance));
  CHECK(plan.bottleneck == "nic out (host-leaf)");
}

TEST_CASE("the reference answers of other simulators hold to 0.1 %", "[cost][law]") {
  SECTION("ring flat") {
    const auto [n, milliseconds] =
        GENERATE(table<std::uint32_t, double>({{8, 4.1897}, {64, 4.8236}, {512, 5.7849}}));
    CAPTURE(n);
    const Bench bench(crossbar(n, 450_GBps, 1us), "ideal");
    CHECK_THAT(seconds(bench, CollectiveOp::AllReduce, 1_GiB, "ring") * 1e3,
               WithinRel(milliseconds, 1e-3));
  }
  SECTION("ring rail, one ring") {
    const auto [n, milliseconds] =
        GENERATE(table<std::uint32_t, double>({{8, 4.1897}, {64, 42.531}, {512, 44.910}}));
    CAPTURE(n);
    NodeSpec node = dgx_h100();
    node.links_per_switch = {18};
    node.scale_up_latency = 500000_ps;
    node.pcie_latency = Duration{};
    node.pcie_bandwidth = 1000_GBps;
    ClusterSpec spec;
    spec.nodes.push_back({node, n / 8});
    if (n > 8) {
      spec.fabric.kind = FabricKind::RailOptimized;
      spec.fabric.link_latency = 500000_ps;
      spec.fabric.nodes_per_unit = 32;
    }
    const Bench bench(
        build_topology(spec), "ideal",
        {{"NCCL_MAX_NCHANNELS", "1"}, {"NCCL_PXN_DISABLE", "1"}, {"NCCL_ALGO", "Ring"}});
    CHECK_THAT(to_seconds(bench.choose(CollectiveOp::AllReduce, 1_GiB).plan.alone) * 1e3,
               WithinRel(milliseconds, 1e-3));
  }
  SECTION("all-to-all flat") {
    const auto [n, milliseconds] =
        GENERATE(table<std::uint32_t, double>({{8, 0.52296}, {64, 0.58820}, {256, 0.59519}}));
    CAPTURE(n);
    const Bench bench(crossbar(n, 450_GBps, 1us), "ideal");
    CHECK_THAT(seconds(bench, CollectiveOp::AllToAll, 256_MiB, "direct") * 1e3,
               WithinRel(milliseconds, 1e-3));
  }
}

TEST_CASE("an ideal message takes its wire's latency and S/B", "[cost][law]") {
  const Bench bench(crossbar(4, 450_GBps, 1us), "ideal");

  const CollectivePlan plan = bench.model->point_to_point(0, 3, 45_MiB);

  CHECK(plan.alone == 1us + transfer_time(45_MiB, 450_GBps));
  CHECK(plan.loads->size() == 2);
  CHECK(plan.bottleneck == "nvlink out");
}

}  // namespace flyover::cost_test
