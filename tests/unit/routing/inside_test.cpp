// Paths inside a node.

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/routing/router.hpp"
#include "route_laws.hpp"
#include "support/topologies.hpp"

using namespace flyover;
using namespace flyover::literals;
using namespace flyover::test;
using Catch::Matchers::Equals;
using Shares = std::map<std::string, double>;

TEST_CASE("a GPU reaches itself over nothing", "[routing]") {
  const Topology topology = cluster(switched_node(), 1, FabricKind::None);
  const Router router(topology, {});
  const Route route = router.route(3, 3);
  CHECK(route.hops.empty());
  CHECK(route.kind == PathKind::Self);
  CHECK(route.latency == 0ns);
  CHECK(router.path_kind(3, 3) == PathKind::Self);
}

TEST_CASE("bytes are striped over NVSwitches in proportion to their lanes", "[routing]") {
  const Topology topology = cluster(switched_node(), 1, FabricKind::None);
  const Router router(topology, {});
  const Route route = router.route(0, 7);
  CHECK(route.kind == PathKind::ScaleUp);
  CHECK(router.path_kind(0, 7) == PathKind::ScaleUp);
  CHECK(route.latency == 400ns);
  CHECK(route.switch_hops == 0);
  CHECK_FALSE(route.relayed);
  CHECK(by_name(topology, route) == Shares{{"node0/gpu0 -> node0/nvswitch0", 5.0 / 18},
                                           {"node0/gpu0 -> node0/nvswitch1", 4.0 / 18},
                                           {"node0/gpu0 -> node0/nvswitch2", 4.0 / 18},
                                           {"node0/gpu0 -> node0/nvswitch3", 5.0 / 18},
                                           {"node0/nvswitch0 -> node0/gpu7", 5.0 / 18},
                                           {"node0/nvswitch1 -> node0/gpu7", 4.0 / 18},
                                           {"node0/nvswitch2 -> node0/gpu7", 4.0 / 18},
                                           {"node0/nvswitch3 -> node0/gpu7", 5.0 / 18}});
}

TEST_CASE("stripes go over the remaining NVSwitches when one is down", "[routing]") {
  Topology topology = cluster(switched_node(), 1, FabricKind::None);
  take_down(topology, "node0/nvswitch1");
  const Router router(topology, {});
  const Shares shares = by_name(topology, router.route(2, 3));
  CHECK(shares.size() == 6);
  CHECK(shares.at("node0/gpu2 -> node0/nvswitch0") == Approx(5.0 / 14).epsilon(1e-12));
  CHECK(shares.at("node0/gpu2 -> node0/nvswitch2") == Approx(4.0 / 14).epsilon(1e-12));
}

TEST_CASE("a stripe is as wide as the narrower of its lanes up and down", "[routing]") {
  Topology topology = cluster(switched_node(), 1, FabricKind::None);
  scale_bandwidth(topology, "node0/nvswitch0", "node0/gpu1", 0.2);
  const Router router(topology, {});
  const Shares shares = by_name(topology, router.route(0, 1));
  CHECK(shares.at("node0/gpu0 -> node0/nvswitch0") == Approx(1.0 / 14).epsilon(1e-12));
  CHECK(shares.at("node0/nvswitch3 -> node0/gpu1") == Approx(5.0 / 14).epsilon(1e-12));
  // The way back is as it was.
  CHECK(by_name(topology, router.route(1, 0)).at("node0/gpu1 -> node0/nvswitch0") ==
        Approx(5.0 / 18).epsilon(1e-12));
}

TEST_CASE("GPUs on two boards of switches talk over the trunks", "[routing]") {
  Sketch sketch;
  sketch.node("two-boards");
  const VertexId a = sketch.add(VertexKind::Gpu, "a"), b = sketch.add(VertexKind::Gpu, "b");
  for (const char* name : {"0", "1"}) {
    const VertexId low = sketch.add(VertexKind::NvSwitch, std::string("low") + name);
    const VertexId high = sketch.add(VertexKind::NvSwitch, std::string("high") + name);
    sketch.cable(a, low, LinkKind::NvLink, 25_GBps, 100ns);
    sketch.cable(low, high, LinkKind::NvLink, 200_GBps, 100ns);
    sketch.cable(high, b, LinkKind::NvLink, 25_GBps, 100ns);
  }
  const Topology topology = sketch.build();
  const Route route = Router(topology, {}).route(0, 1);
  CHECK(broken_law(topology, route, 0, 1) == "");
  CHECK(route.hops.size() == 6);
  CHECK(route.latency == 300ns);
  for (const Hop& hop : route.hops) CHECK(hop.share == 0.5);
}

