// What holds on every topology, whole or damaged.

#include <random>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/routing/router.hpp"
#include "route_laws.hpp"
#include "support/topologies.hpp"

using namespace flyover;
using namespace flyover::literals;
using namespace flyover::test;

namespace {

struct Case {
  const char* name;
  Topology topology;
};

std::vector<Case> cases() {
  const auto with = [](RoutingPolicy policy, std::uint32_t unit) {
    return [=](FabricSpec& f) {
      f.routing = policy;
      f.nodes_per_unit = unit;
      f.seed = 11;
    };
  };
  const auto three_tiers = [](RoutingPolicy policy) {
    return [=](FabricSpec& f) {
      f.radix = 8;
      f.routing = policy;
    };
  };
  const auto planes = [](FabricSpec& f) {
    f.nic_ports = 2;
    f.nodes_per_unit = 2;
  };
  const auto cube = [](FabricSpec& f) { f.torus = {3, 2, 2}; };
  NodeSpec shared = switched_node();
  shared.nics = 4;
  NodeSpec many = switched_node();
  many.nics = 16;
  using enum RoutingPolicy;
  std::vector<Case> all;
  const auto add = [&](const char* name, Topology topology) {
    all.push_back({name, std::move(topology)});
  };
  add("switch", cluster(switched_node(), 3, FabricKind::SingleSwitch));
  add("rails, adaptive", cluster(switched_node(), 6, FabricKind::RailOptimized, with(Adaptive, 2)));
  add("rails, ecmp", cluster(switched_node(), 6, FabricKind::RailOptimized, with(Ecmp, 2)));
  add("rails, shared NICs", cluster(shared, 6, FabricKind::RailOptimized, with(Adaptive, 2)));
  add("rails, two NICs", cluster(many, 4, FabricKind::RailOptimized, with(Ecmp, 2)));
  add("rails, two planes", cluster(mesh_node(), 4, FabricKind::RailOptimized, planes));
  add("leaf-spine", cluster(mesh_node(), 6, FabricKind::LeafSpine, with(Adaptive, 2)));
  add("fat tree, adaptive", cluster(bare_node(2), 32, FabricKind::FatTree, three_tiers(Adaptive)));
  add("fat tree, ecmp", cluster(bare_node(2), 32, FabricKind::FatTree, three_tiers(Ecmp)));
  add("rail-only", cluster(switched_node(), 4, FabricKind::RailOnly));
  add("multi-plane", cluster(switched_node(), 4, FabricKind::MultiPlane, with(Adaptive, 1)));
  add("dragonfly", cluster(switched_node(), 9, FabricKind::Dragonfly));
  add("torus", cluster(switched_node(), 12, FabricKind::Torus, cube));
  add("cube mesh", cluster(cube_mesh_node(), 3, FabricKind::SingleSwitch));
  add("pcie", cluster(pcie_node(), 3, FabricKind::LeafSpine, with(Ecmp, 1)));
  return all;
}

std::uint32_t below(std::mt19937& random, std::size_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

// Takes a few cables and devices out of service, and narrows others.
void damage(Topology& topology, std::mt19937& random) {
  for (int i = 0; i < 6; ++i) {
    topology.links[LinkId{below(random, topology.links.size())}].up = false;
    Link& narrow = topology.links[LinkId{below(random, topology.links.size())}];
    narrow.bandwidth = narrow.nominal * 0.3;
  }
  for (int i = 0; i < 2; ++i)
    topology.vertices[VertexId{below(random, topology.vertices.size())}].up = false;
}

// Links on the shortest path from NIC to NIC through switches alone, by an independent search.
std::optional<std::uint32_t> network_distance(const Topology& topology, VertexId from,
                                              VertexId to) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph(topology.vertices.size());
  for (const Link& link : topology.links) {
    const Vertex& a = topology.vertices[link.from];
    const Vertex& b = topology.vertices[link.to];
    if (!link.up || !a.up || !b.up) continue;
    const bool leaves = link.from == from || a.node == no_node;
    const bool enters = link.to == to || b.node == no_node;
    if (leaves && enters) add_edge(index(link.from), index(link.to), graph);
  }
  std::vector<std::uint32_t> distance(topology.vertices.size(), 0);
  breadth_first_search(
      graph, index(from),
      boost::visitor(make_bfs_visitor(record_distances(distance.data(), boost::on_tree_edge()))));
  return distance[index(to)] == 0 ? std::nullopt : std::optional(distance[index(to)]);
}

}  // namespace

