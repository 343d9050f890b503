#include <set>

#include <catch2/catch.hpp>

#include "unit/collective/shapes.hpp"

namespace flyover {
namespace {

TEST_CASE("ranks are sorted by domain in order of first appearance", "[collective]") {
  const GroupShape shape{.domain = {7, 3, 7, 9, 3, 7}, .rail = {0, 0, 1, 0, 1, 2}};
  CHECK(by_domain(shape) == std::vector<std::vector<std::uint32_t>>{{0, 2, 5}, {1, 4}, {3}});
  CHECK(by_domain({}).empty());
}

TEST_CASE("channels enter on the rails that all domains have", "[collective]") {
  using Rails = std::vector<std::vector<std::uint32_t>>;
  const auto rails = [](std::vector<std::uint32_t> domain, std::vector<std::uint32_t> rail) {
    return entry_rails({.domain = std::move(domain), .rail = std::move(rail)});
  };
  CHECK(rails({0, 0, 0, 1, 1, 1}, {0, 1, 2, 2, 1, 0}) == Rails{{0, 1, 2}, {0, 1, 2}});
  CHECK(rails({0, 0, 0, 1, 1}, {0, 1, 2, 1, 2}) == Rails{{1, 2}, {1, 2}});
  // GPUs that share a NIC, and one that uses its neighbour's: its own is down.
  CHECK(rails({0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 0, 0, 0, 1}) == Rails{{0, 1}, {0, 1}});
  CHECK(rails({0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 0, 2}) == Rails{{0, 2}, {0, 2}});
  // Nothing in common: as many of each as the domain with the fewest has.
  CHECK(rails({0, 0, 0, 1, 1}, {0, 1, 2, 3, 4}) == Rails{{0, 1}, {3, 4}});
}

TEST_CASE("algorithm names are read back, in NCCL's spelling too", "[collective]") {
  for (const Algorithm& algorithm : algorithms()) {
    CHECK(algorithm_id(to_string(algorithm.id)) == algorithm.id);
  }
  CHECK(algorithm_id("Ring") == AlgorithmId::Ring);
  CHECK(algorithm_id("NVLS") == AlgorithmId::Nvls);
  CHECK(algorithm_id("NVLSTree") == AlgorithmId::NvlsTree);
  CHECK(algorithm_id("nvls_tree") == AlgorithmId::NvlsTree);
  CHECK(algorithm_id("CollnetDirect") == AlgorithmId::CollnetDirect);
  CHECK(algorithm_id("COLLNET_CHAIN") == AlgorithmId::CollnetChain);
  CHECK(algorithm_id("PAT") == AlgorithmId::Pat);
  CHECK(algorithm_id("hierarchical") == AlgorithmId::Hierarchical);
  CHECK(algorithm_id("allpairs") == AlgorithmId::AllPairs);
  CHECK(algorithm_id("one_shot") == AlgorithmId::OneShot);
  CHECK_FALSE(algorithm_id("rings"));
  CHECK_FALSE(algorithm_id(""));
}

TEST_CASE("the table has each algorithm of a collective once, each with a line of summary",
          "[collective]") {
  std::set<std::pair<CollectiveOp, AlgorithmId>> seen;
  for (const Algorithm& algorithm : algorithms()) {
    CHECK(seen.emplace(algorithm.op, algorithm.id).second);
    CHECK_FALSE(algorithm.summary.empty());
    CHECK(find_algorithm(algorithm.op, algorithm.id) == &algorithm);
  }
  CHECK(find_algorithm(CollectiveOp::Barrier, AlgorithmId::Nvls) == nullptr);
  for (const std::string& name : collective_op_names()) {
    CAPTURE(name);
    const auto of_op = algorithms(*collective_op(name));
    CHECK_FALSE(of_op.empty());
    for (const Algorithm* algorithm : of_op) CHECK(to_string(algorithm->op) == name);
  }
}

}  // namespace
}  // namespace flyover
