// What plans load and say, whatever the library's numbers are.

#include "flyover/moe/planner.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "moe/exchange_flows.hpp"
#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace flyover::literals;
using namespace test;
using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

constexpr CollectiveOp dispatch = CollectiveOp::MoeDispatch;
constexpr CollectiveOp combine = CollectiveOp::MoeCombine;

Topology read(const std::string& json) {
  return io::read_topology(io::Document::parse("t.json", json));
}

// V3's layer at so many ranks: its gate, its benchmark's tokens.
ExpertExchange v3(std::uint32_t groups_chosen) {
  ExpertExchange exchange = deepep_normal(64);
  exchange.routing.gate = groups_chosen > 0 ? Gate::GroupSumOfTwo : Gate::TopK;
  exchange.routing.groups = groups_chosen > 0 ? 8 : 0;
  exchange.routing.groups_chosen = groups_chosen;
  return exchange;
}

// Bytes of the call on links of a kind that leave, or enter, a kind of vertex.
double bytes_on(const Cluster& cluster, const ExpertExchange& exchange, CollectiveOp op,
                const ExpertPlan& plan, LinkKind kind, VertexKind from, double share) {
  double sum = 0;
  for (const Hop& hop : *plan.plan.loads) {
    const Link& link = cluster.topology.links[hop.link];
    if (link.kind == kind && cluster.topology.vertices[link.from].kind == from) sum += hop.share;
  }
  return sum * share * static_cast<double>(pair_bytes(exchange, op).count());
}

ExpertExchange of_mode(ExpertMode mode) {
  ExpertExchange exchange =
      mode == ExpertMode::LowLatency ? deepep_low_latency() : deepep_normal(64);
  if (mode == ExpertMode::Direct) exchange.kernels = expert_kernels("deepep-v2", mode);
  if (mode == ExpertMode::Nccl) exchange.kernels = expert_kernels("deepep-v1", mode);
  exchange.mode = mode;
  return exchange;
}

}  // namespace

TEST_CASE("a layer of V3 moves the bytes of MOE.md 1.7", "[moe][planner]") {
  struct Row {
    std::uint32_t ranks;
    std::uint32_t kept;                                 // 0: any node.
    double network, nvlink, network_back, nvlink_back;  // MB
  };
  const Row row =
      GENERATE(Row{8, 0, 0, 140.3, 0, 272.0}, Row{16, 0, 30.2, 172.8, 58.5, 335.2},
               Row{32, 0, 82.1, 192.5, 159.2, 373.4}, Row{64, 0, 140.3, 203.4, 272.0, 394.4},
               Row{16, 4, 29.8, 151.8, 57.7, 294.3}, Row{32, 4, 70.8, 181.6, 137.3, 352.2},
               Row{64, 4, 104.7, 198.4, 203.1, 384.9});
  CAPTURE(row.ranks, row.kept);
  const Cluster cluster(h800_planes(std::max(1U, row.ranks / 8)));
  const ExpertExchange exchange = v3(row.kept);
  const ExpertTraffic there = expert_plan(cluster, exchange, dispatch, row.ranks).traffic;
  const ExpertTraffic back = expert_plan(cluster, exchange, combine, row.ranks).traffic;

  const double payload = 7392.0 / 7408;  // Of the wire's bytes.
  const double payload_back = 14336.0 / 14384;
  CHECK_THAT(there.network.mean * payload / 1e6, WithinAbs(row.network, 0.06));
  CHECK_THAT(there.nvlink.mean * payload / 1e6, WithinAbs(row.nvlink, 0.06));
  CHECK_THAT(back.network.mean * payload_back / 1e6, WithinAbs(row.network_back, 0.12));
  CHECK_THAT(back.nvlink.mean * payload_back / 1e6, WithinAbs(row.nvlink_back, 0.12));
  CHECK_THAT(there.network.most, WithinRel(there.network.mean, 1e-12));
  // Logical bytes have the own node and the own rank in them.
  const double nodes = row.ranks / 8.0;
  CHECK_THAT(there.logical_network.mean * (1 - 1 / nodes),
             WithinAbs(there.network.mean * payload, 1));
  CHECK_THAT(there.logical_nvlink.mean * 7 / 8, WithinAbs(there.nvlink.mean * payload, 1));
}

