// Paths between NICs: adaptive spraying, ECMP, dimension order.

#include <set>

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

// One GPU and NIC per node, two nodes per leaf, four spines with two cables to each leaf.
Topology four_spines(RoutingPolicy policy, std::uint64_t seed = 0) {
  return cluster(bare_node(1), 8, FabricKind::LeafSpine, [&](FabricSpec& f) {
    f.nodes_per_unit = 2;
    f.spines = 4;
    f.oversubscription = 0.25;
    f.routing = policy;
    f.seed = seed;
  });
}

std::set<LinkId> cables(const Topology& topology, const Route& route, LinkKind kind) {
  std::set<LinkId> links;
  for (const Hop& hop : route.hops) {
    if (topology.links[hop.link].kind == kind) links.insert(hop.link);
  }
  return links;
}

Topology torus(std::vector<std::uint32_t> extents, bool with_nics) {
  std::uint32_t nodes = 1;
  for (const std::uint32_t extent : extents) nodes *= extent;
  NodeSpec spec = bare_node(1);
  if (!with_nics) spec.nics = 0;
  return cluster(spec, nodes, FabricKind::Torus, [&](FabricSpec& f) {
    f.torus = std::move(extents);
    f.link_bandwidth = 50_GBps;
  });
}

std::uint32_t around(std::uint32_t a, std::uint32_t b, std::uint32_t extent) {
  const std::uint32_t ahead = (b + extent - a) % extent;
  return std::min(ahead, extent - ahead);
}

}  // namespace

TEST_CASE("adaptive routing uses all spines and parallel cables equally", "[routing]") {
  const Topology topology = four_spines(RoutingPolicy::Adaptive);
  const Router router(topology, {});
  const Route route = router.route(0, 7);
  CHECK(broken_law(topology, route, 0, 7) == "");
  CHECK(route.switch_hops == 3);
  CHECK(route.latency == 2 * 300ns + 4 * 500ns);
  const auto used = cables(topology, route, LinkKind::LeafSpine);
  CHECK(used.size() == 16);
  for (const Hop& hop : route.hops) {
    if (used.contains(hop.link)) CHECK(hop.share == 0.125);
  }
  // The way back uses the opposite links in the same shares.
  Shares back;
  for (const Hop& hop : router.route(7, 0).hops) {
    const Link& link = topology.links[hop.link];
    back[vertex_name(topology, link.to) + " -> " + vertex_name(topology, link.from)] += hop.share;
  }
  CHECK(by_name(topology, route) == back);
}

TEST_CASE("adaptive routing sends less where the path beyond is narrow", "[routing]") {
  Topology topology = four_spines(RoutingPolicy::Adaptive);
  SECTION("a degraded cable up") {
    scale_bandwidth(topology, "leaf0", "spine2", 0.5);
  }
  SECTION("a degraded cable down") {
    scale_bandwidth(topology, "spine2", "leaf3", 0.5);
  }
  const Shares shares = by_name(topology, Router(topology, {}).route(0, 7));
  CHECK(shares.at("leaf0 -> spine2") == Approx(1.0 / 7).epsilon(1e-12));
  CHECK(shares.at("leaf0 -> spine1") == Approx(2.0 / 7).epsilon(1e-12));
  CHECK(shares.at("spine2 -> leaf3") == Approx(1.0 / 7).epsilon(1e-12));
}

TEST_CASE("what is down is avoided", "[routing]") {
  const auto policy = GENERATE(RoutingPolicy::Adaptive, RoutingPolicy::Ecmp);
  Topology topology = four_spines(policy);
  SECTION("a spine") {
    take_down(topology, "spine0");
  }
  SECTION("cables up") {
    take_down(topology, "leaf0", "spine0");
  }
  SECTION("cables down") {
    take_down(topology, "leaf3", "spine0");
  }
  const Router router(topology, {});
  for (std::uint64_t flow = 0; flow < 64; ++flow) {
    const Route route = router.route(1, 6, flow);
    CHECK(broken_law(topology, route, 1, 6) == "");
    const Shares shares = by_name(topology, route);
    CHECK(shares.count("leaf0 -> spine0") + shares.count("spine0 -> leaf3") == 0);
  }
}

