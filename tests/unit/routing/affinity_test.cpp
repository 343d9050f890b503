// Which NICs a GPU uses.

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/routing/router.hpp"
#include "route_laws.hpp"
#include "support/topologies.hpp"

using namespace flyover;
using namespace flyover::literals;
using namespace flyover::test;

namespace {

std::vector<std::string> nic_names(const Topology& topology, const Router& router,
                                   std::uint32_t rank) {
  std::vector<std::string> names;
  for (const VertexId v : router.nics(rank)) names.push_back(vertex_name(topology, v));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("GPUs and NICs on one PCIe switch pair up in order", "[routing]") {
  const Topology topology = cluster(switched_node(), 2, FabricKind::RailOptimized);
  const Router router(topology, {});
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    CAPTURE(rank);
    CHECK(nic_names(topology, router, rank) ==
          Names{"node" + std::to_string(rank / 8) + "/nic" + std::to_string(rank % 8)});
    CHECK(router.rail(rank) == rank % 8);
  }
}

TEST_CASE("equally near GPUs share fewer NICs out evenly, and more go round", "[routing]") {
  const auto nics = GENERATE(1U, 2U, 3U, 4U, 8U, 16U, 32U);
  CAPTURE(nics);
  NodeSpec spec = switched_node();
  spec.pcie_switches = 0;
  spec.cpus = 1;
  spec.nics = nics;
  const Topology topology = cluster(spec, 2, FabricKind::SingleSwitch);
  const Router router(topology, {});
  std::map<std::string, int> users;
  for (std::uint32_t g = 0; g < 8; ++g) {
    CHECK(router.nics(g).size() == std::max(1U, nics / 8));
    for (const std::string& name : nic_names(topology, router, g)) ++users[name];
  }
  CHECK(users.size() == nics);
  for (const auto& [name, count] : users) {
    CAPTURE(name);
    CHECK(count >= static_cast<int>(8 / nics));
    CHECK(count <= static_cast<int>((8 + nics - 1) / nics));
  }
}

TEST_CASE("a GPU uses the NIC on its own PCIe switch, not a farther one", "[routing]") {
  const Topology topology = cluster(pcie_node(), 2, FabricKind::SingleSwitch);
  const Router router(topology, {});
  for (std::uint32_t g = 0; g < 8; ++g) {
    CHECK(nic_names(topology, router, g) == Names{g < 4 ? "node0/nic0" : "node0/nic1"});
  }
}

TEST_CASE("a GPU that has lost its NIC uses the next nearest with the fewest users", "[routing]") {
  Topology topology = cluster(switched_node(), 2, FabricKind::SingleSwitch);
  SECTION("the other one on its PCIe switch") {
    take_down(topology, "node0/nic0");
    CHECK(nic_names(topology, Router(topology, {}), 0) == Names{"node0/nic1"});
  }
  SECTION("then one on its socket") {
    take_down(topology, "node0/nic0");
    take_down(topology, "node0/nic1");
    const Router router(topology, {});
    CHECK(nic_names(topology, router, 0) == Names{"node0/nic2"});
    CHECK(nic_names(topology, router, 1) == Names{"node0/nic3"});
  }
  SECTION("a NIC without its cable, or whose leaf is down, is out of service too") {
    take_down(topology, "node0/nic0", "leaf0");
    CHECK(nic_names(topology, Router(topology, {}), 0) == Names{"node0/nic1"});
    take_down(topology, "leaf0");
    CHECK(Router(topology, {}).nics(5).empty());
  }
  SECTION("a NIC that its PCIe link does not reach is of no use") {
    take_down(topology, "node0/nic0", "node0/pcie-switch0");
    CHECK(nic_names(topology, Router(topology, {}), 0) == Names{"node0/nic1"});
  }
  SECTION("in that node alone") {
    take_down(topology, "node0/nic0");
    CHECK(nic_names(topology, Router(topology, {}), 8) == Names{"node1/nic0"});
  }
}

TEST_CASE("a GPU that loses some of its NICs keeps the rest", "[routing]") {
  NodeSpec spec = bare_node(4);
  spec.nics = 8;
  Topology topology = cluster(spec, 2, FabricKind::SingleSwitch);
  CHECK(nic_names(topology, Router(topology, {}), 1) == Names{"node0/nic2", "node0/nic3"});
  take_down(topology, "node0/nic2");
  CHECK(nic_names(topology, Router(topology, {}), 1) == Names{"node0/nic3"});
}

TEST_CASE("NICs that nothing is cabled to do not count", "[routing]") {
  const Topology topology = cluster(switched_node(), 1, FabricKind::None);
  const Router router(topology, {});
  CHECK(router.nics(3).empty());
  CHECK(router.rail(3) == 3);
}

TEST_CASE("a GPU that is cabled to a switch is its own NIC", "[routing]") {
  Sketch sketch;
  std::vector<VertexId> gpus;
  for (const char* name : {"a", "b", "c"}) {
    sketch.node(name);
    gpus.push_back(sketch.add(VertexKind::Gpu, name));
  }
  const VertexId s = sketch.fabric(VertexKind::Switch, "crossbar");
  for (const VertexId gpu : gpus) sketch.cable(gpu, s, LinkKind::Other, 450_GBps, 500ns);
  const Topology topology = sketch.build();
  const Router router(topology, {});
  CHECK(nic_names(topology, router, 1) == Names{"b"});
  const Route route = router.route(0, 2);
  CHECK(by_name(topology, route) ==
        std::map<std::string, double>{{"a -> crossbar", 1.0}, {"crossbar -> c", 1.0}});
  CHECK(route.latency == 1us);
  CHECK(route.switch_hops == 1);
  CHECK(route.kind == PathKind::Network);
}

TEST_CASE("GPUs of one node that only the fabric joins talk over it", "[routing]") {
  Sketch sketch;
  sketch.node("tray");
  const VertexId a = sketch.add(VertexKind::Gpu, "a"), b = sketch.add(VertexKind::Gpu, "b");
  const VertexId c = sketch.add(VertexKind::Gpu, "c");
  const VertexId nic = sketch.add(VertexKind::Nic, "nic");
  const VertexId s = sketch.fabric(VertexKind::Switch, "crossbar");
  sketch.cable(a, s, LinkKind::Other, 450_GBps, 500ns);
  sketch.cable(b, s, LinkKind::Other, 450_GBps, 500ns);
  sketch.cable(c, nic, LinkKind::Pcie, 55_GBps, 300ns);
  sketch.cable(nic, s, LinkKind::Other, 50_GBps, 500ns);
  const Topology topology = sketch.build();
  const Router router(topology, {});
  CHECK(router.route(0, 1).kind == PathKind::Network);
  CHECK(router.path_kind(0, 1) == PathKind::Network);
  CHECK(broken_law(topology, router.route(0, 1), 0, 1) == "");
  // The third has only a NIC, and what stays in a node never passes one.
  CHECK_THROWS_AS(router.route(0, 2), SimulationError);
}

TEST_CASE("in a rack the GPUs use the NICs of their own board", "[routing]") {
  NodeSpec rack = switched_node();
  rack.gpus = 72;
  rack.links_per_switch.assign(36, 1);
  rack.pcie_switches = 0;
  rack.cpus = 36;
  rack.cpus_per_board = 2;
  const auto per_gpu = GENERATE(1U, 2U);
  rack.nics = 72 * per_gpu;
  const Topology topology = cluster(rack, 2, FabricKind::RailOnly);
  const Router router(topology, {});
  for (std::uint32_t g = 0; g < 72; ++g) {
    CHECK(router.rail(g) == g * per_gpu);
    CHECK(router.nics(g).size() == per_gpu);
  }
  CHECK(router.route(0, 71).hops.size() == 72);
  const Route route = router.route(0, 72 + 71);
  CHECK(route.relayed);
  CHECK(broken_law(topology, route, 0, 143) == "");
}