TEST_CASE("without the node limit EP64 sends 34 % more over the network", "[moe][planner]") {
  const Cluster cluster(h800_planes(8));
  const ExpertPlan limited = expert_plan(cluster, v3(4), dispatch, 64);
  const ExpertPlan free = expert_plan(cluster, v3(0), dispatch, 64);
  CHECK_THAT(free.traffic.network.mean / limited.traffic.network.mean, WithinAbs(1.34, 0.005));
  // All of it shows where the network binds, and NVLink hardly notices.
  CHECK_THAT(to_seconds(free.plan.alone) / to_seconds(limited.plan.alone), WithinAbs(1.34, 0.005));
  CHECK_THAT(free.traffic.nvlink.mean / limited.traffic.nvlink.mean, WithinAbs(1.025, 0.005));
}

TEST_CASE("V4-Pro's six experts without a limit cost 12 % more copies over the network than V3's",
          "[moe][planner]") {
  const Cluster cluster(h800_planes(8));
  ExpertExchange pro = v3(0);
  pro.routing.experts = 384;
  pro.routing.chosen = 6;
  const ExpertTraffic v4 = expert_plan(cluster, pro, dispatch, 64).traffic;
  const ExpertTraffic v3_traffic = expert_plan(cluster, v3(4), dispatch, 64).traffic;
  CHECK_THAT(v4.nodes_per_token, WithinAbs(4.4298, 1e-3));
  CHECK_THAT(v4.network.mean / v3_traffic.network.mean, WithinAbs(1.12, 0.005));
}

TEST_CASE("what leaves ports is what enters them, and what the traffic says", "[moe][planner]") {
  const ExpertMode mode = GENERATE(ExpertMode::Normal, ExpertMode::Direct, ExpertMode::LowLatency);
  const CollectiveOp op = GENERATE(dispatch, combine);
  const bool sampled = GENERATE(false, true);
  CAPTURE(to_string(mode), to_string(op), sampled);
  const Cluster cluster(read(R"({"node": {"preset": "dgx-h100"}, "nodes": 8,
               "fabric": {"type": "rail-optimized", "preset": "ndr"}})"));
  ExpertExchange exchange = of_mode(mode);
  exchange.tokens = 128;
  exchange.routing.sampled = sampled;
  const ExpertPlan plan = expert_plan(cluster, exchange, op, 64);
  const bool back = op == combine;
  const double network =
      back ? exchange.kernels->network.front().combine : exchange.kernels->network.front().dispatch;
  const auto bytes = [&](VertexKind from) {
    return bytes_on(cluster, exchange, op, plan, LinkKind::HostLeaf, from, network);
  };
  CHECK_THAT(bytes(VertexKind::Nic), WithinRel(bytes(VertexKind::Leaf), 1e-9));
  CHECK_THAT(bytes(VertexKind::Nic), WithinRel(64 * plan.traffic.network.mean, 1e-9));
  const auto nvlink = [&](VertexKind from) {
    return bytes_on(cluster, exchange, op, plan, LinkKind::NvLink, from,
                    back ? exchange.kernels->nvlink.front().combine
                         : exchange.kernels->nvlink.front().dispatch);
  };
  CHECK_THAT(nvlink(VertexKind::Gpu), WithinRel(nvlink(VertexKind::NvSwitch), 1e-9));
  // Rails that are joined above their leaves are entered on the right one, with a hop before.
  if (mode == ExpertMode::Normal) {
    CHECK_THAT(nvlink(VertexKind::Gpu), WithinRel(64 * plan.traffic.nvlink.mean, 1e-9));
  } else {
    CHECK(nvlink(VertexKind::Gpu) > 64 * plan.traffic.nvlink.mean);
  }
  CHECK(std::ranges::is_sorted(*plan.plan.loads, {}, &Hop::link));
  CHECK((plan.traffic.network.most > plan.traffic.network.mean * (1 + 1e-9)) == sampled);
}

