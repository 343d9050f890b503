#include "flyover/topology/builders.hpp"

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

TEST_CASE("nodes of several kinds make unequal islands of one cluster", "[topology][builders]") {
  ClusterSpec spec = cluster(hgx(), 2, fabric(FabricKind::RailOptimized));
  NodeSpec small = hgx();
  small.name = "small";
  small.gpus = 4;
  small.nics = 2;
  small.gpu.name = "A100";
  small.notes = {"made up"};
  spec.nodes.push_back({small, 3});
  spec.nodes.push_back({hgx(), 1});

  const Topology topology = build_topology(spec);

  CHECK(topology.nodes.size() == 6);
  CHECK(topology.gpus.size() == 2 * 8 + 3 * 4 + 8);
  CHECK(topology.gpu_models.size() == 2);
  CHECK(topology.nodes[NodeId{1}].type == 0);
  CHECK(topology.nodes[NodeId{2}].type == 1);
  CHECK(topology.nodes[NodeId{5}].type == 0);
  CHECK(topology.gpu_model(16).name == "A100");
  CHECK(topology.notes == std::vector<std::string>{"small: made up"});
  CHECK(count(topology, VertexKind::Leaf) == 8);
  CHECK(cables(topology, LinkKind::HostLeaf) == 16 + 6 + 8);
  CHECK_FALSE(find_disconnected(topology));
}

TEST_CASE("a cluster says how it was built", "[topology][builders]") {
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.preset = "ndr";
  spec.routing = RoutingPolicy::Ecmp;
  spec.seed = 7;
  const Topology topology = build_topology(cluster(hgx(), 2, spec));
  CHECK(topology.name == "test");
  CHECK(topology.fabric == "rail-optimized");
  CHECK(topology.fabric_preset == "ndr");
  CHECK(topology.routing == RoutingPolicy::Ecmp);
  CHECK(topology.routing_seed == 7);
  CHECK(topology.nodes[NodeId{0}].preset == "hgx");
}

TEST_CASE("nodes that nothing joins are legal only without a fabric", "[topology][builders]") {
  NodeSpec node = hgx();
  node.nics = 0;
  CHECK(build_topology(cluster(node, 2, fabric(FabricKind::None))).nodes.size() == 2);
  CHECK(build_topology(cluster(node, 1, fabric(FabricKind::RailOptimized))).nodes.size() == 1);
  CHECK(input_error([&] {
          (void)build_topology(cluster(node, 2, fabric(FabricKind::RailOptimized)));
        }) == "fabric \"rail-optimized\": node type \"hgx\" has no NICs to join it by");
}

TEST_CASE("a cluster needs nodes", "[topology][builders]") {
  CHECK(input_error([] { (void)build_topology(cluster(hgx(), 0, fabric(FabricKind::None))); }) ==
        "node \"hgx\": expected at least one of them");
  CHECK(input_error([] { (void)build_topology(ClusterSpec{}); }) == "expected at least one node");
}

}  // namespace flyover::test
