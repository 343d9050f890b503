#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

namespace {

FabricSpec dragonfly(std::uint32_t p, std::uint32_t a, std::uint32_t h) {
  FabricSpec spec = fabric(FabricKind::Dragonfly);
  spec.router_hosts = p;
  spec.group_routers = a;
  spec.router_globals = h;
  return spec;
}

}  // namespace

TEST_CASE("a dragonfly has g a routers, g a (a-1) / 2 local and g a h / 2 global cables",
          "[topology][dragonfly]") {
  const std::uint32_t p = 2, a = 4, h = 2, g = a * h + 1;
  const Topology topology = build_topology(cluster(single(), p * a * g, dragonfly(p, a, h)));
  CHECK(count(topology, VertexKind::Leaf) == g * a);
  CHECK(cables(topology, LinkKind::Local) == g * a * (a - 1) / 2);
  CHECK(cables(topology, LinkKind::Global) == g * a * h / 2);
  CHECK(analyse(topology).diameter == 5);  // NIC, local, global, local, NIC.
}

TEST_CASE("every pair of groups is joined and no router has more than h global cables",
          "[topology][dragonfly]") {
  const std::uint32_t p = 2, a = 4, h = 2;
  const auto g = GENERATE(2U, 3U, 5U, 6U, 8U, 9U);
  CAPTURE(g);
  const Topology topology = build_topology(cluster(single(), p * a * g, dragonfly(p, a, h)));
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::map<VertexId, std::uint32_t> globals;
  for (const Link& link : topology.links) {
    if (link.kind != LinkKind::Global) continue;
    const Vertex& from = topology.vertices[link.from];
    const Vertex& to = topology.vertices[link.to];
    CHECK(from.unit != to.unit);
    CHECK(from.rail == from.unit);
    pairs.emplace(from.unit, to.unit);
    CHECK(++globals[link.from] <= h);
  }
  CHECK(pairs.size() == g * (g - 1));
  // All ports are used, but for one per group when neither a share each nor a pairing exists.
  const std::uint32_t rest = a * h % (g - 1);
  const std::uint32_t used = a * h - (rest % 2 == 1 && g % 2 == 1 ? 1 : 0);
  CHECK(cables(topology, LinkKind::Global) == g * used / 2);
}

TEST_CASE("DeepSeek's dragonfly of 64-port routers has 16,352 switches and 384,272 cables",
          "[topology][dragonfly]") {
  const std::uint64_t p = 16, a = 32, h = 16, g = 511;
  const Topology topology =
      build_topology(cluster(single(), static_cast<std::uint32_t>(p * a * g),
                             dragonfly(static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(a),
                                       static_cast<std::uint32_t>(h))));
  CHECK(topology.gpus.size() == 261632);
  CHECK(count(topology, VertexKind::Leaf) == 16352);
  CHECK(cables(topology, LinkKind::Local) + cables(topology, LinkKind::Global) == 384272);
}

TEST_CASE("a dragonfly without a shape takes the smallest balanced one", "[topology][dragonfly]") {
  const Topology topology = build_topology(cluster(hgx(), 16, fabric(FabricKind::Dragonfly)));
  // p = 3, a = 6, h = 3 holds 342 of the 128 NICs: 8 groups.
  CHECK(count(topology, VertexKind::Leaf) == 48);
  CHECK(cables(topology, LinkKind::HostLeaf) == 128);
  CHECK_FALSE(find_disconnected(topology));
}

TEST_CASE("a dragonfly that does not fit is refused with the numbers", "[topology][dragonfly]") {
  const auto error = [](const FabricSpec& spec, std::uint32_t nodes) {
    return input_error([&] { (void)build_topology(cluster(single(), nodes, spec)); });
  };
  CHECK(error(dragonfly(32, 32, 16), 8) ==
        "fabric \"dragonfly\": a router needs 32 hosts + 31 local + 16 global = 79 ports, but a "
        "switch has 64");
  CHECK(error(dragonfly(1, 2, 1), 7) ==
        "fabric \"dragonfly\": 7 NICs do not fit: 3 groups of 2 routers with 1 hosts hold 6");
  CHECK(error(dragonfly(1, 2, 0), 2) ==
        "fabric \"dragonfly\": give all of hosts per router, routers per group and globals per "
        "router, or none");
}

}  // namespace flyover::test
