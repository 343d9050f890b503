// The plan's closed form against the same kernels chunk by chunk.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/chunked_dispatch.hpp"
#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace test;

TEST_CASE("chunk report", "[.report]") {
  for (const char* library : {"deepep-v1", "deepep-v1-2025-02"}) {
    for (std::uint32_t nodes : {2, 4, 8}) {
      for (std::uint32_t sms : {6, 8, 16, 24}) {
        for (std::uint32_t chunk : {0, 4}) {
          const Cluster cluster(h800_planes(nodes));
          ExpertExchange exchange = deepep_normal(8 * nodes, library);
          exchange.sms = sms;
          exchange.chunk = chunk;
          const ExpertPlan plan =
              expert_plan(cluster, exchange, CollectiveOp::MoeDispatch, 8 * nodes);
          std::vector<std::uint32_t> domain(8 * nodes);
          for (std::uint32_t r = 0; r < domain.size(); ++r) domain[r] = r / 8;
          const ExpertGroup group = expert_group(domain);
          const Route far = cluster.router.route(0, 8);
          const Route near = cluster.router.route(0, 1);
          const ChunkedMachine machine{50e9 * exchange.kernels->network.front().dispatch,
                                       200e9 * exchange.kernels->nvlink.front().dispatch,
                                       far.latency, near.latency};
          const Duration chunked =
              chunked_dispatch(exchange, group, expert_copies(exchange, group), machine);
          fmt::print("{} EP{} sms {} chunk {}: chunked {:.1f} plan {:.1f} ({:+.1f} %) [{}]\n", library,
                     8 * nodes, sms, chunk, to_microseconds(chunked),
                     to_microseconds(plan.plan.alone),
                     100 * (to_seconds(plan.plan.alone) / to_seconds(chunked) - 1),
                     plan.plan.bottleneck);
        }
      }
    }
  }
}
