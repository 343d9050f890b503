#include "flyover/topology/analysis.hpp"

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

namespace {

Override down(std::string selector) {
  Override change;
  change.selector = std::move(selector);
  change.up = false;
  return change;
}

double share(const TopologyInfo& info) {
  return info.bisection.per_second() / info.bisection_injection.per_second();
}

}  // namespace

TEST_CASE("counts, tiers and cables are as built", "[topology][analysis]") {
  const Topology topology = build_topology(cluster(hgx(), 2, fabric(FabricKind::RailOptimized)));
  const TopologyInfo info = analyse(topology);
  CHECK(info.vertices.at("node") == 2);
  CHECK(info.vertices.at("gpu") == 16);
  CHECK(info.vertices.at("nvswitch") == 8);
  CHECK(info.vertices.at("leaf") == 8);
  CHECK(info.vertices.at("spine") == 1);
  REQUIRE(info.tiers.size() == 5);
  const TierInfo& nvlink = info.tiers[0];
  CHECK(nvlink.kind == LinkKind::NvLink);
  CHECK(nvlink.cables == 64);
  CHECK(nvlink.per_cable_low == 100_GBps);
  CHECK(nvlink.per_cable_high == 125_GBps);
  CHECK(nvlink.total == Bandwidth{16 * 450e9});
  const TierInfo& uplinks = info.tiers[4];
  CHECK(uplinks.kind == LinkKind::LeafSpine);
  CHECK(uplinks.cables == 16);
  CHECK(uplinks.down == 0);
  CHECK(uplinks.total == Bandwidth{16 * 50e9});
  CHECK(info.oversubscription == std::map<std::string, double>{{"leaf", 1.0}});
  CHECK(info.connected);
}

TEST_CASE("a non-blocking fabric carries what its nodes can inject", "[topology][analysis]") {
  const auto kind =
      GENERATE(FabricKind::SingleSwitch, FabricKind::LeafSpine, FabricKind::FatTree,
               FabricKind::RailOptimized, FabricKind::RailOnly, FabricKind::MultiPlane);
  const auto nodes = GENERATE(2U, 16U, 128U);
  CAPTURE(to_string(kind), nodes);
  const TopologyInfo info = analyse(build_topology(cluster(hgx(), nodes, fabric(kind))));
  CHECK(info.bisection_injection == Bandwidth{nodes / 2 * 400e9});
  CHECK(info.bisection == info.bisection_injection);
}

TEST_CASE("twin planes and three tiers do not block either", "[topology][analysis]") {
  FabricSpec planes = fabric(FabricKind::RailOptimized);
  planes.nic_ports = 2;
  const TopologyInfo twin = analyse(build_topology(cluster(hgx(), 16, planes)));
  CHECK(twin.bisection == Bandwidth{8 * 400e9});
  CHECK(twin.bisection_injection == twin.bisection);
  CHECK(twin.diameter == 4);

  FabricSpec tiers = fabric(FabricKind::FatTree);
  tiers.radix = 16;
  const TopologyInfo three = analyse(build_topology(cluster(hgx(), 128, tiers)));
  CHECK(three.vertices.at("core") == 64);
  CHECK(three.bisection == Bandwidth{64 * 400e9});
  CHECK(three.bisection_injection == three.bisection);
}

TEST_CASE("oversubscription divides the bisection", "[topology][analysis]") {
  FabricSpec spec = fabric(FabricKind::FatTree);
  spec.nodes_per_unit = 4;
  spec.oversubscription = 2;
  const TopologyInfo two = analyse(build_topology(cluster(hgx(), 32, spec)));
  CHECK(two.oversubscription.at("leaf") == 2);
  CHECK(share(two) == 0.5);

  FabricSpec core = fabric(FabricKind::FatTree);
  core.radix = 16;
  core.core_oversubscription = 3;  // 12 ports down, 4 up.
  const TopologyInfo three = analyse(build_topology(cluster(single(), 192, core)));
  CHECK(three.oversubscription.at("leaf") == 1);
  CHECK(three.oversubscription.at("spine") == 3);
  CHECK(share(three) == Approx(1.0 / 3));
}

TEST_CASE("the first half of a node's GPUs reach the others over scale-up links",
          "[topology][analysis]") {
  const auto bisect = [](const NodeSpec& node) {
    return analyse(build_topology(cluster(node, 1, fabric(FabricKind::None))));
  };
  const TopologyInfo switched = bisect(hgx());
  CHECK(switched.bisection == Bandwidth{4 * 450e9});
  CHECK(switched.bisection_injection == Bandwidth{4 * 450e9});
  NodeSpec mesh = hgx();
  mesh.scale_up = ScaleUp::Mesh;
  mesh.mesh_lanes = 1;
  CHECK(bisect(mesh).bisection == Bandwidth{16 * 25e9});
  NodeSpec pcie = hgx();
  pcie.scale_up = ScaleUp::None;
  CHECK(bisect(pcie).bisection == Bandwidth{22e9});  // The link between the sockets.
  NodeSpec pairs = mesh;
  pairs.scale_up = ScaleUp::Pairs;
  CHECK(bisect(pairs).bisection == Bandwidth{22e9});  // No bridge joins the halves.
  CHECK(bisect(single()).bisection == Bandwidth{});
}

