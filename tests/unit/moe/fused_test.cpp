#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace test;

namespace {
ExpertExchange v4(bool pro, std::uint32_t tokens) {
  ExpertExchange e;
  e.mode = ExpertMode::Fused;
  e.routing.experts = pro ? 384 : 256;
  e.routing.chosen = 6;
  e.tokens = tokens;
  e.hidden = pro ? 7168 : 4096;
  e.expert_hidden = pro ? 3072 : 2048;
  e.dispatch_bytes = e.hidden * (1 + 1.0 / 32);
  e.combine_bytes = 2.0 * e.hidden;
  e.dtype = "fp8";
  e.kernels = expert_kernels("megamoe", ExpertMode::Fused);
  return e;
}
}  // namespace

TEST_CASE("fused report", "[.report]") {
  const double measured[2][4] = {{56.5, 146.5, 1283.1, 4855.5}, {108.1, 369.6, 2818.5, 10655.2}};
  const Cluster cluster(io::load_topology("dgx-b200"));
  for (bool pro : {false, true}) {
    int i = 0;
    for (std::uint32_t tokens : {1, 512, 8192, 32768}) {
      ExpertExchange e = v4(pro, tokens);
      e.routing.sampled = tokens == 1;
      const ExpertPlan plan = expert_plan(cluster, e, CollectiveOp::MoeFused, 8);
      const double us = to_microseconds(plan.plan.alone);
      fmt::print("{} {}: {:.1f} us vs {:.1f} ({:+.1f} %) start {:.1f} [{}]\n", pro, tokens, us,
                 measured[pro][i], 100 * (us / measured[pro][i] - 1),
                 to_microseconds(plan.plan.startup), plan.plan.bottleneck);
      ++i;
    }
  }
}