TEST_CASE("paths bend around a fault when there is no short one left", "[routing]") {
  Topology topology = four_spines(RoutingPolicy::Adaptive);
  for (const char* s : {"spine0", "spine1", "spine2"}) {
    take_down(topology, "leaf0", s);
    take_down(topology, s == std::string("spine0") ? "spine3" : s, "leaf3");
  }
  // Leaf 0 has spine 3 alone, leaf 3 spine 0 alone: the way leads over another leaf.
  const Route route = Router(topology, {}).route(0, 7);
  CHECK(broken_law(topology, route, 0, 7) == "");
  CHECK(route.switch_hops == 5);

  take_down(topology, "spine3");
  CHECK_THROWS_WITH(Router(topology, {}).route(0, 7),
                    Equals("node0/gpu0 and node7/gpu0 cannot talk: no path in service leads from "
                           "node0/nic0 (rail 0) to node7/nic0 (rail 0)"));
}

TEST_CASE("an ECMP flow keeps to one path, and flows spread evenly over all", "[routing]") {
  const Topology topology = four_spines(RoutingPolicy::Ecmp, 7);
  const Router router(topology, {});
  constexpr int flows = 4096;
  std::map<LinkId, int> used;
  for (std::uint64_t flow = 0; flow < flows; ++flow) {
    const Route route = router.route(0, 7, flow);
    REQUIRE(broken_law(topology, route, 0, 7) == "");
    CHECK(route.hops.size() == 6);
    CHECK(route.switch_hops == 3);
    for (const LinkId l : cables(topology, route, LinkKind::LeafSpine)) ++used[l];
  }
  CHECK(used.size() == 16);  // Parallel cables are separate choices, at both switches.
  // Binomial(4096, 1/8): 512 with a deviation of 21; four of them.
  for (const auto& [link, count] : used) CHECK(std::abs(count - flows / 8) < 85);
}

TEST_CASE("the choice at one switch says nothing about the choice at the next", "[routing]") {
  const Topology topology = four_spines(RoutingPolicy::Ecmp);
  const Router router(topology, {});
  std::map<std::set<LinkId>, int> pairs;
  for (std::uint64_t flow = 0; flow < 4096; ++flow) {
    ++pairs[cables(topology, router.route(0, 7, flow), LinkKind::LeafSpine)];
  }
  CHECK(pairs.size() == 16);  // Four spines, two cables up to each and two down.
  for (const auto& [pair, count] : pairs) CHECK(std::abs(count - 256) < 80);
}

TEST_CASE("ECMP depends on the seed, the NICs and the flow, and on nothing else", "[routing]") {
  const auto paths = [](std::uint64_t seed, std::uint32_t from, std::uint32_t to) {
    const Topology topology = four_spines(RoutingPolicy::Ecmp, seed);
    const Router router(topology, {});
    std::vector<std::set<LinkId>> all;
    for (std::uint64_t flow = 0; flow < 32; ++flow) {
      all.push_back(cables(topology, router.route(from, to, flow), LinkKind::LeafSpine));
    }
    return all;
  };
  CHECK(paths(1, 0, 7) == paths(1, 0, 7));
  CHECK(paths(1, 0, 7) != paths(2, 0, 7));
  CHECK(paths(1, 0, 7) != paths(1, 1, 7));
  CHECK(paths(1, 0, 7) != paths(1, 0, 6));
}

TEST_CASE("three tiers: inside a pod over its spines, between pods over the cores", "[routing]") {
  const Topology topology = cluster(bare_node(1), 64, FabricKind::FatTree, [](FabricSpec& f) {
    f.radix = 8;
    f.routing = RoutingPolicy::Adaptive;
  });
  const Router router(topology, {});
  CHECK(router.route(0, 1).switch_hops == 1);
  CHECK(router.route(0, 5).switch_hops == 3);
  const Route far = router.route(0, 63);
  CHECK(broken_law(topology, far, 0, 63) == "");
  CHECK(far.switch_hops == 5);
  CHECK(share_on(topology, far, LinkKind::SpineCore) == Approx(2).epsilon(1e-12));
  CHECK(cables(topology, far, LinkKind::SpineCore).size() == 32);
}

