#include <catch2/catch.hpp>

#include "clusters.hpp"
#include "flyover/base/error.hpp"

namespace flyover::cost_test {

using Catch::Matchers::WithinRel;

TEST_CASE("the family of a link class is what stands before its generation", "[cost][library]") {
  CHECK(link_family("nvlink4") == "nvlink");
  CHECK(link_family("xgmi-mi300") == "xgmi");
  CHECK(link_family("pcie") == "pcie");
}

TEST_CASE("a scope covers what each of its lists holds", "[cost][library]") {
  const LinkClass nvlink{"nvlink4", "nvlink"};
  RuleQuery query{
      CollectiveOp::AllReduce, AlgorithmId::Ring, Protocol::LL, "hopper", "H100-SXM", &nvlink, 2};
  Scope scope;
  CHECK(covers(scope, query));

  SECTION("by class or by family") {
    scope.links = {"nvlink4"};
    CHECK(covers(scope, query));
    scope.links = {"nvlink"};
    CHECK(covers(scope, query));
    scope.links = {"nvlink3", "pcie"};
    CHECK_FALSE(covers(scope, query));
    query.link = nullptr;
    CHECK_FALSE(covers(scope, query));
  }
  SECTION("by domains, both ends included") {
    scope.min_domains = 2;
    scope.max_domains = 2;
    CHECK(covers(scope, query));
    scope.max_domains = 1;
    CHECK_FALSE(covers(scope, query));
    scope.min_domains = 3;
    scope.max_domains = 9;
    CHECK_FALSE(covers(scope, query));
  }
  SECTION("by operation, algorithm, protocol and architecture") {
    scope.operations = {CollectiveOp::AllGather};
    CHECK_FALSE(covers(scope, query));
    scope.operations = {CollectiveOp::AllReduce};
    scope.algorithms = {AlgorithmId::Tree};
    CHECK_FALSE(covers(scope, query));
    scope.algorithms.clear();
    scope.protocols = {Protocol::Simple};
    CHECK_FALSE(covers(scope, query));
    scope.protocols.clear();
    scope.architectures = {"ampere"};
    CHECK_FALSE(covers(scope, query));
    scope.architectures = {"ampere", "hopper"};
    CHECK(covers(scope, query));
  }
}

TEST_CASE("a scope can ask for a number of members in a domain", "[cost][library]") {
  Scope rack;
  rack.min_members = 33;
  RuleQuery query;
  query.members = 32;
  CHECK_FALSE(covers(rack, query));
  query.members = 33;
  CHECK(covers(rack, query));
}

TEST_CASE("an efficiency goes with the logarithm of the members between its points",
          "[cost][library]") {
  EfficiencyRule rule;
  rule.points = {{8, 0.6}, {32, 0.5}};
  CHECK(share_at(rule, 2) == 0.6);
  CHECK(share_at(rule, 8) == 0.6);
  CHECK_THAT(share_at(rule, 16), WithinRel(0.55, 1e-12));
  CHECK(share_at(rule, 32) == 0.5);
  CHECK(share_at(rule, 72) == 0.5);
}

TEST_CASE("the library follows the chips", "[cost][library]") {
  CHECK(default_library(cluster(dgx_h100(), 1)) == "nccl");
  CHECK(default_library(cluster(mi300x(), 1)) == "rccl");
  CHECK(default_library(cluster(switched_node({"tpu", "ici", 4, 50_GBps, {1}}), 1)) == "ideal");
}

TEST_CASE("every rule of a shipped library is backed by a source", "[cost][library]") {
  for (const std::string& name : io::library_names()) {
    CAPTURE(name);
    const Library library = load(name);
    const auto backed = [](const auto& rules) {
      return std::ranges::all_of(rules,
                                 [](const auto& rule) { return !rule.evidence.source.empty(); });
    };
    CHECK(backed(library.latencies));
    CHECK(backed(library.efficiencies));
    CHECK(backed(library.caps));
    CHECK(backed(library.dtypes));
    CHECK(backed(library.channels));
    CHECK(backed(library.stacks));
    CHECK(backed(library.networks));
  }
}

}  // namespace flyover::cost_test