TEST_CASE("a balanced exchange loads links that are alike with the same bits", "[moe][planner]") {
  const ExpertMode mode =
      GENERATE(ExpertMode::Normal, ExpertMode::Direct, ExpertMode::LowLatency, ExpertMode::Nccl);
  const CollectiveOp op = GENERATE(dispatch, combine);
  const std::string topology = GENERATE(
      R"({"node": {"preset": "hgx-h800"}, "nodes": 8, "fabric": {"type": "multi-plane", "preset": "ndr"}})",
      R"({"node": {"preset": "dgx-h100"}, "nodes": 8, "fabric": {"type": "rail-optimized", "preset": "ndr"}})",
      R"({"node": {"preset": "dgx-h100"}, "nodes": 8, "fabric": {"type": "fat-tree", "preset": "ndr"}})",
      R"({"node": {"preset": "gb200-nvl72"}, "nodes": 1})");
  CAPTURE(to_string(mode), to_string(op), topology);
  const Cluster cluster(read(topology));
  const ExpertExchange exchange = of_mode(mode);
  const ExpertPlan plan = expert_plan(cluster, exchange, op, 64);
  REQUIRE(plan.balanced);
  // Links at GPUs and NICs, by kind and direction.
  using Kind = std::tuple<LinkKind, VertexKind, VertexKind, double>;
  std::map<Kind, std::vector<double>> alike;
  for (const Hop& hop : *plan.plan.loads) {
    const Link& link = cluster.topology.links[hop.link];
    if (link.kind != LinkKind::NvLink && link.kind != LinkKind::HostLeaf) continue;
    alike[{link.kind, cluster.topology.vertices[link.from].kind,
           cluster.topology.vertices[link.to].kind, link.bandwidth.per_second()}]
        .push_back(hop.share);
  }
  REQUIRE_FALSE(alike.empty());
  for (const auto& entry : alike) {
    const std::vector<double>& shares = entry.second;
    CHECK(std::ranges::all_of(shares, [&](double share) { return share == shares.front(); }));
  }
}

TEST_CASE("combine is dispatch the other way round", "[moe][planner]") {
  const ExpertMode mode = GENERATE(ExpertMode::Normal, ExpertMode::Direct, ExpertMode::LowLatency);
  ExpertExchange exchange = of_mode(mode);
  exchange.routing.sampled = true;
  exchange.tokens = 64;
  std::vector<std::uint32_t> domain(64);
  for (std::uint32_t r = 0; r < 64; ++r) domain[r] = r / 8;
  const ExpertGroup group = expert_group(domain);
  const ExpertCopies copies = expert_copies(exchange, group);
  const ExchangeFlows there = exchange_flows(exchange, dispatch, group, copies);
  const ExchangeFlows back = exchange_flows(exchange, combine, group, copies);
  const double signals = mode == ExpertMode::LowLatency ? 4.0 * 256 / 64 : 0;
  for (std::uint32_t i = 0; i < 64; ++i) {
    for (std::uint32_t j = 0; j < 64; ++j) {
      if (i == j) continue;
      const double ratio = message_bytes(exchange, combine) / message_bytes(exchange, dispatch);
      REQUIRE_THAT(back.at(j, i) - signals, WithinAbs((there.at(i, j) - signals) * ratio, 1e-6));
    }
  }
}

TEST_CASE("normal kernels stay in their plane, others cross it over NVLink", "[moe][planner]") {
  const Cluster cluster(h800_planes(4));
  const auto nvlink = [&](const ExpertExchange& exchange, double share) {
    const ExpertPlan plan = expert_plan(cluster, exchange, dispatch, 32);
    return bytes_on(cluster, exchange, dispatch, plan, LinkKind::NvLink, VertexKind::Gpu, share) /
           32 / plan.traffic.nvlink.mean;
  };
  CHECK_THAT(nvlink(deepep_normal(32), 0.66), WithinRel(1.0, 1e-9));
  // Of 31 peers 7 are in the node, and of the 24 others 21 in another plane.
  CHECK_THAT(nvlink(deepep_low_latency(), 0.57), WithinRel((7.0 + 21) / 7, 1e-9));
}

