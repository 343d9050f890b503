// The published switch and cable counts of real clusters, from one rule.

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

namespace {

struct Row {
  std::uint32_t nodes;
  std::uint64_t leaves, spines, cores, node_leaf, leaf_spine, spine_core;
};

void check_row(const Topology& topology, const Row& row) {
  CAPTURE(row.nodes);
  CHECK(count(topology, VertexKind::Leaf) == row.leaves);
  CHECK(count(topology, VertexKind::Spine) == row.spines);
  CHECK(count(topology, VertexKind::Core) == row.cores);
  CHECK(cables(topology, LinkKind::HostLeaf) == row.node_leaf);
  CHECK(cables(topology, LinkKind::LeafSpine) == row.leaf_spine);
  CHECK(cables(topology, LinkKind::SpineCore) == row.spine_core);
}

// No switch uses more ports than it has; a slower link takes its share of a port.
void check_ports(const Topology& topology, std::uint32_t radix, Bandwidth port = 400_Gbps) {
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const VertexKind kind = topology.vertices[VertexId{v}].kind;
    if (kind != VertexKind::Leaf && kind != VertexKind::Spine && kind != VertexKind::Core) continue;
    double rate = 0;
    for (const LinkId id : topology.out(VertexId{v})) {
      rate += topology.links[id].bandwidth.per_second();
    }
    const double ports = rate / port.per_second();
    if (ports > radix) FAIL(vertex_name(topology, VertexId{v}) << " uses " << ports << " ports");
  }
}

}  // namespace

TEST_CASE("the SuperPOD H100 has the switches and cables of its reference architecture",
          "[topology][clos]") {
  const Row row = GENERATE(
      Row{31, 8, 4, 0, 252, 256, 0}, Row{63, 16, 8, 0, 508, 512, 0},
      Row{95, 24, 16, 0, 764, 768, 0}, Row{127, 32, 16, 0, 1020, 1024, 0},
      Row{256, 64, 32, 0, 2048, 2048, 0}, Row{512, 128, 128, 64, 4096, 4096, 4096},
      Row{1024, 256, 256, 128, 8192, 8192, 8192}, Row{2048, 512, 512, 256, 16384, 16384, 16384});
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.nodes_per_unit = 32;
  spec.manager_ports = 4;

  const Topology topology = build_topology(cluster(hgx(), row.nodes, spec));

  check_row(topology, row);
  check_ports(topology, 64);
}

TEST_CASE("the twin-planar SuperPOD B300 Ethernet has the counts of its reference architecture",
          "[topology][clos]") {
  const Row row = GENERATE(Row{64, 16, 8, 0, 512, 512, 0}, Row{256, 64, 32, 0, 2048, 2048, 0},
                           Row{1024, 256, 128, 0, 8192, 8192, 0});
  NodeSpec node = hgx();
  node.nic_bandwidth = 800_Gbps;
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.link_bandwidth = 400_Gbps;
  spec.radix = 128;
  spec.nodes_per_unit = 64;
  spec.nic_ports = 2;
  spec.ports_per_cable = 2;

  const Topology topology = build_topology(cluster(node, row.nodes, spec));

  check_row(topology, row);
  check_ports(topology, 128);
}

TEST_CASE("the SuperPOD B300 XDR has the counts of its reference architecture",
          "[topology][clos]") {
  const Row row = GENERATE(Row{72, 8, 4, 0, 576, 576, 0}, Row{144, 16, 8, 0, 1152, 1152, 0},
                           Row{288, 32, 18, 0, 2304, 2304, 0}, Row{576, 64, 36, 0, 4608, 4608, 0},
                           Row{1296, 144, 72, 0, 10368, 10368, 0});
  NodeSpec node = hgx();
  node.nic_bandwidth = 800_Gbps;
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.radix = 144;
  spec.nodes_per_unit = 72;

  const Topology topology = build_topology(cluster(node, row.nodes, spec));

  check_row(topology, row);
  check_ports(topology, 144, 800_Gbps);
}

TEST_CASE("DeepSeek's eight planes have 768 switches and 16,384 cables between them at their limit",
          "[topology][clos]") {
  const Row row =
      GENERATE(Row{2048, 512, 256, 0, 16384, 16384, 0}, Row{256, 64, 32, 0, 2048, 2048, 0},
               Row{64, 8, 0, 0, 512, 0, 0}, Row{2, 8, 0, 0, 16, 0, 0});
  const Topology topology =
      build_topology(cluster(hgx(), row.nodes, fabric(FabricKind::MultiPlane)));

  check_row(topology, row);
  check_ports(topology, 64);
  CHECK(input_error(
            [] { (void)build_topology(cluster(hgx(), 2049, fabric(FabricKind::MultiPlane))); }) ==
        "fabric \"multi-plane\": 65 leaves need a third tier of switches: a spine has 64 ports "
        "(use \"fat-tree\" or a larger radix)");
}

