// Dispatch, experts and combine in one kernel, against what MegaMoE published (MOE.md 5.4, 5.5).

#include "moe/fused.hpp"

#include <catch2/catch.hpp>

#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace test;
using Catch::Matchers::WithinRel;

namespace {

// V4-Flash or V4-Pro on eight ranks.
ExpertExchange v4(bool pro, std::uint32_t tokens) {
  ExpertExchange exchange;
  exchange.name = pro ? "V4-Pro" : "V4-Flash";
  exchange.mode = ExpertMode::Fused;
  exchange.routing.experts = pro ? 384 : 256;
  exchange.routing.chosen = 6;
  exchange.tokens = tokens;
  exchange.hidden = pro ? 7168 : 4096;
  exchange.expert_hidden = pro ? 3072 : 2048;
  exchange.dispatch_bytes = exchange.hidden * (1 + 1.0 / 32);
  exchange.combine_bytes = 2.0 * exchange.hidden;
  exchange.dtype = "fp8";
  exchange.kernels = expert_kernels("megamoe", exchange.mode);
  return exchange;
}

FusedShape shape(bool pro, double tokens) {
  FusedShape shape;
  shape.experts = pro ? 48 : 32;
  shape.pairs = tokens * 6;
  shape.active = shape.experts;
  shape.hidden = pro ? 7168 : 4096;
  shape.expert_hidden = pro ? 3072 : 2048;
  shape.weight_bytes = 0.53125;
  return shape;
}

}  // namespace

TEST_CASE("waves and blocks are those of the kernel", "[moe][fused]") {
  const Waves flash = waves_of(shape(false, 8192), 148);
  CHECK(flash.block == 192);
  CHECK(flash.experts_per_wave == 2);
  CHECK(flash.count == 16);
  const Waves pro = waves_of(shape(true, 8192), 148);
  CHECK(pro.block == 192);
  CHECK(pro.experts_per_wave == 2);
  CHECK(pro.count == 24);
  const Waves few = waves_of(shape(false, 512), 148);
  CHECK(few.block == 128);
  CHECK(few.experts_per_wave == 16);
  CHECK(few.count == 2);
}

TEST_CASE("blocks grow with the rows of an expert", "[moe][fused]") {
  const auto block = [](double rows) {
    FusedShape one = shape(false, 0);
    one.pairs = rows * one.experts;
    return waves_of(one, 148).block;
  };
  CHECK(block(8.5) == 16);
  CHECK(block(8.6) == 32);
  CHECK(block(16.6) == 64);
  CHECK(block(32.6) == 96);
  CHECK(block(64.6) == 128);
  CHECK(block(96.6) == 192);
}

TEST_CASE("tiles go round the SMs in turn", "[moe][fused]") {
  FusedMachine machine;
  machine.sms = 148;
  machine.flops = 4.5e15;
  machine.efficiency = 0.5;
  machine.memory_rate = 1e18;
  const FusedWork work = fused_work(shape(false, 8192), machine);
  // 32 experts of 8 blocks: 8192 tiles of each matrix, in 56 rounds.
  const double round = 2.0 * 192 * 128 * (4096 + 2048) / 0.5 / (4.5e15 / 148);
  CHECK_THAT(work.seconds, WithinRel(56 * round, 1e-12));
  CHECK(work.seconds == work.compute);
}

TEST_CASE("MegaMoE's times from 512 tokens on are within 9 %", "[moe][fused]") {
  struct Row {
    bool pro;
    std::uint32_t tokens;
    double microseconds;
  };
  const Row row =
      GENERATE(Row{false, 512, 146.5}, Row{false, 8192, 1283.1}, Row{false, 32768, 4855.5},
               Row{true, 512, 369.6}, Row{true, 8192, 2818.5}, Row{true, 32768, 10655.2});
  CAPTURE(row.pro, row.tokens);
  const Cluster cluster(io::load_topology("dgx-b200"));
  const ExpertPlan plan = expert_plan(cluster, v4(row.pro, row.tokens), CollectiveOp::MoeFused, 8);
  CHECK_THAT(to_microseconds(plan.plan.alone), WithinRel(row.microseconds, 0.09));
  CHECK(plan.sms == 148);
  CHECK(plan.balanced);
}

TEST_CASE("with one token per rank the fused kernel is predicted too fast by a third at most",
          "[moe][fused]") {
  const bool pro = GENERATE(false, true);
  const Cluster cluster(io::load_topology("dgx-b200"));
  ExpertExchange exchange = v4(pro, 1);
  exchange.routing.sampled = true;  // The rank with most experts decides.
  const double time =
      to_microseconds(expert_plan(cluster, exchange, CollectiveOp::MoeFused, 8).plan.alone);
  CHECK(time > (pro ? 108.1 : 56.5) * 0.66);
  CHECK(time < (pro ? 108.1 : 56.5));
}

TEST_CASE("waves gain what the published rows gain over the same rates in sequence at full batches",
          "[moe][fused]") {
  // Published, against DeepEP V2 and kernels of their own: 1.56 and 1.62 (Flash), 1.50 and 1.54
  // (Pro).
  struct Row {
    bool pro;
    std::uint32_t tokens;
    double gain;
  };
  const Row row = GENERATE(Row{false, 8192, 1.56}, Row{false, 32768, 1.62}, Row{true, 8192, 1.50},
                           Row{true, 32768, 1.54});
  CAPTURE(row.pro, row.tokens);
  const Cluster cluster(io::load_topology("dgx-b200"));
  const ExpertExchange exchange = v4(row.pro, row.tokens);
  const ExpertPlan fused = expert_plan(cluster, exchange, CollectiveOp::MoeFused, 8);

  const FusedMachine machine = fused_machine(exchange, cluster.topology.gpu_model(0));
  const double experts = fused_work(shape(row.pro, row.tokens), machine).seconds;
  const double links = fused.traffic.nvlink.most / (0.9 * 900e9);
  // The activation as a kernel of its own: BF16 in, FP8 out. Unpacking and the sum of rows.
  const double rows = 6.0 * row.tokens;
  const double memory =
      (rows * exchange.expert_hidden * (2 * 2 + 1) + 2 * rows * exchange.dispatch_bytes +
       (rows + row.tokens) * exchange.combine_bytes) /
      6.5e12;
  const double sequence = 50e-6 + links + experts + memory;
  CHECK_THAT(sequence / to_seconds(fused.plan.alone), WithinRel(row.gain, 0.07));
}

TEST_CASE("the fused kernel says what it needs", "[moe][fused]") {
  const Cluster two_nodes(io::load_topology("dgx-b200:2"));
  CHECK_THROWS_WITH(expert_plan(two_nodes, v4(false, 512), CollectiveOp::MoeFused, 16),
                    "megamoe: the kernel works over NVLink, and the group spans 2 nodes");
  ExpertExchange exchange = v4(false, 512);
  exchange.dtype = "int3";
  CHECK_THROWS_WITH(expert_plan(two_nodes, exchange, CollectiveOp::MoeFused, 8),
                    "B200-SXM has no rate for \"int3\"");
  CHECK_THROWS_WITH(expert_plan(two_nodes, v4(false, 512), CollectiveOp::MoeDispatch, 8),
                    "moe_dispatch: mode fused has one kernel for dispatch and combine, moe_fused");
  const Cluster pcie(io::load_topology("pcie-8"));
  CHECK_THROWS_WITH(expert_plan(pcie, v4(false, 512), CollectiveOp::MoeFused, 8),
                    Catch::Matchers::Contains("works over NVLink"));
}