TEST_CASE("a NIC with two ports sends over both planes", "[routing]") {
  const auto policy = GENERATE(RoutingPolicy::Adaptive, RoutingPolicy::Ecmp);
  const Topology topology = cluster(bare_node(2), 8, FabricKind::RailOptimized, [&](FabricSpec& f) {
    f.nodes_per_unit = 4;
    f.nic_ports = 2;
    f.routing = policy;
  });
  const Router router(topology, {});
  std::set<LinkId> up, down;
  for (std::uint64_t flow = 0; flow < 32; ++flow) {
    for (const std::uint32_t to : {2U, 10U}) {
      const Route route = router.route(0, to, flow);
      CHECK(broken_law(topology, route, 0, to) == "");
      for (const LinkId l : cables(topology, route, LinkKind::HostLeaf)) {
        (topology.links[l].from == router.nics(0)[0] ? up : down).insert(l);
        if (policy == RoutingPolicy::Adaptive) {
          for (const Hop& hop : route.hops) {
            if (hop.link == l) CHECK(hop.share == 0.5);
          }
        }
      }
    }
  }
  CHECK(up.size() == 2);
  CHECK(down.size() == 4);
}

TEST_CASE("nodes cabled back to back need no switch", "[routing]") {
  Sketch sketch;
  std::vector<VertexId> gpus, nics;
  for (const char* name : {"0", "1", "2"}) {
    sketch.node(name);
    gpus.push_back(sketch.add(VertexKind::Gpu, std::string("gpu") + name));
    nics.push_back(sketch.add(VertexKind::Nic, std::string("nic") + name));
    sketch.cable(gpus.back(), nics.back(), LinkKind::Pcie, 55_GBps, 300ns);
  }
  sketch.cable(nics[0], nics[1], LinkKind::Other, 50_GBps, 500ns);
  sketch.cable(nics[1], nics[2], LinkKind::Other, 50_GBps, 500ns);
  const auto policy = GENERATE(RoutingPolicy::Adaptive, RoutingPolicy::Ecmp);
  const Topology topology = sketch.build(policy);
  const Router router(topology, {});
  const Route route = router.route(0, 1);
  CHECK(broken_law(topology, route, 0, 1) == "");
  CHECK(route.switch_hops == 0);
  CHECK(route.latency == 1100ns);
  // NICs are not passed through.
  CHECK_THROWS_WITH(router.route(0, 2),
                    Equals("gpu0 and gpu2 cannot talk: no path in service leads "
                           "from nic0 (rail 0) to nic2 (rail 0)"));
}

TEST_CASE("dimension order goes the shorter way round, one coordinate after the other",
          "[routing]") {
  const auto with_nics = GENERATE(true, false);
  CAPTURE(with_nics);
  const std::vector<std::uint32_t> extents{4, 3, 5};
  const Topology topology = torus(extents, with_nics);
  REQUIRE(topology.routing == RoutingPolicy::DimensionOrder);
  const Router router(topology, {});
  const std::string router_name = with_nics ? "leaf" : "";
  for (std::uint32_t from = 0; from < 60; from += 7) {
    for (std::uint32_t to = 0; to < 60; ++to) {
      if (from == to) continue;
      CAPTURE(from, to);
      const Route route = router.route(from, to);
      REQUIRE(broken_law(topology, route, from, to) == "");
      const std::uint32_t hops = around(from % 4, to % 4, 4) + around(from / 4 % 3, to / 4 % 3, 3) +
                                 around(from / 12, to / 12, 5);
      CHECK(share_on(topology, route, LinkKind::Torus) == hops);
      CHECK(route.switch_hops == (with_nics ? hops + 1 : hops - 1));
    }
  }
}