TEST_CASE("two- and three-tier fat trees of 64-port switches hold what DeepSeek's table 3 says",
          "[topology][clos]") {
  const Topology two = build_topology(cluster(single(), 2048, fabric(FabricKind::LeafSpine)));
  check_row(two, {2048, 64, 32, 0, 2048, 2048, 0});
  const Topology three = build_topology(cluster(single(), 65536, fabric(FabricKind::FatTree)));
  check_row(three, {65536, 2048, 2048, 1024, 65536, 65536, 65536});
  check_ports(three, 64);
}

TEST_CASE("Alibaba's HPN pod has 240 leaves and 120 spines in two planes", "[topology][clos]") {
  NodeSpec node = hgx();
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.link_bandwidth = 400_Gbps;
  spec.radix = 128;
  spec.nodes_per_unit = 128;
  spec.nic_ports = 2;
  spec.oversubscription = 25.6 / 24;

  const Topology topology = build_topology(cluster(node, 15 * 128, spec));

  check_row(topology, {15 * 128, 240, 120, 0, 30720, 14400, 0});
  check_ports(topology, 128);
}

TEST_CASE("Meta's 24k cluster has 18 spines in each of 8 pods", "[topology][clos]") {
  FabricSpec spec = fabric(FabricKind::FatTree);
  spec.radix = 576;
  spec.nodes_per_unit = 2;
  spec.units_per_pod = 192;
  spec.oversubscription = 16.0 / 18;
  spec.core_oversubscription = 7;
  spec.spines = 18;

  const Topology topology = build_topology(cluster(hgx(), 3072, spec));

  check_row(topology, {3072, 1536, 144, 18, 24576, 27648, 144 * 28});
}

TEST_CASE("derived sizes are no larger than the nodes need", "[topology][clos]") {
  const FabricSpec rail = fabric(FabricKind::RailOptimized);
  check_row(build_topology(cluster(hgx(), 2, rail)), {2, 8, 1, 0, 16, 16, 0});
  check_row(build_topology(cluster(hgx(), 1, rail)), {1, 8, 1, 0, 8, 8, 0});
  check_row(build_topology(cluster(single(), 4, rail)), {4, 1, 0, 0, 4, 0, 0});
  check_row(build_topology(cluster(hgx(), 2, fabric(FabricKind::SingleSwitch))),
            {2, 1, 0, 0, 16, 0, 0});
  check_row(build_topology(cluster(hgx(), 300, fabric(FabricKind::SingleSwitch))),
            {300, 1, 0, 0, 2400, 0, 0});
  check_row(build_topology(cluster(hgx(), 4, fabric(FabricKind::LeafSpine))),
            {4, 1, 0, 0, 32, 0, 0});
  check_row(build_topology(cluster(hgx(), 8, fabric(FabricKind::LeafSpine))),
            {8, 2, 1, 0, 64, 64, 0});
  check_row(build_topology(cluster(hgx(), 64, fabric(FabricKind::RailOnly))),
            {64, 8, 0, 0, 512, 0, 0});
}

TEST_CASE("a rail-optimized unit has NIC r of each of its nodes on leaf r", "[topology][clos]") {
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.nodes_per_unit = 4;
  const Topology topology = build_topology(cluster(hgx(), 8, spec));

  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const Vertex& nic = topology.vertices[VertexId{v}];
    if (nic.kind != VertexKind::Nic) continue;
    for (const LinkId id : topology.out(VertexId{v})) {
      const Link& link = topology.links[id];
      if (link.kind != LinkKind::HostLeaf) continue;
      const Vertex& leaf = topology.vertices[link.to];
      CHECK(leaf.rail == nic.index);
      CHECK(leaf.unit == index(nic.node) / 4);
      CHECK(leaf.index == 8 * leaf.unit + nic.index);
      CHECK(link.bandwidth == 400_Gbps);
      CHECK(link.latency == 450ns);
    }
  }
}

TEST_CASE("oversubscription takes uplinks away", "[topology][clos]") {
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.nodes_per_unit = 32;
  spec.oversubscription = 2;
  check_row(build_topology(cluster(hgx(), 32, spec)), {32, 8, 2, 0, 256, 128, 0});
  spec.oversubscription = 3;  // 11 uplinks: 10.7 rounded up. One spine cannot take 88.
  check_row(build_topology(cluster(hgx(), 32, spec)), {32, 8, 11, 0, 256, 88, 0});

  FabricSpec tree = fabric(FabricKind::FatTree);
  tree.core_oversubscription = 3;  // A spine has 48 ports down and 16 up.
  const Topology topology = build_topology(cluster(single(), 96 * 32, tree));
  check_row(topology, {96 * 32, 96, 64, 32, 3072, 3072, 1024});
  check_ports(topology, 64);
}