TEST_CASE("the diameter counts links between NICs, or GPUs without a fabric",
          "[topology][analysis]") {
  const auto diameter = [](FabricKind kind, std::uint32_t nodes) {
    return analyse(build_topology(cluster(hgx(), nodes, fabric(kind)))).diameter;
  };
  CHECK(diameter(FabricKind::None, 1) == 2);
  CHECK(diameter(FabricKind::SingleSwitch, 4) == 2);
  CHECK(diameter(FabricKind::RailOnly, 4) == 2);
  CHECK(diameter(FabricKind::LeafSpine, 16) == 4);
  CHECK(diameter(FabricKind::RailOptimized, 4) == 4);
  CHECK(diameter(FabricKind::RailOptimized, 512) == 6);
}

TEST_CASE("a cluster is connected when every two GPUs have a path", "[topology][analysis]") {
  Topology topology = build_topology(cluster(hgx(), 3, fabric(FabricKind::RailOnly)));
  CHECK_FALSE(find_disconnected(topology));

  SECTION("a lost NIC is relayed around over NVLink") {
    apply_override(topology, down("nic[node=1,index=0-6]"));
    CHECK_FALSE(find_disconnected(topology));
  }
  SECTION("a node without NICs is alone") {
    apply_override(topology, down("nic[node=1]"));
    const auto apart = find_disconnected(topology);
    REQUIRE(apart);
    CHECK(apart->first == topology.gpus[0]);
    CHECK(apart->second == topology.gpus[8]);
    const TopologyInfo info = analyse(topology);
    CHECK_FALSE(info.connected);
    CHECK(info.disconnected_from == "node0/gpu0");
    CHECK(info.disconnected_to == "node1/gpu0");
  }
  SECTION("the first node may be the one that is alone") {
    apply_override(topology, down("nic[node=0]"));
    const auto apart = find_disconnected(topology);
    REQUIRE(apart);
    CHECK(apart->first == topology.gpus[0]);
    CHECK(apart->second == topology.gpus[8]);
  }
  SECTION("two nodes on different rails do not talk through a third node") {
    apply_override(topology, down("nic[node=0,index=1-7]"));
    apply_override(topology, down("nic[node=2,index=0-6]"));
    const auto apart = find_disconnected(topology);
    REQUIRE(apart);
    CHECK(apart->first == topology.gpus[0]);
    CHECK(apart->second == topology.gpus[16]);
  }
  SECTION("a GPU that is down is out of reach") {
    apply_override(topology, down("gpu[node=2,index=3]"));
    const auto apart = find_disconnected(topology);
    REQUIRE(apart);
    CHECK(apart->second == topology.gpus[19]);
  }
  SECTION("GPUs of a node talk over PCIe when NVLink is gone") {
    apply_override(topology, down("nvswitch"));
    CHECK_FALSE(find_disconnected(topology));
  }
}

TEST_CASE("nodes without a fabric cannot talk", "[topology][analysis]") {
  const Topology topology = build_topology(cluster(hgx(), 2, fabric(FabricKind::None)));
  REQUIRE(find_disconnected(topology));
  CHECK(find_disconnected(topology)->second == topology.gpus[8]);
  CHECK(analyse(topology).bisection == Bandwidth{});
}

TEST_CASE("links that are down carry nothing", "[topology][analysis]") {
  Topology topology = build_topology(cluster(hgx(), 2, fabric(FabricKind::RailOptimized)));
  apply_override(topology, down("nic[node=0,index=0-3]"));
  const TopologyInfo info = analyse(topology);
  CHECK(info.bisection_injection == Bandwidth{4 * 50e9});
  CHECK(info.bisection == Bandwidth{4 * 50e9});
}

TEST_CASE("GPUs of a torus talk through one another", "[topology][analysis]") {
  NodeSpec chip = single();
  chip.nics = 0;
  FabricSpec spec = fabric(FabricKind::Torus);
  spec.torus = {3, 3};
  spec.link_bandwidth = 50_GBps;
  const Topology topology = build_topology(cluster(chip, 9, spec));
  CHECK_FALSE(find_disconnected(topology));
  CHECK(analyse(topology).connected);
}

}  // namespace flyover::test
