// The plan's closed form against the same kernels chunk by chunk.

#include <catch2/catch.hpp>

#include "moe/kernel_limits.hpp"
#include "support/chunked_dispatch.hpp"
#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace flyover::literals;
using namespace test;
using Catch::Matchers::WithinRel;

namespace {

ExpertGroup nodes_of_eight(std::uint32_t nodes) {
  std::vector<std::uint32_t> domain(std::size_t{8} * nodes);
  for (std::uint32_t r = 0; r < domain.size(); ++r) domain[r] = r / 8;
  return expert_group(domain);
}

// As the plan sees it: shares of 50 and 200 GB/s.
ChunkedMachine machine(const Cluster& cluster, const ExpertKernels& kernels) {
  return {50e9 * kernels.network.front().dispatch, 200e9 * kernels.nvlink.front().dispatch,
          cluster.router.route(0, 8).latency, cluster.router.route(0, 1).latency};
}

}  // namespace

TEST_CASE("chunk by chunk normal kernels take the plan's time within 1.5 %", "[moe][chunks]") {
  const std::string library = GENERATE("deepep-v1", "deepep-v1-2025-02");
  const std::uint32_t nodes = GENERATE(2U, 4U);
  const std::uint32_t sms = GENERATE(6U, 8U, 16U, 24U);
  const std::uint32_t chunk = GENERATE(0U, 4U);
  CAPTURE(library, nodes, sms, chunk);
  const Cluster cluster(h800_planes(nodes));
  ExpertExchange exchange = deepep_normal(8 * nodes, library);
  exchange.sms = sms;
  exchange.chunk = chunk;
  const ExpertGroup group = nodes_of_eight(nodes);
  const ExpertPlan plan = expert_plan(cluster, exchange, CollectiveOp::MoeDispatch, 8 * nodes);
  const Duration chunks = chunked_dispatch(exchange, group, expert_copies(exchange, group),
                                           machine(cluster, *exchange.kernels));
  CHECK_THAT(to_seconds(plan.plan.alone), WithinRel(to_seconds(chunks), 0.015));
}

TEST_CASE("chunk by chunk a sampled exchange takes the plan's time within 2 %", "[moe][chunks]") {
  const Cluster cluster(h800_planes(4));
  ExpertExchange exchange = deepep_normal(32);
  exchange.routing.sampled = true;
  const ExpertGroup group = nodes_of_eight(4);
  const ExpertPlan plan = expert_plan(cluster, exchange, CollectiveOp::MoeDispatch, 32);
  const Duration chunks = chunked_dispatch(exchange, group, expert_copies(exchange, group),
                                           machine(cluster, *exchange.kernels));
  CHECK_THAT(to_seconds(plan.plan.alone), WithinRel(to_seconds(chunks), 0.02));
}

TEST_CASE("over a long way the ring's window binds, chunk by chunk too", "[moe][chunks]") {
  const Duration latency = GENERATE(500us, 2000us);
  CAPTURE(latency);
  const Cluster cluster(h800_planes(2));
  const ExpertExchange exchange = deepep_normal(16);
  const ExpertGroup group = nodes_of_eight(2);
  const ExpertCopies copies = expert_copies(exchange, group);
  const ExchangeFlows flows = exchange_flows(exchange, CollectiveOp::MoeDispatch, group, copies);
  const KernelLimit limit = kernel_limit(
      exchange, CollectiveOp::MoeDispatch, group, copies, flows, copy_work(exchange, group, copies),
      kernel_use(exchange, CollectiveOp::MoeDispatch, 16), 2 * latency);
  CHECK(limit.binding == "window of 128 tokens");

  ChunkedMachine far = machine(cluster, *exchange.kernels);
  far.network_latency = latency;
  const Duration chunks = chunked_dispatch(exchange, group, copies, far);
  // Rings of 128 hold six whole chunks of 20.
  CHECK_THAT(limit.seconds, WithinRel(to_seconds(chunks), 0.12));
}
