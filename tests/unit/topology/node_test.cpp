#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

namespace {

Topology one(const NodeSpec& node) {
  return build_topology(cluster(node, 1, fabric(FabricKind::None)));
}

// Lanes from a GPU to others over scale-up links.
std::uint32_t lanes_of(const Topology& topology, std::uint32_t gpu) {
  std::uint32_t lanes = 0;
  for (const LinkId id : topology.out(topology.gpus[gpu])) {
    const Link& link = topology.links[id];
    if (link.kind == LinkKind::NvLink || link.kind == LinkKind::Xgmi) lanes += link.lanes;
  }
  return lanes;
}

std::string error_of(const NodeSpec& node) {
  return input_error([&] { (void)one(node); });
}

}  // namespace

TEST_CASE("a switched node stripes each GPU's lanes over its switches", "[topology][node]") {
  const Topology topology = one(hgx());

  CHECK(topology.gpus.size() == 8);
  CHECK(count(topology, VertexKind::NvSwitch) == 4);
  CHECK(count(topology, VertexKind::PcieSwitch) == 8);
  CHECK(count(topology, VertexKind::Cpu) == 2);
  CHECK(count(topology, VertexKind::Nic) == 8);
  CHECK(cables(topology, LinkKind::NvLink) == 32);
  CHECK(cables(topology, LinkKind::Pcie) == 24);
  CHECK(cables(topology, LinkKind::CpuLink) == 1);
  for (std::uint32_t g = 0; g < 8; ++g) CHECK(lanes_of(topology, g) == 18);
  const Link& first = topology.links[topology.out(topology.gpus[0]).front()];
  CHECK(first.lanes == 5);
  CHECK(first.bandwidth == 125_GBps);
  CHECK(first.nominal == first.bandwidth);
  CHECK(first.latency == 250ns);
  const Node& node = topology.nodes[NodeId{0}];
  CHECK(node.in_switch_reduction);
  CHECK(node.nic_model == "ConnectX-7");
  CHECK(node.vertices == topology.vertices.size());
}

TEST_CASE("GPU i and NIC i share a PCIe switch", "[topology][node]") {
  const auto switches = GENERATE(4U, 8U);
  NodeSpec node = hgx();
  node.pcie_switches = switches;
  const Topology topology = one(node);
  const auto parent = [&](VertexId v) {
    for (const LinkId id : topology.out(v)) {
      const VertexId to = topology.links[id].to;
      if (topology.vertices[to].kind == VertexKind::PcieSwitch) return to;
    }
    return v;
  };
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const Vertex& nic = topology.vertices[VertexId{v}];
    if (nic.kind == VertexKind::Nic) {
      CHECK(parent(VertexId{v}) == parent(topology.gpus[nic.index]));
      CHECK(topology.vertices[parent(VertexId{v})].index == nic.index * switches / 8);
    }
  }
}

TEST_CASE("meshes, bridged pairs and listed links join the GPUs they should", "[topology][node]") {
  NodeSpec node = hgx();
  node.in_switch_reduction = true;  // Means nothing without a switch.
  node.mesh_lanes = 2;
  node.scale_up = ScaleUp::Mesh;
  node.gpu.scale_up = "xgmi-mi300";
  CHECK(cables(one(node), LinkKind::Xgmi) == 28);
  CHECK(lanes_of(one(node), 3) == 14);
  CHECK_FALSE(one(node).nodes[NodeId{0}].in_switch_reduction);
  node.scale_up = ScaleUp::Pairs;
  CHECK(cables(one(node), LinkKind::Xgmi) == 4);
  node.scale_up = ScaleUp::Explicit;
  node.scale_up_links = {{0, 1, 2}, {6, 7, 1}};
  CHECK(cables(one(node), LinkKind::Xgmi) == 2);
  CHECK(lanes_of(one(node), 0) == 2);
  node.scale_up = ScaleUp::None;
  CHECK(cables(one(node), LinkKind::Xgmi) == 0);
}

TEST_CASE("GPUs and NICs hang below the sockets when there is no PCIe switch", "[topology][node]") {
  NodeSpec node = hgx();
  node.pcie_switches = 0;
  node.gpu_pcie_bandwidth = 450_GBps;
  const Topology topology = one(node);
  CHECK(cables(topology, LinkKind::Pcie) == 16);
  const Link& up = topology.links[topology.out(topology.gpus[7]).back()];
  CHECK(topology.vertices[up.to].kind == VertexKind::Cpu);
  CHECK(topology.vertices[up.to].index == 1);
  CHECK(up.bandwidth == 450_GBps);
}

