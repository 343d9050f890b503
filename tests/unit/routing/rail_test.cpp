// Between nodes: rails, relays (PXN), NICs that are shared, several or down.

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

namespace {

constexpr RouterOptions without_pxn{.pxn = false};

}  // namespace

TEST_CASE("ranks on one rail of one unit meet at its leaf", "[routing]") {
  const Topology topology = cluster(switched_node(), 2, FabricKind::RailOptimized);
  const auto pxn = GENERATE(true, false);
  const Router router(topology, {.pxn = pxn});
  const Route route = router.route(3, 11);
  CHECK(by_name(topology, route) == Shares{{"node0/gpu3 -> node0/pcie-switch1", 1.0},
                                           {"node0/pcie-switch1 -> node0/nic3", 1.0},
                                           {"node0/nic3 -> leaf3", 1.0},
                                           {"leaf3 -> node1/nic3", 1.0},
                                           {"node1/nic3 -> node1/pcie-switch1", 1.0},
                                           {"node1/pcie-switch1 -> node1/gpu3", 1.0}});
  CHECK(route.kind == PathKind::Network);
  CHECK(route.switch_hops == 1);
  CHECK_FALSE(route.relayed);
  CHECK(route.latency == 4 * 300ns + 2 * 500ns);
  CHECK(router.path_kind(3, 11) == PathKind::Network);
}

TEST_CASE("with PXN the GPU on the receiver's rail relays", "[routing]") {
  const Topology topology = cluster(switched_node(), 2, FabricKind::RailOptimized);
  const Route route = Router(topology, {}).route(0, 8 + 5);
  CHECK(broken_law(topology, route, 0, 13) == "");
  CHECK(route.relayed);
  CHECK(route.switch_hops == 1);
  CHECK(route.latency == 2 * 200ns + 4 * 300ns + 2 * 500ns);
  const Shares shares = by_name(topology, route);
  CHECK(shares.at("node0/gpu0 -> node0/nvswitch0") == Approx(5.0 / 18).epsilon(1e-12));
  CHECK(shares.at("node0/nvswitch0 -> node0/gpu5") == Approx(5.0 / 18).epsilon(1e-12));
  CHECK(shares.at("node0/nic5 -> leaf5") == 1);
  CHECK(shares.at("leaf5 -> node1/nic5") == 1);
}

TEST_CASE("without PXN bytes change rails over the spines", "[routing]") {
  const Topology topology = cluster(switched_node(), 2, FabricKind::RailOptimized);
  const Route route = Router(topology, without_pxn).route(0, 8 + 5);
  CHECK(broken_law(topology, route, 0, 13) == "");
  CHECK_FALSE(route.relayed);
  CHECK(route.switch_hops == 3);
  CHECK(share_on(topology, route, LinkKind::NvLink) == 0);
  CHECK(share_on(topology, route, LinkKind::LeafSpine) == Approx(2).epsilon(1e-12));
  CHECK(by_name(topology, route).at("node0/nic0 -> leaf0") == 1);
}

TEST_CASE("where all NICs of a node share a leaf nobody relays", "[routing]") {
  const Topology topology = cluster(switched_node(), 4, FabricKind::LeafSpine,
                                    [](FabricSpec& f) { f.nodes_per_unit = 2; });
  const Router router(topology, {});
  const Route near = router.route(0, 8 + 5), far = router.route(0, 16 + 5);
  CHECK_FALSE(near.relayed);
  CHECK(near.switch_hops == 1);
  CHECK_FALSE(far.relayed);
  CHECK(far.switch_hops == 3);
}

TEST_CASE("rails that are not joined need a relay", "[routing]") {
  const auto fabric = GENERATE(FabricKind::RailOnly, FabricKind::MultiPlane);
  const Topology topology = cluster(switched_node(), 4, fabric);

  const Route route = Router(topology, {}).route(1, 8 + 6);
  CHECK(broken_law(topology, route, 1, 14) == "");
  CHECK(route.relayed);

  const Router router(topology, without_pxn);
  CHECK(router.route(1, 8 + 1).switch_hops == 1);
  CHECK_THROWS_WITH(router.route(1, 8 + 6),
                    Equals("node0/gpu1 and node1/gpu6 cannot talk: no path in service leads from "
                           "node0/nic1 (rail 1) to node1/nic6 (rail 6); the rails are not joined, "
                           "so another GPU must relay: PXN is needed (NCCL_PXN_DISABLE=0)"));
}

