// Planning must not be what a decode step waits for.

#include <ctime>

#include <catch2/catch.hpp>

#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace test;

namespace {

// Of this thread's processor.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("a low-latency exchange of 320 ranks is planned in well under half a second",
          "[moe][speed]") {
  const bool sampled = GENERATE(false, true);
  const Cluster cluster(h800_planes(40));
  ExpertExchange exchange = deepep_low_latency();
  exchange.routing.experts = 320;
  exchange.routing.sampled = sampled;
  const double start = cpu_seconds();
  const ExpertPlan plan = expert_plan(cluster, exchange, CollectiveOp::MoeDispatch, 320);
  CHECK(cpu_seconds() - start < 0.5);
  CHECK(plan.balanced != sampled);
}

TEST_CASE("4,096 sampled tokens of 64 ranks are planned in under 0.3 s", "[moe][speed]") {
  const Cluster cluster(h800_planes(8));
  ExpertExchange exchange = deepep_normal(64);
  exchange.routing.sampled = true;
  const double start = cpu_seconds();
  const ExpertPlan plan = expert_plan(cluster, exchange, CollectiveOp::MoeDispatch, 64);
  CHECK(cpu_seconds() - start < 0.3);
  CHECK_FALSE(plan.balanced);
}
