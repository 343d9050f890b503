#include <ctime>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "support/expert_cluster.hpp"

using namespace flyover;
using namespace test;

TEST_CASE("speed report", "[.report]") {
  const auto cpu = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (bool sampled : {false, true}) {
    const Cluster cluster(h800_planes(40));
    ExpertExchange e = deepep_low_latency();
    e.routing.experts = 320;
    e.routing.sampled = sampled;
    for (CollectiveOp op : {CollectiveOp::MoeDispatch, CollectiveOp::MoeCombine}) {
      const double t0 = cpu();
      const ExpertPlan plan = expert_plan(cluster, e, op, 320);
      fmt::print("EP320 LL sampled {} {:.3f} s  {:.1f} us [{}] loads {} {}\n", sampled, cpu() - t0,
                 to_microseconds(plan.plan.alone), plan.plan.bottleneck, plan.plan.loads->size(), plan.balanced);
    }
  }
  for (bool sampled : {false, true}) {
    const Cluster cluster(h800_planes(8));
    ExpertExchange e = deepep_normal(64);
    e.routing.sampled = sampled;
    for (CollectiveOp op : {CollectiveOp::MoeDispatch, CollectiveOp::MoeCombine}) {
      const double t0 = cpu();
      const ExpertPlan plan = expert_plan(cluster, e, op, 64);
      const double t1 = cpu();
      const std::vector<std::uint32_t> domain = [&] {
        std::vector<std::uint32_t> d;
        for (std::uint32_t r = 0; r < 64; ++r) d.push_back(r / 8);
        return d;
      }();
      const ExpertCopies copies = expert_copies(e, expert_group(domain));
      fmt::print("EP64 normal sampled {} {:.3f} s of which copies {:.3f} {:.1f} us [{}] loads {}\n", sampled, t1 - t0, cpu()-t1,
                 to_microseconds(plan.plan.alone), plan.plan.bottleneck, plan.plan.loads->size());
    }
  }
  for (bool sampled : {false, true}) {
    const Cluster cluster(io::load_topology("h100-superpod:40"));
    ExpertExchange e = deepep_low_latency();
    e.routing.experts = 320;
    e.routing.sampled = sampled;
      const double t0 = cpu();
      const ExpertPlan plan = expert_plan(cluster, e, CollectiveOp::MoeDispatch, 320);
      fmt::print("superpod EP320 LL sampled {} {:.3f} s  {:.1f} us [{}] loads {} {}\n", sampled, cpu() - t0,
                 to_microseconds(plan.plan.alone), plan.plan.bottleneck, plan.plan.loads->size(), plan.balanced);
  }
}