TEST_CASE("a GPU of the receiver's node relays where the sender's node is not on its rail",
          "[routing]") {
  Topology topology = cluster(switched_node(), 2, FabricKind::RailOnly);
  take_down(topology, "node0/nic6");
  const Router router(topology, {});
  const Route route = router.route(1, 8 + 6);
  CHECK(broken_law(topology, route, 1, 14) == "");
  CHECK(route.relayed);
  const Shares shares = by_name(topology, route);
  CHECK(shares.at("node0/nic1 -> leaf1") == 1);
  CHECK(shares.at("node1/gpu1 -> node1/nvswitch3") == Approx(5.0 / 18).epsilon(1e-12));

  SECTION("and where the rails are joined the spines serve instead") {
    Topology joined = cluster(switched_node(), 2, FabricKind::RailOptimized);
    take_down(joined, "node0/nic6");
    const Route direct = Router(joined, {}).route(1, 8 + 6);
    CHECK_FALSE(direct.relayed);
    CHECK(direct.switch_hops == 3);
  }
}

TEST_CASE("nodes on different rails talk over a relay at each end", "[routing]") {
  Topology topology = cluster(bare_node(3), 2, FabricKind::RailOnly);
  take_down(topology, "node0/nic2");
  take_down(topology, "node1/nic0");
  // Node 0 is on rails 0 and 1, node 1 on rails 1 and 2.
  const Route route = Router(topology, {}).route(0, 5);
  CHECK(broken_law(topology, route, 0, 5) == "");
  CHECK(route.relayed);
  CHECK(by_name(topology, route).at("node0/nic1 -> leaf1") == 1);

  take_down(topology, "node0/nic1");
  CHECK_THROWS_WITH(Router(topology, {}).route(0, 5),
                    Equals("node0/gpu0 and node1/gpu2 cannot talk: no path in service leads from "
                           "node0/nic0 (rail 0) to node1/nic2 (rail 2); the rails are not joined"));
  CHECK_THROWS_WITH(Router(topology, without_pxn).route(0, 5),
                    Equals("node0/gpu0 and node1/gpu2 cannot talk: no path in service leads from "
                           "node0/nic0 (rail 0) to node1/nic2 (rail 2); the rails are not joined"));
}

TEST_CASE("a sender whose NIC is down goes over the GPU beside the next one", "[routing]") {
  Topology topology = cluster(switched_node(), 2, FabricKind::SingleSwitch);
  take_down(topology, "node0/nic0");

  const Route relayed = Router(topology, {}).route(0, 8);
  CHECK(broken_law(topology, relayed, 0, 8) == "");
  CHECK(relayed.relayed);
  CHECK(by_name(topology, relayed).at("node0/nvswitch0 -> node0/gpu1") ==
        Approx(5.0 / 18).epsilon(1e-12));
  CHECK(by_name(topology, relayed).at("node0/nic1 -> leaf0") == 1);

  const Route direct = Router(topology, without_pxn).route(0, 8);
  CHECK_FALSE(direct.relayed);
  CHECK(by_name(topology, direct).at("node0/pcie-switch0 -> node0/nic1") == 1);

  // It receives over PCIe: only senders relay.
  const Route back = Router(topology, {}).route(8, 0);
  CHECK_FALSE(back.relayed);
  CHECK(by_name(topology, back).at("node0/pcie-switch0 -> node0/gpu0") == 1);
}

TEST_CASE("without scale-up links a lost NIC is reached over PCIe, PXN or not", "[routing]") {
  Topology topology = cluster(pcie_node(), 2, FabricKind::SingleSwitch);
  take_down(topology, "node0/nic0");
  const Route route = Router(topology, {}).route(0, 8);
  CHECK(broken_law(topology, route, 0, 8) == "");
  CHECK_FALSE(route.relayed);
  CHECK(by_name(topology, route).at("node0/cpu0 -> node0/cpu1") == 1);
  CHECK(by_name(topology, route).at("node0/nic1 -> leaf0") == 1);
}

TEST_CASE("a GPU that reaches no NIC needs a relay", "[routing]") {
  Topology topology = cluster(bare_node(4), 2, FabricKind::SingleSwitch);
  take_down(topology, "node0/nic2");
  const Router router(topology, {});
  for (const auto& [from, to] : {std::pair{2U, 5U}, std::pair{5U, 2U}, std::pair{2U, 6U}}) {
    const Route route = router.route(from, to);
    CHECK(broken_law(topology, route, from, to) == "");
    CHECK(route.relayed);
  }
  CHECK_THROWS_WITH(
      Router(topology, without_pxn).route(2, 5),
      Equals("node0/gpu2 and node1/gpu1 cannot talk: node0/gpu2 reaches no NIC that is "
             "in service, so another GPU must relay: PXN is needed "
             "(NCCL_PXN_DISABLE=0)"));

  for (const char* nic : {"node0/nic0", "node0/nic1", "node0/nic3"}) take_down(topology, nic);
  CHECK_THROWS_WITH(
      Router(topology, {}).route(5, 2),
      Equals("node1/gpu1 and node0/gpu2 cannot talk: node0/gpu2 reaches no NIC that is "
             "in service"));
}