TEST_CASE("a NIC that is down slows the exchange down", "[moe][planner]") {
  const auto cluster = [](const std::string& overrides) {
    return read(R"({"node": {"preset": "dgx-h100"}, "nodes": 4,
                    "fabric": {"type": "rail-optimized", "preset": "ndr"})" +
                overrides + "}");
  };
  const Cluster whole(cluster(""));
  const Cluster broken(
      cluster(R"(, "overrides": [{"select": "nic[node=1,index=2]", "state": "down"}])"));
  const ExpertMode mode = GENERATE(ExpertMode::Normal, ExpertMode::LowLatency);
  const ExpertExchange exchange = of_mode(mode);
  const ExpertPlan before = expert_plan(whole, exchange, dispatch, 32);
  const ExpertPlan after = expert_plan(broken, exchange, dispatch, 32);
  // Another NIC of the node carries the bytes of two.
  const double slower = to_seconds(after.plan.alone - after.plan.startup) /
                        to_seconds(before.plan.alone - before.plan.startup);
  CHECK(slower > 1.9);
  CHECK(slower < 2.1);
  CHECK_THAT(after.plan.bottleneck, Contains("nic"));
}

TEST_CASE("messages carry what the library says beside the payload", "[moe][planner]") {
  ExpertExchange exchange = deepep_normal(64);
  CHECK(message_bytes(exchange, dispatch) == 7408);  // Cached.
  CHECK(message_bytes(exchange, combine) == 14384);
  exchange.cached = false;
  CHECK(message_bytes(exchange, dispatch) == 7472);
  exchange.kernels = expert_kernels("deepep-v2", ExpertMode::Normal);
  CHECK(message_bytes(exchange, dispatch) == 7520);
  const ExpertExchange low_latency = deepep_low_latency();
  CHECK(message_bytes(low_latency, dispatch) == 7408);
  CHECK(message_bytes(low_latency, combine) == 14336);
}

TEST_CASE("a layout that is not cached is told first", "[moe][planner]") {
  const Cluster cluster(h800_planes(2));
  ExpertExchange exchange = deepep_normal(16);
  const ExpertPlan cached = expert_plan(cluster, exchange, dispatch, 16);
  CHECK(cached.notify == 0us);
  exchange.cached = false;
  const ExpertPlan told = expert_plan(cluster, exchange, dispatch, 16);
  CHECK(told.notify == 50us);
  CHECK(told.plan.startup > cached.plan.startup + 49us);
  CHECK(expert_plan(cluster, exchange, combine, 16).notify == 0us);
}

TEST_CASE("beside compute the kernels reach their overlapped share", "[moe][planner]") {
  const Cluster cluster(h800_planes(8));
  ExpertExchange exchange = deepep_normal(64);
  const auto flowing = [&](CollectiveOp op) {
    const ExpertPlan plan = expert_plan(cluster, exchange, op, 64);
    return to_seconds(plan.plan.alone - plan.plan.startup);
  };
  const double cached = flowing(dispatch);
  const double back = flowing(combine);
  exchange.overlapped = true;
  CHECK_THAT(flowing(dispatch), WithinRel(cached / 0.77, 1e-6));
  CHECK_THAT(flowing(combine), WithinRel(back / 0.84, 1e-6));
  exchange.cached = false;
  CHECK_THAT(flowing(dispatch), WithinRel(cached * 7472 / 7408 / 0.6, 1e-6));
}

TEST_CASE("a slow NIC's message rate binds low-latency writes", "[moe][planner]") {
  const Cluster cluster(h800_planes(8));
  ExpertExchange exchange = deepep_low_latency();
  ExpertKernels kernels = *exchange.kernels;
  kernels.messages_per_second = 2e6;
  exchange.kernels = std::make_shared<ExpertKernels>(kernels);
  const ExpertPlan plan = expert_plan(cluster, exchange, dispatch, 64);
  CHECK(plan.plan.bottleneck == "message rate");
  // 7/8 of 1,024 pairs, and of the counts of 256 experts.
  CHECK_THAT(to_seconds(plan.plan.alone - plan.plan.startup),
             WithinRel((1024 + 256) * 7.0 / 8 / 2e6, 1e-6));
}

