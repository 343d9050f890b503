#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "clusters.hpp"
#include "flyover/base/error.hpp"

namespace flyover::cost_test {
namespace {

using Catch::Matchers::WithinRel;

std::string chosen(const Bench& bench, CollectiveOp op, Bytes bytes, std::uint32_t ranks = 0) {
  const CollectivePlan plan = bench.choose(op, bytes, ranks).plan;
  return fmt::format("{} {}", to_string(plan.algorithm), to_string(plan.protocol));
}

template <class Call>
std::string complaint(Call call) {
  try {
    static_cast<void>(call());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("an H100 node reaches the measured bus bandwidth at every group size", "[cost][choice]") {
  const Bench bench(dgx_h100(), 1, "nccl");
  const auto [n, measured, algorithm] =
      GENERATE(table<std::uint32_t, double, std::string>({{2, 366, "ring Simple"},
                                                          {3, 366, "ring Simple"},
                                                          {4, 366, "ring Simple"},
                                                          {5, 417, "nvls Simple"},
                                                          {6, 438, "nvls Simple"},
                                                          {7, 460, "nvls Simple"},
                                                          {8, 480, "nvls Simple"}}));
  CAPTURE(n);
  CHECK_THAT(bench.busbw(CollectiveOp::AllReduce, 8_GiB, n), WithinRel(measured, 0.05));
  CHECK(chosen(bench, CollectiveOp::AllReduce, 8_GiB, n) == algorithm);
}

TEST_CASE("other nodes reach their measured bus bandwidths", "[cost][choice]") {
  CHECK_THAT(Bench(dgx_b200(), 1, "nccl").busbw(CollectiveOp::AllToAll, 8_GiB),
             WithinRel(668, 0.05));
  CHECK_THAT(Bench(dgx_b200(), 1, "nccl").busbw(CollectiveOp::ReduceScatter, 8_GiB),
             WithinRel(689, 0.05));
  CHECK_THAT(Bench(dgx_h100(), 1, "nccl").busbw(CollectiveOp::AllGather, 8_GiB),
             WithinRel(357, 0.05));
  CHECK_THAT(Bench(mi300x(), 1, "rccl").busbw(CollectiveOp::AllReduce, 8_GiB),
             WithinRel(316, 0.05));
}

TEST_CASE("small messages take microseconds and LL", "[cost][choice]") {
  const Bench node(dgx_h100(), 1, "nccl");
  const CollectivePlan alone = node.choose(CollectiveOp::AllReduce, 8_B).plan;
  CHECK(alone.alone > 10us);
  CHECK(alone.alone < 27us);
  CHECK(alone.protocol == Protocol::LL);
  CHECK(alone.bottleneck == "latency");

  const Bench pair(dgx_h100(), 2, "nccl");
  const Duration across = pair.choose(CollectiveOp::AllReduce, 8_B).plan.alone;
  CHECK(across > 20us);
  CHECK(across < 60us);
}

TEST_CASE("what limits a large collective is named", "[cost][choice]") {
  const Bench node(dgx_h100(), 1, "nccl");
  CHECK(node.choose(CollectiveOp::AllReduce, 4_GiB).plan.bottleneck == "nvlink out");
  const Bench four(dgx_b200(), 4, "nccl");
  CHECK(four.choose(CollectiveOp::AllReduce, 4_GiB).plan.bottleneck == "nic out (host-leaf)");
  const Bench slow(dgx_h100(), 1, "nccl", {{"NCCL_PROTO", "LL"}});
  CHECK(slow.choose(CollectiveOp::AllReduce, 4_GiB).plan.bottleneck == "protocol (LL)");
  const Bench narrow(dgx_h100(), 1, "nccl", {{"NCCL_MAX_NCHANNELS", "2"}, {"NCCL_ALGO", "Ring"}});
  CHECK(narrow.choose(CollectiveOp::AllReduce, 4_GiB).plan.bottleneck == "channels (2)");
}

TEST_CASE("alternatives are the other enabled plans, fastest first", "[cost][choice]") {
  const Bench bench(dgx_h100(), 2, "nccl");
  const Choice choice = bench.choose(CollectiveOp::AllReduce, 64_MiB);
  CHECK(choice.alternatives.size() == 6);  // Ring and tree by three protocols, NVLS-tree by one.
  CHECK(std::ranges::is_sorted(choice.alternatives, {}, &CollectivePlan::alone));
  for (const CollectivePlan& plan : choice.alternatives) {
    CHECK_FALSE(plan.loads);
    CHECK((plan.algorithm != choice.plan.algorithm || plan.protocol != choice.plan.protocol));
  }
}

TEST_CASE("the ideal library takes the fastest plan", "[cost][choice]") {
  const Bench bench(dgx_h100(), 2, "ideal");
  const auto op =
      GENERATE(CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::AllToAll);
  const Choice choice = bench.choose(op, 16_MiB);
  for (const CollectivePlan& plan : choice.alternatives) CHECK(choice.plan.alone <= plan.alone);
}

TEST_CASE("the settings steer the choice", "[cost][choice]") {
  CHECK(chosen(Bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "Ring"}}), CollectiveOp::AllReduce,
               8_GiB) == "ring Simple");
  CHECK(chosen(Bench(dgx_h100(), 1, "nccl", {{"NCCL_NVLS_ENABLE", "0"}}), CollectiveOp::AllReduce,
               8_GiB) == "ring Simple");
  CHECK(chosen(Bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "^NVLS,Ring"}}), CollectiveOp::AllReduce,
               8_GiB) == "tree Simple");
  CHECK(chosen(Bench(dgx_h100(), 2, "nccl", {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL128"}}),
               CollectiveOp::AllReduce, 8_GiB) == "ring LL128");
  // All-to-all is sends and receives to NCCL: its variables for algorithms do not concern it.
  CHECK(chosen(Bench(dgx_h100(), 2, "nccl", {{"NCCL_ALGO", "Ring"}}), CollectiveOp::AllToAll,
               1_GiB) == "direct Simple");
}

TEST_CASE("channels are NCCL's unless the settings bound them", "[cost][choice]") {
  const auto channels = [](std::vector<std::pair<std::string, std::string>> variables,
                           Bytes bytes) {
    variables.emplace_back("NCCL_ALGO", "Ring");
    return Bench(dgx_h100(), 1, "nccl", std::move(variables))
        .choose(CollectiveOp::AllReduce, bytes)
        .plan.channels;
  };
  CHECK(channels({}, 1_GiB) == 24);
  CHECK(channels({}, 8_B) == 1);
  CHECK(channels({{"NCCL_MIN_NCHANNELS", "32"}}, 1_GiB) == 32);
  CHECK(channels({{"NCCL_MIN_NCHANNELS", "4"}}, 8_B) == 4);
  CHECK(channels({{"NCCL_MAX_CTAS", "8"}}, 1_GiB) == 8);
}

TEST_CASE("few channels move little, whatever the algorithm", "[cost][choice]") {
  const std::string algorithm = GENERATE("Ring", "Tree", "NVLS");
  CAPTURE(algorithm);
  const auto busbw = [&](const char* most) {
    return Bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", algorithm}, {"NCCL_MAX_NCHANNELS", most}})
        .busbw(CollectiveOp::AllReduce, 8_GiB);
  };
  CHECK(busbw("1") < 35);
  CHECK_THAT(busbw("2") / busbw("1"), WithinRel(2.0, 0.01));
  CHECK(Bench(dgx_h100(), 1, "nccl", {{"NCCL_MAX_NCHANNELS", "1"}})
            .busbw(CollectiveOp::AllToAll, 8_GiB) < 35);
}

TEST_CASE("the node with the fewest GPUs gives all of its NICs", "[cost][choice]") {
  const std::uint32_t second = GENERATE(1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U);
  const std::string algorithm = GENERATE("Ring", "NVLSTree");
  CAPTURE(second, algorithm);
  // NICs so slow that nothing else matters.
  NodeSpec node = dgx_h100();
  node.nic_bandwidth = 10_Gbps;
  const Bench bench(node, 2, "nccl", {{"NCCL_ALGO", algorithm}});
  const double algbw =
      8.0 * (1 << 30) /
      to_seconds(bench.choose(CollectiveOp::AllReduce, 8_GiB, 8 + second).plan.alone);
  const double n = 8 + second;
  const double bytes_out = algorithm == "Ring" ? 2 * (n - 1) / n : 1;  // Of the smaller node.
  const LinkClass network{bench.topology.fabric_preset, "network"};
  const auto id = algorithm == "Ring" ? AlgorithmId::Ring : AlgorithmId::NvlsTree;
  const double share = share_of(bench.library, {CollectiveOp::AllReduce, id, Protocol::Simple,
                                                "hopper", "hopper", &network, 2, 8});
  CHECK_THAT(algbw * bytes_out, WithinRel(second * 1.25e9 * share, 0.001));
}

TEST_CASE("a data type that the switches cannot reduce falls to the ring", "[cost][choice]") {
  const Bench bench(dgx_h100(), 2, "nccl");
  CollectiveCall call = bench.call(CollectiveOp::AllReduce, 16_GiB);
  const auto busbw = [&](const std::string& dtype) {
    call.dtype = dtype;
    const CollectivePlan plan = bench.model->choose(call).plan;
    return std::pair(plan.algorithm, static_cast<double>(call.bytes.count()) /
                                         to_seconds(plan.alone) / 1e9 * 1.875);
  };
  CHECK(busbw("fp32").first == AlgorithmId::NvlsTree);
  CHECK(busbw("i8").first == AlgorithmId::Ring);
  CHECK_THAT(busbw("fp8").second, WithinRel(362, 0.05));
  CHECK_THAT(busbw("i64").second, WithinRel(437, 0.05));
  CHECK(busbw("").second == busbw("fp32").second);
}

TEST_CASE("loads are what the stream puts on links, protocol and efficiency included",
          "[cost][choice]") {
  const Bench bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 1_GiB).plan;
  REQUIRE(plan.loads);
  CHECK(std::ranges::is_sorted(*plan.loads, {}, &Hop::link));
  double rate = plan.rate_cap;
  for (const Hop& hop : *plan.loads) {
    rate = std::min(rate, bench.topology.links[hop.link].bandwidth.per_second() / hop.share);
  }
  const double transfer = static_cast<double>((1_GiB).count()) / rate;
  CHECK_THAT(to_seconds(plan.alone - plan.startup), WithinRel(transfer, 1e-9));
  const LinkClass nvlink{"nvlink4", "nvlink"};
  CHECK_THAT(
      plan.wire_share,
      WithinRel(share_of(bench.library, {CollectiveOp::AllReduce, AlgorithmId::Ring,
                                         Protocol::Simple, "hopper", "hopper", &nvlink, 1, 8}),
                1e-9));
  // Shared between sizes of one group.
  CHECK(bench.choose(CollectiveOp::AllReduce, 2_GiB).plan.loads == plan.loads);
}