TEST_CASE("sockets of different boards are not joined", "[topology][node]") {
  NodeSpec node = hgx();
  node.cpus = 6;
  CHECK(cables(one(node), LinkKind::CpuLink) == 15);
  node.cpus_per_board = 2;
  CHECK(cables(one(node), LinkKind::CpuLink) == 3);
}

TEST_CASE("without a PCIe tree every GPU still has a NIC and every NIC a GPU", "[topology][node]") {
  NodeSpec node = hgx();
  node.pcie_switches = node.cpus = 0;
  node.pcie_bandwidth = Bandwidth{};
  const auto nics = GENERATE(1U, 2U, 8U, 16U);
  node.nics = nics;
  const Topology topology = one(node);
  CHECK(cables(topology, LinkKind::Pcie) == std::max(8U, nics));
  for (const VertexId gpu : topology.gpus) {
    CHECK(std::ranges::count(topology.out(gpu), LinkKind::Pcie, [&](LinkId id) {
            return topology.links[id].kind;
          }) == static_cast<std::ptrdiff_t>(std::max(1U, nics / 8)));
  }
}

TEST_CASE("a node may be one GPU and nothing else", "[topology][node]") {
  NodeSpec node = single();
  node.nics = 0;
  const Topology topology = one(node);
  CHECK(topology.vertices.size() == 1);
  CHECK(topology.links.empty());
  CHECK(topology.nodes[NodeId{0}].nic_model.empty());
}

TEST_CASE("NICs sit and ride where they are told to", "[topology][node]") {
  NodeSpec node = hgx();
  node.nics = 2;
  node.nic_pcie_switch = {7, 0};
  node.nic_rail = {3, 3};
  const Topology topology = one(node);
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const Vertex& nic = topology.vertices[VertexId{v}];
    if (nic.kind != VertexKind::Nic) continue;
    CHECK(nic.rail == 3);
    CHECK(topology.vertices[topology.links[topology.out(VertexId{v}).front()].to].index ==
          (nic.index == 0 ? 7U : 0U));
  }
}

TEST_CASE("a node that contradicts itself is refused", "[topology][node]") {
  const auto with = [](auto change) {
    NodeSpec node = hgx();
    change(node);
    return error_of(node);
  };
  CHECK(with([](NodeSpec& n) { n.gpus = 0; }) == "node \"hgx\": expected at least one GPU");
  CHECK(with([](NodeSpec& n) { n.links_per_switch.clear(); }) ==
        "node \"hgx\": switched scale-up wiring needs links_per_switch, such as [5, 4, 4, 5]");
  CHECK(with([](NodeSpec& n) {
          n.links_per_switch = {0, 0};
        }) == "node \"hgx\": links_per_switch has no links");
  CHECK(with([](NodeSpec& n) { n.scale_up = ScaleUp::Mesh; }) ==
        "node \"hgx\": mesh and pairs wiring need the lanes between two GPUs");
  CHECK(with([](NodeSpec& n) {
          n.scale_up = ScaleUp::Explicit;
          n.scale_up_links = {{0, 8, 1}};
        }) == "node \"hgx\": scale-up link 0-8 with 1 lanes is not between two of its 8 GPUs");
  CHECK(with([](NodeSpec& n) { n.lane_bandwidth = Bandwidth{}; }) ==
        "node \"hgx\": scale-up links need a lane bandwidth");
  CHECK(with([](NodeSpec& n) { n.pcie_bandwidth = Bandwidth{}; }) ==
        "node \"hgx\": its PCIe tree needs a bandwidth");
  CHECK(with([](NodeSpec& n) { n.cpu_bandwidth = Bandwidth{}; }) ==
        "node \"hgx\": sockets that are joined need a socket bandwidth");
  CHECK(with([](NodeSpec& n) { n.nic_bandwidth = Bandwidth{}; }) ==
        "node \"hgx\": its NICs need a bandwidth");
  CHECK(with([](NodeSpec& n) {
          n.nic_pcie_switch = {0, 1};
        }) == "node \"hgx\": expected the PCIe switch of each of its 8 NICs, got 2");
  CHECK(with([](NodeSpec& n) { n.nic_pcie_switch = {0, 1, 2, 3, 4, 5, 6, 8}; }) ==
        "node \"hgx\": there is no PCIe switch 8 (it has 8)");
  CHECK(with([](NodeSpec& n) { n.nic_rail = {0}; }) ==
        "node \"hgx\": expected the rail of each of its 8 NICs, got 1");
}

}  // namespace flyover::test