TEST_CASE("mode nccl is the library's all-to-all, and follows uneven pairs", "[moe][planner]") {
  const Cluster cluster(h800_planes(4), library("nccl"));
  ExpertExchange exchange = of_mode(ExpertMode::Nccl);
  const ExpertPlan even = expert_plan(cluster, exchange, dispatch, 32);
  const CollectivePlan plain = cluster.cost.plan(
      {CollectiveOp::AllToAll, pair_bytes(exchange, dispatch), "", first_ranks(32), 0});
  CHECK(even.plan.alone == plain.alone);
  CHECK(even.plan.loads == plain.loads);

  // The same pairs, counted one by one: the loads are close to even ones and never below them.
  exchange.routing.sampled = true;
  const ExpertPlan drawn = expert_plan(cluster, exchange, dispatch, 32);
  CHECK(to_seconds(drawn.plan.alone) > to_seconds(even.plan.alone));
  CHECK_THAT(to_seconds(drawn.plan.alone), WithinRel(to_seconds(even.plan.alone), 0.05));

  // Half of all choices fall on one rank's experts: it receives many times its share.
  exchange.routing.popularity.assign(256, 1);
  for (std::size_t e = 0; e < 8; ++e) exchange.routing.popularity[e] = 248.0 / 8;
  const ExpertPlan hot = expert_plan(cluster, exchange, dispatch, 32);
  CHECK(to_seconds(hot.plan.alone) > 4 * to_seconds(even.plan.alone));
}

TEST_CASE("a hot expert hurts NVLink where copies are forwarded and a NIC where they are not",
          "[moe][planner]") {
  const Cluster cluster(h800_planes(8));
  const auto slowdown = [&](ExpertMode mode) {
    ExpertExchange exchange = of_mode(mode);
    exchange.routing.gate = Gate::TopK;
    exchange.routing.groups = 0;
    exchange.routing.groups_chosen = 0;
    exchange.routing.sampled = true;
    exchange.tokens = 1024;
    const ExpertPlan even = expert_plan(cluster, exchange, dispatch, 64);
    exchange.routing.popularity.assign(256, 1);
    exchange.routing.popularity[5] = 128;  // Of GPU 1.
    const ExpertPlan hot = expert_plan(cluster, exchange, dispatch, 64);
    return std::pair{to_seconds(hot.plan.alone) / to_seconds(even.plan.alone), hot.plan.bottleneck};
  };
  const auto [normal, normal_binding] = slowdown(ExpertMode::Normal);
  const auto [direct, direct_binding] = slowdown(ExpertMode::LowLatency);
  CHECK(normal_binding == "nvlink in");
  CHECK(direct_binding == "nic in (host-leaf)");
  CHECK(direct > normal);
}

TEST_CASE("nodes of unequal size forward over the members that there are", "[moe][planner]") {
  const Cluster cluster(h800_planes(2));
  ExpertExchange exchange = deepep_normal(16);
  exchange.routing.experts = 12 * 16;
  // All of node 0 and four of node 1.
  const ExpertPlan plan = expert_plan(cluster, exchange, dispatch, 12);
  CHECK_FALSE(plan.balanced);
  CHECK(plan.traffic.network.most > 1.5 * plan.traffic.network.mean);
}

TEST_CASE("a lone rank has nothing to send, nor has one without tokens", "[moe][planner]") {
  const Cluster cluster(h800_planes(2));
  const ExpertMode mode = GENERATE(ExpertMode::Normal, ExpertMode::LowLatency, ExpertMode::Nccl);
  ExpertExchange exchange = of_mode(mode);
  exchange.routing.gate = Gate::TopK;
  exchange.routing.groups = 0;
  exchange.routing.groups_chosen = 0;
  CHECK(expert_plan(cluster, exchange, dispatch, 1).plan.loads->empty());
  exchange.tokens = 0;
  const ExpertPlan idle = expert_plan(cluster, exchange, dispatch, 16);
  CHECK(idle.plan.loads->empty());
  CHECK(idle.plan.alone == 0us);
  CHECK(idle.plan.bottleneck == "nothing to send");
}