TEST_CASE("a degraded link slows the collective that crosses it", "[cost][choice]") {
  Topology topology = cluster(dgx_b200(), 4);
  apply_override(topology, {"nic[node=2,index=5]", std::nullopt, std::nullopt, 0.5, std::nullopt});
  const Bench slow(std::move(topology), "nccl");
  const Bench whole(dgx_b200(), 4, "nccl");
  CHECK_THAT(slow.busbw(CollectiveOp::AllReduce, 16_GiB),
             WithinRel(whole.busbw(CollectiveOp::AllReduce, 16_GiB) / 2, 0.02));
}

TEST_CASE("a node of a mesh uses all its links in a ring", "[cost][choice]") {
  const Bench bench(mi300x(), 1, "rccl");
  const CollectivePlan plan = bench.choose(CollectiveOp::AllReduce, 1_GiB).plan;
  CHECK(plan.loads->size() == 56);
  // Two members have one of the seven links: 47.7 GB/s measured (shared/hardware/HARDWARE.md), and
  // one share of xGMI for all sizes of ring stays below that.
  CHECK_THAT(bench.busbw(CollectiveOp::AllReduce, 1_GiB, 2), WithinRel(47.7, 0.07));
}

TEST_CASE("a cube mesh carries rings over all its links", "[cost][choice]") {
  NodeSpec node = mesh_node("volta", "nvlink2", 25_GBps);
  node.scale_up = ScaleUp::Explicit;  // DGX-1V: six lanes of each GPU to four others.
  node.scale_up_links = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                         {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                         {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  node.pcie_switches = 4;
  node.cpus = 2;
  node.cpu_bandwidth = 6_GBps;
  const Bench bench(node, 1, "nccl");
  CHECK_THAT(bench.busbw(CollectiveOp::AllReduce, 8_GiB), WithinRel(0.78 * 150, 0.02));
}

TEST_CASE("every collective of every library can be chosen", "[cost][choice]") {
  const auto nodes = GENERATE(1U, 2U);
  for (const std::string& name : io::library_names()) {
    const Bench bench(name.starts_with("rccl") ? mi300x() : dgx_h100(), nodes, name);
    for (const auto& [op, algorithms] : bench.library.algorithms) {
      CAPTURE(name, nodes, std::string(to_string(op)));
      const Choice choice = bench.choose(op, 1_MiB);
      CHECK(choice.plan.alone >= choice.plan.startup);
      CHECK(choice.plan.alone > Duration{});
      CHECK_FALSE(choice.plan.bottleneck.empty());
    }
  }
}

TEST_CASE("a PCIe box does without NVLS and LL128", "[cost][choice]") {
  const Bench bench(pcie_box(), 1, "nccl");
  const Choice choice = bench.choose(CollectiveOp::AllReduce, 1_GiB);
  CHECK(choice.plan.algorithm == AlgorithmId::Ring);
  for (const CollectivePlan& plan : choice.alternatives) {
    CHECK(plan.algorithm != AlgorithmId::Nvls);
    CHECK(plan.protocol != Protocol::LL128);
  }
}

TEST_CASE("one GPU alone has nothing to send", "[cost][choice]") {
  const Bench bench(dgx_h100(), 1, "nccl");
  const Choice choice = bench.choose(CollectiveOp::AllReduce, 1_GiB, 1);
  CHECK(choice.plan.alone == Duration{});
  CHECK(choice.plan.bottleneck == "nothing to send");
  CHECK(choice.plan.loads->empty());
  CHECK(bench.model->point_to_point(3, 3, 1_GiB).alone == Duration{});
}

TEST_CASE("messages cost more across nodes than inside", "[cost][choice]") {
  const Bench bench(dgx_h100(), 2, "nccl");
  const CollectivePlan inside = bench.model->point_to_point(0, 1, 1_GiB);
  const CollectivePlan across = bench.model->point_to_point(0, 8, 1_GiB);
  const LinkClass nvlink{"nvlink4", "nvlink"};
  const double share = share_of(bench.library, {CollectiveOp::SendRecv, AlgorithmId::Direct,
                                                Protocol::Simple, "hopper", "hopper", &nvlink});
  CHECK_THAT(to_seconds(inside.alone - inside.startup),
             WithinRel(static_cast<double>((1_GiB).count()) / (share * 450e9), 1e-9));
  CHECK(across.bottleneck == "nic out (host-leaf)");
  CHECK(bench.model->point_to_point(0, 1, 8_B).alone < 10us);
  CHECK(bench.model->point_to_point(0, 8, 8_B).alone >
        bench.model->point_to_point(0, 1, 8_B).alone);
  CHECK(bench.model->point_to_point(0, 8, 2_GiB).loads == across.loads);
}

TEST_CASE("the same call has the same answer, in any order of calls", "[cost][choice]") {
  const Bench one(dgx_h100(), 2, "nccl");
  const Bench other(dgx_h100(), 2, "nccl");
  const Choice first = one.choose(CollectiveOp::AllReduce, 3_MiB);
  static_cast<void>(other.choose(CollectiveOp::AllGather, 1_GiB, 5));
  static_cast<void>(other.choose(CollectiveOp::AllReduce, 1_GiB));
  const Choice again = other.choose(CollectiveOp::AllReduce, 3_MiB);
  CHECK(first.plan.alone == again.plan.alone);
  CHECK(first.plan.bottleneck == again.plan.bottleneck);
  REQUIRE(first.alternatives.size() == again.alternatives.size());
  for (std::size_t i = 0; i < first.alternatives.size(); ++i) {
    CHECK(first.alternatives[i].alone == again.alternatives[i].alone);
    CHECK(first.alternatives[i].algorithm == again.alternatives[i].algorithm);
  }
}

TEST_CASE("calls that make no sense are refused", "[cost][choice]") {
  const Bench bench(dgx_h100(), 1, "nccl");
  CollectiveCall call = bench.call(CollectiveOp::AllReduce, 1_MiB);
  SECTION("no ranks") {
    call.ranks.clear();
    CHECK(complaint([&] { return bench.model->choose(call); }) ==
          "all_reduce: the group has no ranks");
  }
  SECTION("a rank that is not there") {
    call.ranks = {0, 8};
    CHECK(complaint([&] { return bench.model->choose(call); }) ==
          "all_reduce: rank 8 is not there, the topology has 8 GPUs");
  }
  SECTION("a rank twice") {
    call.ranks = {0, 1, 0};
    CHECK(complaint([&] { return bench.model->choose(call); }) ==
          "all_reduce: rank 0 is in the group twice");
  }
  SECTION("a root outside") {
    call.op = CollectiveOp::Broadcast;
    call.root = 8;
    CHECK(complaint([&] { return bench.model->choose(call); }) ==
          "broadcast: root 8 is outside the group of 8 ranks");
  }
  SECTION("a size below zero") {
    call.bytes = Bytes{-1};
    CHECK(complaint([&] { return bench.model->choose(call); }) == "all_reduce: a size below zero");
  }
  SECTION("a message to a rank that is not there") {
    CHECK(complaint([&] { return bench.model->point_to_point(0, 9, 1_MiB); }) ==
          "sendrecv: rank 9 is not there, the topology has 8 GPUs");
  }
}

TEST_CASE("settings that leave nothing are refused with every reason", "[cost][choice]") {
  SECTION("NVLS without NVSwitch") {
    const Bench bench(pcie_box(), 1, "nccl", {{"NCCL_ALGO", "NVLS"}});
    const std::string message =
        complaint([&] { return bench.choose(CollectiveOp::AllReduce, 1_MiB); });
    CHECK_THAT(message,
               Catch::Matchers::StartsWith(
                   "all_reduce over 8 GPUs: the settings leave no algorithm (ring: NCCL_ALGO "
                   "leaves it out; tree: NCCL_ALGO leaves it out; nvls: "));
  }
  SECTION("NVLS switched off and asked for") {
    const Bench bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "NVLS"}, {"NCCL_NVLS_ENABLE", "0"}});
    CHECK_THAT(complaint([&] { return bench.choose(CollectiveOp::AllReduce, 1_MiB); }),
               Catch::Matchers::Contains("nvls: NCCL_NVLS_ENABLE=0"));
  }
  SECTION("a protocol that the algorithm lacks") {
    const Bench bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "NVLS"}, {"NCCL_PROTO", "LL"}});
    CHECK_THAT(complaint([&] { return bench.choose(CollectiveOp::AllReduce, 1_MiB); }),
               Catch::Matchers::Contains("nvls Simple: NCCL_PROTO leaves it out"));
  }
  SECTION("a data type that the only algorithm cannot reduce") {
    const Bench bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "NVLS"}});
    CollectiveCall call = bench.call(CollectiveOp::AllReduce, 1_MiB);
    call.dtype = "fp8";
    CHECK_THAT(complaint([&] { return bench.model->choose(call); }),
               Catch::Matchers::Contains("nvls: cannot reduce fp8"));
  }
  SECTION("PAT with eight GPUs in a node") {
    const Bench bench(dgx_h100(), 2, "nccl", {{"NCCL_ALGO", "PAT"}});
    CHECK_THAT(complaint([&] { return bench.choose(CollectiveOp::AllGather, 1_MiB); }),
               Catch::Matchers::Contains("pat Simple: NCCL does not use it here"));
  }
}