TEST_CASE("every route keeps the laws, on whole and on damaged clusters", "[routing]") {
  std::mt19937 random(5);
  std::size_t routes = 0, failures = 0;
  for (const Case& base : cases()) {
    for (int round = 0; round < 5; ++round) {
      Topology topology = base.topology;
      if (round > 0) damage(topology, random);
      const auto ranks = static_cast<std::uint32_t>(topology.gpus.size());
      for (const bool pxn : {true, false}) {
        const Router router(topology, {.pxn = pxn});
        for (int i = 0; i < 200; ++i) {
          const std::uint32_t from = below(random, ranks), to = below(random, ranks);
          CAPTURE(base.name, round, pxn, from, to);
          try {
            const Route route = router.route(from, to, random());
            REQUIRE(broken_law(topology, route, from, to) == "");
            CHECK(route.kind == router.path_kind(from, to));
            ++routes;
          } catch (const SimulationError& error) {
            ++failures;
            const std::string message = error.what();
            CHECK(message.find(vertex_name(topology, topology.gpus[from])) != std::string::npos);
            CHECK(message.find(vertex_name(topology, topology.gpus[to])) != std::string::npos);
            // A whole cluster is joined throughout, but for rails without PXN.
            if (round == 0) CHECK((!pxn && message.find("PXN") != std::string::npos));
          }
        }
      }
    }
  }
  CHECK(routes > 25'000);
  CHECK(failures < 4'000);
}

TEST_CASE("adding routes up gives the same loads as adding each", "[routing]") {
  std::mt19937 random(6);
  for (const Case& base : cases()) {
    for (int round = 0; round < 4; ++round) {
      Topology topology = base.topology;
      if (round > 0) damage(topology, random);
      const auto ranks = static_cast<std::uint32_t>(topology.gpus.size());
      const Router router(topology, {.pxn = round % 2 == 0});
      LoadMap together(topology.links.size()), one_by_one(topology.links.size());
      for (int i = 0; i < 300; ++i) {
        const std::uint32_t from = below(random, ranks), to = below(random, ranks);
        const double bytes = below(random, 1000) + 1.0;
        const std::uint64_t flow = random();
        CAPTURE(base.name, round, from, to);
        Route route;
        try {
          route = router.route(from, to, flow);
        } catch (const SimulationError&) {
          CHECK_THROWS_AS(router.add_route(together, from, to, bytes, flow), SimulationError);
          continue;
        }
        one_by_one.add(route, bytes);
        const PathInfo info = router.add_route(together, from, to, bytes, flow);
        CHECK(info.latency == route.latency);
        CHECK(info.switch_hops == route.switch_hops);
        CHECK(info.kind == route.kind);
        CHECK(info.relayed == route.relayed);
      }
      const std::vector<Hop> a = together.take(), b = one_by_one.take();
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i].link == b[i].link);
        CHECK(a[i].share == Approx(b[i].share).epsilon(1e-11));
        if (i > 0) CHECK(a[i - 1].link < a[i].link);
      }
      CHECK(together.take().empty());
    }
  }
}

TEST_CASE("the network path is the shortest there is", "[routing]") {
  std::mt19937 random(7);
  for (const Case& base : cases()) {
    if (!base.topology.torus.empty()) continue;  // Dimension order has its own test.
    Topology topology = base.topology;
    damage(topology, random);
    const auto ranks = static_cast<std::uint32_t>(topology.gpus.size());
    const Router router(topology, {.pxn = false});
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t from = below(random, ranks), to = below(random, ranks);
      if (router.nics(from).size() != 1 || router.nics(to).size() != 1 ||
          topology.node_of_rank(from) == topology.node_of_rank(to) ||
          !topology.vertices[topology.gpus[from]].up || !topology.vertices[topology.gpus[to]].up) {
        continue;
      }
      CAPTURE(base.name, from, to);
      const auto expected = network_distance(topology, router.nics(from)[0], router.nics(to)[0]);
      if (!expected) {
        CHECK_THROWS_AS(router.route(from, to), SimulationError);
      } else {
        CHECK(router.route(from, to).switch_hops + 1 == *expected);
      }
    }
  }
}

TEST_CASE("routes on one rail are the same there and back", "[routing]") {
  for (const Case& base : cases()) {
    const Topology& topology = base.topology;
    if (topology.routing != RoutingPolicy::Adaptive) continue;
    const Router router(topology, {});
    const auto ranks = static_cast<std::uint32_t>(topology.gpus.size());
    for (std::uint32_t to = 1; to < ranks; ++to) {
      const Route there = router.route(0, to), back = router.route(to, 0);
      if (there.relayed) continue;
      CAPTURE(base.name, to);
      CHECK(there.latency == back.latency);
      std::map<std::pair<VertexId, VertexId>, double> shares;
      for (const Hop& hop : there.hops) {
        shares[{topology.links[hop.link].from, topology.links[hop.link].to}] += hop.share;
      }
      for (const Hop& hop : back.hops) {
        shares[{topology.links[hop.link].to, topology.links[hop.link].from}] -= hop.share;
      }
      for (const auto& [ends, rest] : shares) CHECK(std::abs(rest) < 1e-12);
    }
  }
}

TEST_CASE("a load map serves one router at a time", "[routing]") {
  const Topology topology = cluster(switched_node(), 4, FabricKind::RailOptimized,
                                    [](FabricSpec& f) { f.nodes_per_unit = 2; });
  const Router one(topology, {}), other(topology, {});
  LoadMap load(topology.links.size());
  one.add_route(load, 0, 16, 1.0);
  CHECK_THROWS_AS(other.add_route(load, 0, 16, 1.0), InternalError);
  CHECK_FALSE(load.take().empty());
  other.add_route(load, 0, 16, 1.0);
  CHECK_FALSE(load.take().empty());
}

TEST_CASE("links that carry nothing are not in the load", "[routing]") {
  const Topology topology = cluster(switched_node(), 1, FabricKind::None);
  const Router router(topology, {});
  LoadMap load(topology.links.size());
  router.add_route(load, 0, 1, 0.0);
  CHECK(load.take().empty());
}