TEST_CASE("GPUs of a mesh use the link between them", "[routing]") {
  const Topology topology = cluster(mesh_node(), 1, FabricKind::None);
  const Route route = Router(topology, {}).route(2, 5);
  CHECK(by_name(topology, route) == Shares{{"node0/gpu2 -> node0/gpu5", 1.0}});
  CHECK(route.kind == PathKind::ScaleUp);
  CHECK(route.latency == 200ns);
}

TEST_CASE("GPUs of a cube mesh without a link between them go over PCIe", "[routing]") {
  Topology topology = cluster(cube_mesh_node(), 1, FabricKind::None);
  const Route direct = Router(topology, {}).route(0, 4);
  CHECK(direct.kind == PathKind::ScaleUp);
  const Route route = Router(topology, {}).route(0, 5);
  CHECK(route.kind == PathKind::Pcie);
  CHECK_FALSE(route.relayed);

  SECTION("and over the GPUs between them when that is the only way") {
    for (const char* s : {"0", "1", "2", "3"})
      take_down(topology, std::string("node0/pcie-switch") + s);
    const Router router(topology, {});
    const Route relayed = router.route(0, 5);
    CHECK(relayed.kind == PathKind::ScaleUp);
    CHECK(relayed.relayed);
    CHECK(relayed.latency == 400ns);
    CHECK(broken_law(topology, relayed, 0, 5) == "");
    // Over GPU 1 (one lane, then two) and GPU 4 (two, then one): each is one lane wide.
    CHECK(by_name(topology, relayed) == Shares{{"node0/gpu0 -> node0/gpu1", 0.5},
                                               {"node0/gpu0 -> node0/gpu4", 0.5},
                                               {"node0/gpu1 -> node0/gpu5", 0.5},
                                               {"node0/gpu4 -> node0/gpu5", 0.5}});
  }
}

TEST_CASE("without scale-up links bytes take the PCIe tree", "[routing]") {
  const Topology topology = cluster(pcie_node(), 1, FabricKind::None);
  const Router router(topology, {});
  CHECK(router.path_kind(0, 1) == PathKind::Pcie);
  CHECK(by_name(topology, router.route(0, 3)) == Shares{{"node0/gpu0 -> node0/pcie-switch0", 1.0},
                                                        {"node0/pcie-switch0 -> node0/gpu3", 1.0}});
  const Route far = router.route(0, 7);
  CHECK(by_name(topology, far) == Shares{{"node0/gpu0 -> node0/pcie-switch0", 1.0},
                                         {"node0/pcie-switch0 -> node0/cpu0", 1.0},
                                         {"node0/cpu0 -> node0/cpu1", 1.0},
                                         {"node0/cpu1 -> node0/pcie-switch1", 1.0},
                                         {"node0/pcie-switch1 -> node0/gpu7", 1.0}});
  CHECK(far.latency == 5 * 300ns);
}

TEST_CASE("GPUs of a node never talk over NICs", "[routing]") {
  Topology topology = cluster(pcie_node(), 2, FabricKind::SingleSwitch);
  take_down(topology, "node0/cpu0", "node0/cpu1");
  const Router router(topology, {});
  CHECK(router.route(0, 3).kind == PathKind::Pcie);
  CHECK_THROWS_WITH(router.route(0, 7),
                    Equals("node0/gpu0 and node0/gpu7 cannot talk: inside their node neither "
                           "scale-up links nor PCIe in service join them"));
  CHECK_THROWS_AS(router.path_kind(0, 7), SimulationError);
}

