#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

namespace {

FabricSpec torus(std::vector<std::uint32_t> extents) {
  FabricSpec spec = fabric(FabricKind::Torus);
  spec.torus = std::move(extents);
  spec.link_bandwidth = 50_GBps;
  return spec;
}

NodeSpec chip() {
  NodeSpec node = single();
  node.nics = 0;
  return node;
}

std::uint32_t nodes_of(const FabricSpec& spec) {
  std::uint32_t nodes = 1;
  for (const std::uint32_t extent : spec.torus) nodes *= extent;
  return nodes;
}

}  // namespace

TEST_CASE("a torus of chips has one cable per chip and dimension", "[topology][torus]") {
  const FabricSpec spec = torus({4, 3, 5});
  const Topology topology = build_topology(cluster(chip(), 60, spec));
  CHECK(topology.vertices.size() == 60);
  CHECK(cables(topology, LinkKind::Torus) == 180);
  CHECK(topology.torus == spec.torus);
  CHECK(topology.routing == RoutingPolicy::DimensionOrder);
  // Router 0 = (0,0,0) next to x+1, x-1, y+1, y-1, z+1, z-1.
  std::vector<std::uint32_t> next;
  for (const LinkId id : topology.out(topology.gpus[0])) {
    next.push_back(static_cast<std::uint32_t>(topology.links[id].to));
  }
  std::ranges::sort(next);
  CHECK(next == std::vector<std::uint32_t>{1, 3, 4, 8, 12, 48});
}

TEST_CASE("a ring of two has one cable, a ring of one none", "[topology][torus]") {
  CHECK(cables(build_topology(cluster(chip(), 4, torus({2, 2}))), LinkKind::Torus) == 4);
  CHECK(cables(build_topology(cluster(chip(), 3, torus({3, 1}))), LinkKind::Torus) == 3);
  CHECK(cables(build_topology(cluster(chip(), 1, torus({1, 1, 1}))), LinkKind::Torus) == 0);
}

TEST_CASE("the diameter of a torus is half of each extent, added up", "[topology][torus]") {
  const FabricSpec spec =
      GENERATE(torus({4, 4}), torus({5, 3}), torus({4, 4, 4}), torus({2, 6, 3}));
  std::uint32_t diameter = 0;
  for (const std::uint32_t extent : spec.torus) diameter += extent / 2;
  CHECK(analyse(build_topology(cluster(chip(), nodes_of(spec), spec))).diameter == diameter);
  NodeSpec node = hgx();
  CHECK(analyse(build_topology(cluster(node, nodes_of(spec), spec))).diameter == diameter + 2);
}

TEST_CASE("two planes of cables cross the middle of a torus", "[topology][torus]") {
  // The halves are cut across the last, longest dimension.
  const FabricSpec spec = GENERATE(torus({4, 4, 4}), torus({3, 3, 6}), torus({4, 8}));
  const TopologyInfo info = analyse(build_topology(cluster(chip(), nodes_of(spec), spec)));
  std::uint32_t plane = 1;
  for (std::size_t d = 0; d + 1 < spec.torus.size(); ++d) plane *= spec.torus[d];
  CHECK(info.bisection.per_second() == 2 * plane * 50e9);
}

TEST_CASE("nodes with NICs join a torus through a router each", "[topology][torus]") {
  const Topology topology = build_topology(cluster(hgx(), 8, torus({2, 2, 2})));
  CHECK(count(topology, VertexKind::Leaf) == 8);
  CHECK(cables(topology, LinkKind::HostLeaf) == 64);
  CHECK(cables(topology, LinkKind::Torus) == 12);
  CHECK_FALSE(find_disconnected(topology));
}

TEST_CASE("a torus that does not fit its nodes is refused", "[topology][torus]") {
  const auto error = [](const NodeSpec& node, std::uint32_t nodes, const FabricSpec& spec) {
    return input_error([&] { (void)build_topology(cluster(node, nodes, spec)); });
  };
  const std::string expected =
      "fabric \"torus\": expected two or three extents whose product is the number of nodes (8), "
      "got "
      "[";
  CHECK(error(chip(), 8, torus({2, 2})) == expected + "2, 2]");
  CHECK(error(chip(), 8, torus({8})) == expected + "8]");
  CHECK(error(chip(), 8, torus({})) == expected + "]");
  CHECK(error(chip(), 8, torus({2, 0, 4})) == expected + "2, 0, 4]");
  CHECK(error(chip(), 8, torus({4294967295U, 4294967295U, 8})) ==
        expected + "4294967295, 4294967295, 8]");
  NodeSpec node = hgx();
  node.nics = 0;
  CHECK(error(node, 8, torus({2, 4})) ==
        "fabric \"torus\": node type \"hgx\" has 8 GPUs and no NICs; a torus without NICs joins "
        "nodes of one GPU");
  ClusterSpec mixed = cluster(chip(), 4, torus({2, 4}));
  mixed.nodes.push_back({single(), 4});
  CHECK(input_error([&] { (void)build_topology(mixed); }) ==
        "fabric \"torus\": either all nodes have NICs or none has");
  FabricSpec unrated = torus({2, 4});
  unrated.link_bandwidth = Bandwidth{};
  CHECK(error(chip(), 8, unrated) == "fabric \"torus\": its cables need a bandwidth");
}

}  // namespace flyover::test