TEST_CASE("the plan alone is the one that is chosen among all", "[cost][choice]") {
  for (const char* library : {"nccl", "nccl-2.19", "ideal"}) {
    for (const std::uint32_t nodes : {1U, 2U, 8U}) {
      for (const CollectiveOp op :
           {CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter,
            CollectiveOp::AllToAll, CollectiveOp::Broadcast}) {
        for (const Bytes bytes : {Bytes{8}, 64_KiB, 4_MiB, 1_GiB}) {
          CAPTURE(library, nodes, to_string(op), bytes.count());
          // Models of their own, so that neither finds what the other has traced.
          const CollectivePlan chosen = Bench(dgx_h100(), nodes, library).choose(op, bytes).plan;
          const Bench fresh(dgx_h100(), nodes, library);
          const CollectivePlan alone = fresh.model->plan(fresh.call(op, bytes));
          CHECK(alone.algorithm == chosen.algorithm);
          CHECK(alone.protocol == chosen.protocol);
          CHECK(alone.channels == chosen.channels);
          CHECK(alone.startup == chosen.startup);
          CHECK(alone.alone == chosen.alone);
          CHECK(alone.bottleneck == chosen.bottleneck);
          CHECK(alone.loads->size() == chosen.loads->size());
        }
      }
    }
  }
}

}  // namespace flyover::cost_test