TEST_CASE("a GPU that is out of service is named", "[routing]") {
  Topology topology = cluster(switched_node(), 2, FabricKind::SingleSwitch);
  take_down(topology, "node0/gpu3");
  const Router router(topology, {});
  CHECK_THROWS_WITH(router.route(0, 3), Equals("node0/gpu0 and node0/gpu3 cannot talk: node0/gpu3 "
                                               "is out of service"));
  CHECK_THROWS_WITH(router.route(3, 9), Equals("node0/gpu3 and node1/gpu1 cannot talk: node0/gpu3 "
                                               "is out of service"));
}

TEST_CASE("a rank that is not there is a broken promise", "[routing]") {
  const Topology topology = cluster(switched_node(), 1, FabricKind::None);
  const Router router(topology, {});
  CHECK_THROWS_AS(router.route(0, 8), InternalError);
  CHECK_THROWS_AS(router.nics(8), InternalError);
}

TEST_CASE("a fault in one node leaves its equals alone", "[routing]") {
  Topology topology = cluster(switched_node(), 3, FabricKind::SingleSwitch);
  take_down(topology, "node1/nvswitch0");
  const Router router(topology, {});
  CHECK(router.route(0, 1).hops.size() == 8);
  CHECK(router.route(8, 9).hops.size() == 6);
  CHECK(router.route(16, 17).hops.size() == 8);
}

TEST_CASE("in-switch reduction uses the switches by their lanes", "[routing]") {
  Topology topology = cluster(switched_node(), 2, FabricKind::SingleSwitch);

  SECTION("5:4:4:5, up and down") {
    const Router router(topology, {});
    CHECK(router.has_in_switch_reduction(9));
    const Route up = router.to_switch(9), down = router.from_switch(9);
    CHECK(up.latency == 200ns);
    CHECK(up.kind == PathKind::ScaleUp);
    CHECK(by_name(topology, up).at("node1/gpu1 -> node1/nvswitch0") ==
          Approx(5.0 / 18).epsilon(1e-12));
    CHECK(by_name(topology, up).at("node1/gpu1 -> node1/nvswitch1") ==
          Approx(4.0 / 18).epsilon(1e-12));
    CHECK(by_name(topology, down).at("node1/nvswitch3 -> node1/gpu1") ==
          Approx(5.0 / 18).epsilon(1e-12));
    double sum = 0;
    for (const Hop& hop : down.hops) sum += hop.share;
    CHECK(sum == Approx(1).epsilon(1e-12));
  }
  SECTION("one GPU's narrow lanes hold for all of its node") {
    scale_bandwidth(topology, "node0/gpu3", "node0/nvswitch0", 0.2);
    const Router router(topology, {});
    CHECK(by_name(topology, router.to_switch(0)).at("node0/gpu0 -> node0/nvswitch0") ==
          Approx(1.0 / 14).epsilon(1e-12));
    CHECK(by_name(topology, router.to_switch(8)).at("node1/gpu0 -> node1/nvswitch0") ==
          Approx(5.0 / 18).epsilon(1e-12));
  }
  SECTION(
      "a switch that does not reach all GPUs is left out, one GPU out of service is not asked") {
    take_down(topology, "node0/gpu3", "node0/nvswitch0");
    CHECK(Router(topology, {}).to_switch(0).hops.size() == 3);
    take_down(topology, "node0/gpu3");
    CHECK(Router(topology, {}).to_switch(0).hops.size() == 4);
  }
  SECTION("none is left") {
    for (const char* s : {"0", "1", "2", "3"})
      take_down(topology, std::string("node0/nvswitch") + s);
    const Router router(topology, {});
    CHECK_FALSE(router.has_in_switch_reduction(0));
    CHECK(router.has_in_switch_reduction(8));
    CHECK_THROWS_WITH(router.to_switch(2),
                      Equals("node0/gpu2 cannot reduce in its node's switches: "
                             "no switch in service reaches every GPU"));
    CHECK_THROWS_AS(router.from_switch(2), SimulationError);
  }
}

TEST_CASE("switches that cannot reduce are no in-switch reduction", "[routing]") {
  NodeSpec spec = switched_node();
  spec.in_switch_reduction = false;
  const Topology topology = cluster(spec, 1, FabricKind::None);
  CHECK_FALSE(Router(topology, {}).has_in_switch_reduction(0));
  const Topology mesh = cluster(mesh_node(), 1, FabricKind::None);
  CHECK_FALSE(Router(mesh, {}).has_in_switch_reduction(0));
}