TEST_CASE("half-way round dimension order goes upwards, x first", "[routing]") {
  const Topology topology = torus({4, 4}, false);
  const Router router(topology, {});
  CHECK(by_name(topology, router.route(0, 10)) == Shares{{"node0/gpu0 -> node1/gpu0", 1.0},
                                                         {"node1/gpu0 -> node2/gpu0", 1.0},
                                                         {"node2/gpu0 -> node6/gpu0", 1.0},
                                                         {"node6/gpu0 -> node10/gpu0", 1.0}});
  CHECK(by_name(topology, router.route(10, 0)) == Shares{{"node10/gpu0 -> node11/gpu0", 1.0},
                                                         {"node11/gpu0 -> node8/gpu0", 1.0},
                                                         {"node8/gpu0 -> node12/gpu0", 1.0},
                                                         {"node12/gpu0 -> node0/gpu0", 1.0}});
}

TEST_CASE("a torus path bends around a link that is down", "[routing]") {
  Topology topology = torus({4, 4}, false);
  take_down(topology, "node1/gpu0", "node2/gpu0");
  const Router router(topology, {});
  const Route route = router.route(0, 2);
  CHECK(broken_law(topology, route, 0, 2) == "");
  CHECK(route.hops.size() == 2);  // The other way round.
  const Route near = router.route(1, 2);
  CHECK(broken_law(topology, near, 1, 2) == "");
  CHECK(near.hops.size() == 3);
}

TEST_CASE("a torus routed adaptively sprays over all shortest paths", "[routing]") {
  Topology topology = torus({4, 4}, false);
  topology.routing = RoutingPolicy::Adaptive;
  const Router router(topology, {});
  const Route route = router.route(0, 5);
  CHECK(broken_law(topology, route, 0, 5) == "");
  CHECK(by_name(topology, route) == Shares{{"node0/gpu0 -> node1/gpu0", 0.5},
                                           {"node0/gpu0 -> node4/gpu0", 0.5},
                                           {"node1/gpu0 -> node5/gpu0", 0.5},
                                           {"node4/gpu0 -> node5/gpu0", 0.5}});
}

TEST_CASE("a torus of 16,384 routers is routed one destination at a time", "[routing]") {
  Topology topology = torus({16, 32, 32}, false);
  topology.routing = GENERATE(RoutingPolicy::Adaptive, RoutingPolicy::DimensionOrder);
  const Router router(topology, {});
  LoadMap load(topology.links.size());
  double expected = 0;
  for (std::uint32_t from = 0; from < 16384; ++from) {
    const std::uint32_t to = (from + 1) % 16384;
    router.add_route(load, from, to, 1.0);
    expected += around(from % 16, to % 16, 16) + around(from / 16 % 32, to / 16 % 32, 32) +
                around(from / 512, to / 512, 32);
  }
  double sum = 0;
  for (const Hop& hop : load.take()) sum += hop.share;
  CHECK(sum == Approx(expected).epsilon(1e-12));
}

TEST_CASE("dimension order needs a torus", "[routing]") {
  Topology topology = cluster(switched_node(), 2, FabricKind::SingleSwitch);
  topology.routing = RoutingPolicy::DimensionOrder;
  CHECK_THROWS_WITH(Router(topology, {}),
                    Equals("dimension-order routing needs a torus, but the fabric is "
                           "\"single-switch\"; use \"ecmp\" or \"adaptive\""));
  topology.torus = {2, 2};
  CHECK_THROWS_WITH(Router(topology, {}), Equals("the torus has 4 places, but 1 routers"));
}

TEST_CASE("dragonfly groups talk over the cables between them", "[routing]") {
  const Topology topology = cluster(bare_node(2), 36, FabricKind::Dragonfly);
  const Router router(topology, {});
  std::uint32_t longest = 0;
  for (std::uint32_t to = 2; to < 72; ++to) {
    const Route route = router.route(0, to);
    REQUIRE(broken_law(topology, route, 0, to) == "");
    longest = std::max(longest, route.switch_hops);
  }
  CHECK(longest == 4);  // Local, global, local.
}