TEST_CASE("nodes without a fabric cannot talk", "[routing]") {
  const Topology topology = cluster(switched_node(), 2, FabricKind::None);
  CHECK_THROWS_WITH(
      Router(topology, {}).route(0, 8),
      Equals("node0/gpu0 and node1/gpu0 cannot talk: node0/gpu0 reaches no NIC that is "
             "in service"));
}

TEST_CASE("GPUs that share a NIC both use it", "[routing]") {
  NodeSpec spec = switched_node();
  spec.nics = 4;
  const Topology topology = cluster(spec, 2, FabricKind::RailOptimized);
  const Router router(topology, {});
  CHECK(router.rail(2) == 1);
  CHECK(router.rail(3) == 1);
  // Same rail, no relay.
  CHECK_FALSE(router.route(2, 8 + 3).relayed);
  // Of the two GPUs on the receiver's rail, senders take turns.
  CHECK(by_name(topology, router.route(0, 8 + 6)).contains("node0/nvswitch0 -> node0/gpu6"));
  CHECK(by_name(topology, router.route(1, 8 + 6)).contains("node0/nvswitch0 -> node0/gpu7"));
}

TEST_CASE("a GPU with several NICs spreads its bytes over them by bandwidth", "[routing]") {
  NodeSpec spec = bare_node(2);
  spec.nics = 4;
  Topology topology = cluster(spec, 2, FabricKind::RailOptimized);

  SECTION("rail by rail") {
    const Route route = Router(topology, {}).route(0, 2);
    CHECK(broken_law(topology, route, 0, 2) == "");
    CHECK(by_name(topology, route) == Shares{{"node0/gpu0 -> node0/nic0", 0.5},
                                             {"node0/gpu0 -> node0/nic1", 0.5},
                                             {"node0/nic0 -> leaf0", 0.5},
                                             {"node0/nic1 -> leaf1", 0.5},
                                             {"leaf0 -> node1/nic0", 0.5},
                                             {"leaf1 -> node1/nic1", 0.5},
                                             {"node1/nic0 -> node1/gpu0", 0.5},
                                             {"node1/nic1 -> node1/gpu0", 0.5}});
  }
  SECTION("a degraded one carries less") {
    scale_bandwidth(topology, "node0/nic0", "leaf0", 0.25);
    const Shares shares = by_name(topology, Router(topology, {}).route(0, 2));
    CHECK(shares.at("node0/nic0 -> leaf0") == Approx(0.2).epsilon(1e-12));
    CHECK(shares.at("leaf1 -> node1/nic1") == Approx(0.8).epsilon(1e-12));
  }
  SECTION("over the relay's NICs") {
    const Route route = Router(topology, {}).route(0, 3);
    CHECK(broken_law(topology, route, 0, 3) == "");
    CHECK(route.relayed);
    CHECK(by_name(topology, route).at("node0/nic3 -> leaf3") == 0.5);
  }
  SECTION("without PXN, NIC by NIC in order") {
    const Route route = Router(topology, without_pxn).route(0, 3);
    CHECK(broken_law(topology, route, 0, 3) == "");
    CHECK(by_name(topology, route).at("node0/nic1 -> leaf1") == 0.5);
    CHECK(by_name(topology, route).at("leaf3 -> node1/nic3") == 0.5);
  }
  SECTION("all over the one that is left") {
    take_down(topology, "node0/nic0");
    const Route route = Router(topology, {}).route(0, 2);
    CHECK(broken_law(topology, route, 0, 2) == "");
    CHECK(by_name(topology, route).at("leaf1 -> node1/nic1") == 1);
  }
}

TEST_CASE("nodes with unlike numbers of NICs meet NIC by NIC", "[routing]") {
  ClusterSpec spec;
  NodeSpec two = bare_node(1), three = bare_node(1);
  two.nics = 2;
  two.nic_rail = {7, 8};
  three.nics = 3;
  spec.nodes = {{two, 1}, {three, 1}};
  spec.fabric.kind = FabricKind::SingleSwitch;
  const Topology topology = build_topology(spec);
  const Route route = Router(topology, {}).route(0, 1);
  CHECK(broken_law(topology, route, 0, 1) == "");
  const Shares shares = by_name(topology, route);
  CHECK(shares.at("node0/nic0 -> leaf0") == Approx(0.5).epsilon(1e-12));
  CHECK(shares.at("leaf0 -> node1/nic1") == Approx(1.0 / 3).epsilon(1e-12));
}
