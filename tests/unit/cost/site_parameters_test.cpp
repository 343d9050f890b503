// Does a site change what it says that it changes, and a neutral one nothing?

#include <algorithm>

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::cost_test {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

SiteParameters with(SiteParameter SiteParameters::*member, double value) {
  SiteParameters site;
  (site.*member).value = value;
  return site;
}

double seconds(const Bench& bench, Bytes bytes, const SiteParameters& site) {
  bench.model->set_site(site);
  return to_seconds(bench.choose(CollectiveOp::AllReduce, bytes).plan.alone);
}

}  // namespace

TEST_CASE("the table names every site parameter once, and the defaults are neutral", "[cost]") {
  CHECK(site_parameters().size() == 8);
  CHECK(site_parameters().front().name == "launch");
  CHECK(neutral(SiteParameters{}));
  for (const SiteParameterInfo& info : site_parameters()) {
    CAPTURE(info.name);
    CHECK(!neutral(with(info.member, 1.5)));
    CHECK((SiteParameters{}.*info.member).value == (info.seconds ? 0 : 1));
  }
}

TEST_CASE("a neutral site changes no time, also after another one", "[cost]") {
  const Bench bench(dgx_h100(), 2, "nccl");
  SiteParameters other;
  for (const SiteParameterInfo& info : site_parameters()) (other.*info.member).value = 1.25;
  for (const Bytes size : {8_B, 256_KiB, 4_MiB, 1_GiB}) {
    bench.model->set_site({});
    const Choice before = bench.choose(CollectiveOp::AllReduce, size);
    bench.model->set_site(other);
    CHECK(bench.choose(CollectiveOp::AllReduce, size).plan.alone != before.plan.alone);
    bench.model->set_site({});
    const Choice after = bench.choose(CollectiveOp::AllReduce, size);
    CHECK(after.plan.alone == before.plan.alone);
    CHECK(after.plan.bottleneck == before.plan.bottleneck);
    CHECK(after.plan.rate_cap == before.plan.rate_cap);
    CHECK(std::ranges::equal(*after.plan.loads, *before.plan.loads,
                             [](Hop a, Hop b) { return a.link == b.link && a.share == b.share; }));
  }
}

TEST_CASE("a model of a calibrated library is the model with its site set", "[cost]") {
  Bench bench(dgx_h100(), 2, "nccl");
  bench.library.site.network_bandwidth.value = 0.9;
  bench.library.site.launch.value = 2e-6;
  const CostModel made(bench.topology, *bench.router, bench.library);
  bench.model->set_site(bench.library.site);
  const CollectiveCall call = bench.call(CollectiveOp::AllReduce, 64_MiB);
  CHECK(made.choose(call).plan.alone == bench.model->choose(call).plan.alone);
}

TEST_CASE("launch adds to every call, and may take away, but not below nothing", "[cost]") {
  const std::string library = GENERATE("nccl", "ideal");
  CAPTURE(library);
  const Bench bench(dgx_h100(), 2, library);
  for (const Bytes size : {8_B, 64_MiB}) {
    const double before = seconds(bench, size, {});
    CHECK_THAT(seconds(bench, size, with(&SiteParameters::launch, 3e-6)) - before,
               WithinAbs(3e-6, 2e-12));
  }
  const double least = seconds(bench, 8_B, with(&SiteParameters::launch, -1));
  CHECK(least >= 0);
  CHECK(least < 1e-9);
}

TEST_CASE("latencies scale the hops of their own links", "[cost]") {
  const Bench two(dgx_h100(), 2, "nccl", {{"NCCL_ALGO", "Tree"}, {"NCCL_PROTO", "LL"}});
  for (const auto member : {&SiteParameters::domain_latency, &SiteParameters::network_latency}) {
    const double one = seconds(two, 8_B, {});
    const double twice = seconds(two, 8_B, with(member, 2));
    const double thrice = seconds(two, 8_B, with(member, 3));
    CHECK(twice > one + 1e-6);
    CHECK_THAT(thrice - twice, WithinRel(twice - one, 1e-4));
  }
  const Bench single(dgx_h100(), 1, "nccl");
  CHECK(seconds(single, 8_B, with(&SiteParameters::network_latency, 3)) ==
        seconds(single, 8_B, {}));
}

TEST_CASE("the pipeline's size says where half of its time is reached", "[cost]") {
  const Bench bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  const double plain = seconds(bench, 1_GiB, {});
  const double fill = seconds(bench, 1_GiB, with(&SiteParameters::pipeline, 2)) - plain;
  CHECK(fill > 0);
  SiteParameters late = with(&SiteParameters::pipeline_size, 1e9);  // Never reached.
  CHECK_THAT(plain - seconds(bench, 1_GiB, late), WithinRel(fill, 0.05));
}

TEST_CASE("bandwidths scale links of their own, in the rate and in the loads", "[cost]") {
  const Bench bench(dgx_h100(), 2, "nccl", {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  bench.model->set_site({});
  const CollectivePlan plain = bench.choose(CollectiveOp::AllReduce, 16_GiB).plan;
  bench.model->set_site(with(&SiteParameters::network_bandwidth, 0.5));
  const CollectivePlan slow = bench.choose(CollectiveOp::AllReduce, 16_GiB).plan;
  CHECK_THAT(to_seconds(slow.alone - slow.startup),
             WithinRel(2 * to_seconds(plain.alone - plain.startup), 1e-6));
  REQUIRE(slow.loads->size() == plain.loads->size());
  std::size_t network_links = 0;
  for (std::size_t i = 0; i < plain.loads->size(); ++i) {
    const LinkKind kind = bench.topology.links[(*plain.loads)[i].link].kind;
    const bool scale_up = kind == LinkKind::NvLink || kind == LinkKind::Pcie;
    network_links += scale_up ? 0U : 1U;
    CHECK_THAT((*slow.loads)[i].share / (*plain.loads)[i].share,
               WithinRel(scale_up ? 1.0 : 2.0, 1e-9));
  }
  CHECK(network_links > 0);

  const Bench single(dgx_h100(), 1, "nccl");
  const double before = single.busbw(CollectiveOp::AllReduce, 16_GiB);
  single.model->set_site(with(&SiteParameters::domain_bandwidth, 0.9));
  CHECK_THAT(single.busbw(CollectiveOp::AllReduce, 16_GiB) / before, WithinRel(0.9, 0.01));
}

TEST_CASE("what protocols move scales for LL and LL128 alone", "[cost]") {
  const auto slowdown = [](const std::string& protocol) {
    const Bench bench(dgx_h100(), 1, "nccl", {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", protocol}});
    // Low enough that no link limits them.
    return seconds(bench, 4_GiB, with(&SiteParameters::protocol_bandwidth, 0.25)) /
           seconds(bench, 4_GiB, with(&SiteParameters::protocol_bandwidth, 0.5));
  };
  CHECK_THAT(slowdown("LL"), WithinRel(2.0, 0.02));
  CHECK_THAT(slowdown("LL128"), WithinRel(2.0, 0.02));
  CHECK(slowdown("Simple") == 1);
}

}  // namespace flyover::cost_test