TEST_CASE("groups that the kernels cannot serve are refused in words", "[moe][planner]") {
  const Cluster cluster(h800_planes(21));
  ExpertExchange exchange = deepep_normal(16);
  exchange.routing.experts = 168;
  CHECK_THROWS_WITH(
      expert_plan(cluster, exchange, dispatch, 168),
      "moe_dispatch: normal kernels of deepep-v1 serve up to 160 ranks, the group has "
      "168");
  exchange.sms = 1;
  CHECK_THROWS_WITH(expert_plan(cluster, exchange, dispatch, 8),
                    "deepep-v1 needs 2 SMs per channel, got 1");
  exchange.sms = 0;
  exchange.chunk = 129;
  CHECK_THROWS_WITH(expert_plan(cluster, exchange, dispatch, 8),
                    "deepep-v1: a chunk of 129 tokens does not fit into a ring of 128");
  exchange.chunk = 0;
  exchange.rank_tokens = {1, 2};
  CHECK_THROWS_WITH(expert_plan(cluster, exchange, dispatch, 8),
                    "moe_dispatch: tokens of 2 ranks for a group of 8");
  exchange.rank_tokens.clear();
  const ExpertPlanner planner(cluster.topology, cluster.cost);
  const std::vector<std::uint32_t> twice{0, 1, 1};
  CHECK_THROWS_WITH(planner.plan(exchange, dispatch, twice),
                    "moe_dispatch: rank 1 is in the group twice");
  const std::vector<std::uint32_t> missing{0, 500};
  CHECK_THROWS_WITH(planner.plan(exchange, dispatch, missing),
                    "moe_dispatch: rank 500 is not there, the topology has 168 GPUs");
  CHECK_THROWS_WITH(planner.plan(exchange, CollectiveOp::MoeFused, first_ranks(8)),
                    "moe_fused: mode normal has a dispatch and a combine, not one kernel for both");

  const Cluster lone(h800_planes(1));
  ExpertExchange through_nics = deepep_low_latency();
  through_nics.nvlink = false;
  CHECK_THROWS_WITH(expert_plan(lone, through_nics, dispatch, 8),
                    "writes through NICs inside a node need a network, and the topology has one "
                    "node");
  const Cluster apart(
      read(R"({"node": {"preset": "hgx-h800"}, "nodes": 2, "fabric": {"type": "none"}})"));
  CHECK_THROWS_AS(expert_plan(apart, deepep_normal(16), dispatch, 16), SimulationError);
}

TEST_CASE("a plan that fails leaves nothing behind", "[moe][planner]") {
  const Cluster apart(
      read(R"({"node": {"preset": "hgx-h800"}, "nodes": 2, "fabric": {"type": "none"}})"));
  const ExpertExchange exchange = deepep_normal(16);
  const ExpertPlanner planner(apart.topology, apart.cost);
  CHECK_THROWS_AS(planner.plan(exchange, dispatch, first_ranks(16)), SimulationError);
  const ExpertPlan& after = planner.plan(exchange, dispatch, first_ranks(8));
  const ExpertPlan fresh = expert_plan(apart, exchange, dispatch, 8);
  CHECK(after.plan.alone == fresh.plan.alone);
  CHECK(std::ranges::equal(*after.plan.loads, *fresh.plan.loads, {}, &Hop::share, &Hop::share));
}

TEST_CASE("a plan is made once", "[moe][planner]") {
  const Cluster cluster(h800_planes(1));
  const ExpertPlanner planner(cluster.topology, cluster.cost);
  const ExpertExchange exchange = deepep_normal(8);
  const ExpertPlan& first = planner.plan(exchange, dispatch, first_ranks(8));
  static_cast<void>(planner.plan(exchange, combine, first_ranks(8)));
  CHECK(&planner.plan(exchange, dispatch, first_ranks(8)) == &first);
}

TEST_CASE("bottleneck bandwidth counts nodes where there are several, else ranks",
          "[moe][planner]") {
  ExpertTraffic traffic;
  traffic.logical_network = {4e6, 5e6};
  traffic.logical_nvlink = {8e6, 9e6};
  CHECK_THAT(bottleneck_bandwidth(traffic, 100us, true), WithinRel(40.0, 1e-12));
  CHECK_THAT(bottleneck_bandwidth(traffic, 100us, false), WithinRel(80.0, 1e-12));
}