TEST_CASE("faster and slower NICs take their share of a switch port", "[topology][clos]") {
  NodeSpec slow = hgx();
  slow.nic_bandwidth = 200_Gbps;
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.link_bandwidth = 400_Gbps;
  // 64 NICs at half rate fill 32 ports, and 32 cables carry them on.
  check_row(build_topology(cluster(slow, 64, spec)), {64, 8, 4, 0, 512, 256, 0});
}

TEST_CASE("racks of 72 GPUs share four rails", "[topology][clos]") {
  NodeSpec rack = hgx();
  rack.gpus = rack.nics = 72;
  rack.nic_rail.resize(72);
  for (std::uint32_t i = 0; i < 72; ++i) rack.nic_rail[i] = i % 4;
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.nodes_per_unit = 8;
  const Topology topology = build_topology(cluster(rack, 8, spec));
  // 144 NICs per rail: five leaves of 29 or 28.
  check_row(topology, {8, 20, 29, 0, 576, 580, 0});
  check_ports(topology, 64);
}

TEST_CASE("spines and cores can be asked for", "[topology][clos]") {
  FabricSpec spec = fabric(FabricKind::RailOptimized);
  spec.nodes_per_unit = 32;
  spec.spines = 8;
  check_row(build_topology(cluster(hgx(), 32, spec)), {32, 8, 8, 0, 256, 256, 0});
  spec.spines = 3;
  CHECK(
      input_error([&] { (void)build_topology(cluster(hgx(), 32, spec)); }) ==
      "fabric \"rail-optimized\": 8 leaves with 32 uplinks need 4 spines of 64 ports down, got 3");
  spec.spines = 33;
  CHECK(input_error([&] { (void)build_topology(cluster(hgx(), 32, spec)); }) ==
        "fabric \"rail-optimized\": 33 spines are more than the 32 uplinks of a leaf, which could "
        "not reach them all");
  spec.spines = 0;
  spec.cores = 128;
  check_row(build_topology(cluster(hgx(), 512, spec)), {512, 128, 128, 128, 4096, 4096, 4096});
  spec.cores = 63;
  CHECK(input_error([&] { (void)build_topology(cluster(hgx(), 512, spec)); }) ==
        "fabric \"rail-optimized\": 63 cores do not divide over the 32 spines of a pod");
  spec.cores = 32;
  CHECK(input_error([&] { (void)build_topology(cluster(hgx(), 512, spec)); }) ==
        "fabric \"rail-optimized\": 32 cores make groups of 1, but 4 pods with 32 cables from each "
        "spine need 2 to 32");
}

TEST_CASE("a fabric that does not fit its switches is refused with the numbers",
          "[topology][clos]") {
  const auto error = [](FabricSpec spec, const NodeSpec& node, std::uint32_t nodes) {
    return input_error([&] { (void)build_topology(cluster(node, nodes, spec)); });
  };
  FabricSpec spec = fabric(FabricKind::LeafSpine);
  spec.nodes_per_unit = 8;
  CHECK(error(spec, hgx(), 16) ==
        "fabric \"leaf-spine\": a leaf needs 64 ports down and 64 up, but a switch has 64");
  spec.nodes_per_unit = 9;
  CHECK(error(spec, hgx(), 9) ==
        "fabric \"leaf-spine\": a leaf needs 72 ports down, but a switch has 64");
  spec = fabric(FabricKind::LeafSpine);
  CHECK(
      error(spec, hgx(), 512) ==
      "fabric \"leaf-spine\": 128 leaves need a third tier of switches: a spine has 64 ports (use "
      "\"fat-tree\" or a larger radix)");
  spec = fabric(FabricKind::RailOptimized);
  spec.oversubscription = 0;
  CHECK(error(spec, hgx(), 2) == "fabric \"rail-optimized\": oversubscription must be above zero");
  spec = fabric(FabricKind::RailOptimized);
  spec.tiers = 4;
  CHECK(error(spec, hgx(), 2) == "fabric \"rail-optimized\": expected 2 or 3 tiers");
  spec = fabric(FabricKind::RailOptimized);
  spec.radix = 1;
  CHECK(error(spec, hgx(), 2) == "fabric \"rail-optimized\": a switch needs at least two ports");
  spec = fabric(FabricKind::RailOptimized);
  spec.nic_ports = 0;
  CHECK(error(spec, hgx(), 2) == "fabric \"rail-optimized\": expected at least one port");
  spec = fabric(FabricKind::RailOptimized);
  spec.radix = 8;
  CHECK(error(spec, hgx(), 64) ==
        "fabric \"rail-optimized\": a unit has 8 leaves, but a spine has only 4 ports down");
  spec = fabric(FabricKind::FatTree);
  spec.radix = 4;
  CHECK(error(spec, hgx(), 8) ==
        "fabric \"fat-tree\": 16 pods are more than a core switch has ports (4)");
  spec = fabric(FabricKind::MultiPlane);
  spec.planes = 9;
  CHECK(error(spec, hgx(), 2) ==
        "fabric \"multi-plane\": no NIC for plane 8: there are 9 planes but 8 rails");
}

}  // namespace flyover::test
