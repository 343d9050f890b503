// DeepEP's published tables.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace test;

TEST_CASE("report", "[.report]") {
  for (const char* library : {"deepep-v1", "deepep-v1-2025-02", "deepep-v2"}) {
    for (std::uint32_t ranks : {8, 16, 32, 64, 128}) {
      const Cluster cluster(h800_planes(ranks / 8));
      const ExpertExchange exchange = deepep_normal(ranks, library);
      for (CollectiveOp op : {CollectiveOp::MoeDispatch, CollectiveOp::MoeCombine}) {
        const ExpertPlan plan = expert_plan(cluster, exchange, op, ranks);
        fmt::print("{} EP{} {}: {:.1f} GB/s {:.1f} us start {:.1f} [{}] net {:.1f} nvl {:.1f} MB cap {:.4g} bal {} {}\n",
                   library, ranks, to_string(op),
                   bottleneck_bandwidth(plan.traffic, plan.plan.alone, ranks > 8),
                   to_microseconds(plan.plan.alone), to_microseconds(plan.plan.startup),
                   plan.plan.bottleneck, plan.traffic.network.most / 1e6,
                   plan.traffic.nvlink.most / 1e6, plan.plan.rate_cap, plan.balanced, plan.traffic.basis);
      }
    }
  }
  for (const char* library : {"deepep-v1", "deepep-v1-2025-02"}) {
    for (std::uint32_t ranks : {8, 16, 32, 64, 128, 256}) {
      const Cluster cluster(h800_planes(std::max(2U, ranks / 8)));
      ExpertExchange exchange = deepep_low_latency(library);
      exchange.nvlink = std::string(library) == "deepep-v1";
      for (CollectiveOp op : {CollectiveOp::MoeDispatch, CollectiveOp::MoeCombine}) {
        const ExpertPlan plan = expert_plan(cluster, exchange, op, ranks);
        fmt::print("LL {} EP{} {}: {:.1f} us start {:.1f} [{}]\n", library, ranks, to_string(op),
                   to_microseconds(plan.plan.alone), to_microseconds(plan.plan.startup),
                   plan.plan.bottleneck);
      }
    }
  }
  for (std::uint32_t chunk : {4, 8, 12, 16, 20, 24}) {
    const Cluster cluster(h800_planes(2));
    ExpertExchange exchange = deepep_normal(16, "deepep-v1-2025-02");
    exchange.sms = 16;
    exchange.chunk = chunk;
    const ExpertPlan plan = expert_plan(cluster, exchange, CollectiveOp::MoeDispatch, 16);
    fmt::print("chunk {}: {:.2f} [{}]\n", chunk,
               bottleneck_bandwidth(plan.traffic, plan.plan.alone, true), plan.plan.bottleneck);
  }
}
