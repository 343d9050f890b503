#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

namespace {

// Two nodes of 8 on 8 leaves and 1 spine.
Topology pair_of_nodes() {
  return build_topology(cluster(hgx(), 2, fabric(FabricKind::RailOptimized)));
}

Override down(std::string selector) {
  Override change;
  change.selector = std::move(selector);
  change.up = false;
  return change;
}

Override slow(std::string selector, std::optional<double> compute, std::optional<double> memory) {
  Override change;
  change.selector = std::move(selector);
  change.compute_factor = compute;
  change.memory_factor = memory;
  return change;
}

std::size_t links_down(const Topology& topology) {
  return static_cast<std::size_t>(std::ranges::count(topology.links, false, &Link::up));
}

std::size_t vertices_down(const Topology& topology) {
  return static_cast<std::size_t>(std::ranges::count(topology.vertices, false, &Vertex::up));
}

std::size_t links_at(const Topology& topology, Bandwidth bandwidth) {
  return static_cast<std::size_t>(std::ranges::count(topology.links, bandwidth, &Link::bandwidth));
}

std::string error_of(const Override& change) {
  Topology topology = pair_of_nodes();
  return input_error([&] { apply_override(topology, change); });
}

}  // namespace

TEST_CASE("a NIC that goes down takes its links with it, and brings them back", "[topology]") {
  Topology topology = pair_of_nodes();
  apply_override(topology, down("nic[node=1,index=2]"));
  CHECK(vertices_down(topology) == 1);
  CHECK(links_down(topology) == 4);  // PCIe and network, two directions each.
  Override up = down("nic");
  up.up = true;
  apply_override(topology, up);
  CHECK(vertices_down(topology) == 0);
  CHECK(links_down(topology) == 0);
}

TEST_CASE("a link to something that is down stays down", "[topology]") {
  Topology topology = pair_of_nodes();
  apply_override(topology, down("leaf[index=0]"));
  apply_override(topology, down("nic[node=0,index=0]"));
  Override up = down("nic[node=0,index=0]");
  up.up = true;
  apply_override(topology, up);
  CHECK(vertices_down(topology) == 1);
  CHECK(links_down(topology) == 2 * 4);  // Two NICs and two uplinks.
}

TEST_CASE("selectors pick nodes, GPUs, switches and rails", "[topology]") {
  const auto down_after = [](std::string selector) {
    Topology topology = pair_of_nodes();
    apply_override(topology, down(std::move(selector)));
    return vertices_down(topology);
  };
  CHECK(down_after("node[index=1]") == 30);
  CHECK(down_after("node[node=0]") == 30);
  CHECK(down_after("node") == 60);
  CHECK(down_after("gpu[node=1]") == 8);
  CHECK(down_after("gpu[index=0|2|5-7]") == 10);
  CHECK(down_after("gpu[node=0,index=3]") == 1);
  CHECK(down_after("nvswitch[node=0]") == 4);
  CHECK(down_after("nic[rail=7]") == 2);
  CHECK(down_after("leaf[rail=1|2]") == 2);
  CHECK(down_after("leaf[unit=0]") == 8);
  CHECK(down_after("spine") == 1);
}

TEST_CASE("selectors pick links by kind, place and ends", "[topology]") {
  const auto down_after = [](std::string selector) {
    Topology topology = pair_of_nodes();
    apply_override(topology, down(std::move(selector)));
    CHECK(vertices_down(topology) == 0);
    return links_down(topology);
  };
  CHECK(down_after("link[kind=leaf-spine]") == 32);
  CHECK(down_after("link[kind=nvlink,node=0]") == 64);
  CHECK(down_after("link[kind=host-leaf|leaf-spine]") == 64);
  CHECK(down_after("link[kind=host-leaf,rail=3]") == 4);
  CHECK(down_after("link[kind=host-leaf,node=1]") == 16);
  CHECK(down_after("link[kind=leaf-spine,index=0]") == 2);
  CHECK(down_after("link[kind=leaf-spine,index=0|15]") == 4);
  // A cable is down both ways, whichever direction was named.
  CHECK(down_after("link[from=node0/nic2,to=leaf2]") == 2);
  CHECK(down_after("link[from=leaf2,to=node0/nic2]") == 2);
  CHECK(down_after("link[from=leaf2]") == 8);
  CHECK(down_after("link[from=leaf2|leaf3,to=spine0]") == 8);
}

TEST_CASE("rates change in the direction that is named, for all that match", "[topology]") {
  Topology topology = pair_of_nodes();
  Override change;
  change.selector = "link[kind=leaf-spine]";
  change.bandwidth = 200_Gbps;
  apply_override(topology, change);
  CHECK(links_at(topology, 200_Gbps) == 32);

  change.selector = "link[from=node0/nic2,to=leaf2]";
  change.bandwidth = 100_Gbps;
  apply_override(topology, change);
  CHECK(links_at(topology, 100_Gbps) == 1);
}

TEST_CASE("a degraded link knows what it was bought as", "[topology]") {
  Topology topology = pair_of_nodes();
  Override change;
  change.selector = "nic[node=0,index=0]";
  change.factor = 0.5;
  change.latency = 2us;
  apply_override(topology, change);
  apply_override(topology, change);  // Of nominal: not of what is left.

  std::size_t changed = 0;
  for (const Link& link : topology.links) {
    if (link.bandwidth == link.nominal) continue;
    ++changed;
    CHECK(link.kind == LinkKind::HostLeaf);  // The PCIe side is as it was.
    CHECK(link.bandwidth == 200_Gbps);
    CHECK(link.nominal == 400_Gbps);
    CHECK(link.latency == 2us);
  }
  CHECK(changed == 2);

  change.selector = "gpu[node=1,index=4]";
  change.latency = std::nullopt;
  apply_override(topology, change);
  changed = 0;
  for (const Link& link : topology.links) changed += link.bandwidth != link.nominal;
  CHECK(changed == 2 + 2 * 5);  // Four NVSwitches and a PCIe switch.

  change.selector = "node[index=1]";
  change.factor = 1;
  apply_override(topology, change);
  change.bandwidth = 100_Gbps;
  change.factor = std::nullopt;
  apply_override(topology, change);
  CHECK(links_at(topology, 100_Gbps) == 16);
}

TEST_CASE("one GPU of a node can be slower than the others", "[topology]") {
  Topology topology = pair_of_nodes();
  const GpuModel bought = topology.gpu_models.front();
  apply_override(topology, slow("gpu[node=1,index=3]", 0.75, std::nullopt));
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    CAPTURE(rank);
    CHECK(topology.bought_gpu_model(rank) == bought);
    CHECK((topology.gpu_model(rank) == bought) == (rank != 11));
  }
  const GpuModel& straggler = topology.gpu_model(11);
  CHECK(straggler.name == bought.name);
  CHECK(straggler.memory_bandwidth == bought.memory_bandwidth);
  for (const auto& [dtype, rate] : bought.flops) CHECK(straggler.flops.at(dtype) == rate * 0.75);

  // Shares are of what was bought, and each stays until it is changed.
  apply_override(topology, slow("gpu[node=1,index=3|4]", std::nullopt, 0.5));
  CHECK(topology.gpu_model(11).compute_factor == 0.75);
  CHECK(topology.gpu_model(11).memory_bandwidth == bought.memory_bandwidth * 0.5);
  CHECK(topology.gpu_model(12).compute_factor == 1);
  CHECK(topology.gpu_model(12).flops == bought.flops);
  apply_override(topology, slow("gpu", 1, 1));
  for (std::uint32_t rank = 0; rank < 16; ++rank) CHECK(topology.gpu_model(rank) == bought);
}

TEST_CASE("a slow node has slow GPUs", "[topology]") {
  Topology topology = pair_of_nodes();
  apply_override(topology, slow("node[index=1]", 0.9, 0.8));
  CHECK(topology.gpu_model(7).compute_factor == 1);
  for (std::uint32_t rank = 8; rank < 16; ++rank) {
    CHECK(topology.gpu_model(rank).compute_factor == 0.9);
    CHECK(topology.gpu_model(rank).memory_factor == 0.8);
  }
  CHECK(topology.gpu_models.size() == 2);  // As bought, and slow.
}

TEST_CASE("nobody who is as bought costs anything", "[topology]") {
  Topology topology = pair_of_nodes();
  apply_override(topology, slow("gpu", 1, std::nullopt));
  CHECK(topology.model_of_gpu.empty());
  CHECK(topology.gpu_models.size() == 1);
}

TEST_CASE("one of several parallel cables can be cut", "[topology]") {
  Topology topology = pair_of_nodes();
  apply_override(topology, down("link[kind=leaf-spine,rail=3,index=1]"));
  const TopologyInfo info = analyse(topology);
  for (const TierInfo& tier : info.tiers) {
    if (tier.kind == LinkKind::LeafSpine) CHECK(tier.down == 1);
  }
  CHECK(info.oversubscription.at("leaf") == 2);
}

TEST_CASE("a wrong selector is refused with what would be right", "[topology]") {
  CHECK(
      error_of(down("nics[node=0]")) ==
      "selector \"nics[node=0]\": \"nics\" is not a kind of vertex, \"node\" or \"link\", did you "
      "mean \"nic\"?");
  CHECK(error_of(down("nic[nodes=0]")) ==
        "selector \"nic[nodes=0]\": \"nodes\" is not a key of nic, did you mean \"node\"?");
  CHECK(error_of(down("nic[banana=0]")) ==
        "selector \"nic[banana=0]\": \"banana\" is not a key of nic (node, index, rail, unit)");
  CHECK(error_of(down("nic[node=0")) == "selector \"nic[node=0\": expected \"]\" at its end");
  CHECK(error_of(down("nic[node]")) == "selector \"nic[node]\": expected key=value, got \"node\"");
  CHECK(error_of(down("nic[]")) == "selector \"nic[]\": expected key=value, got \"\"");
  CHECK(error_of(down("nic[node=]")) ==
        "selector \"nic[node=]\": expected key=value, got \"node=\"");
  CHECK(error_of(down("nic[node=0,node=1]")) ==
        "selector \"nic[node=0,node=1]\": \"node\" is given twice");
  CHECK_THAT(error_of(down("nic[node=x]")), Catch::StartsWith("selector \"nic[node=x]\": "));
  CHECK(error_of(down("link[kind=leaf-spin]")) ==
        "selector \"link[kind=leaf-spin]\": \"leaf-spin\" is not a kind of link, did you mean "
        "\"leaf-spine\"?");
  CHECK(error_of(down("link[from=node0/nic9]")) ==
        "selector \"link[from=node0/nic9]\": there is no vertex \"node0/nic9\"");
  CHECK(error_of(down("nic[node=2]")) ==
        "selector \"nic[node=2]\": matches nothing (the topology has 16 nics and 2 nodes)");
  CHECK(error_of(down("core")) ==
        "selector \"core\": matches nothing (the topology has 0 cores and 2 nodes)");
  CHECK(error_of(down("node[index=7]")) ==
        "selector \"node[index=7]\": matches nothing (the topology has 2 nodes and 2 nodes)");
  Override nothing;
  nothing.selector = "nic";
  CHECK(error_of(nothing) ==
        "selector \"nic\": changes nothing: expected a state, bandwidth, factor, latency, "
        "compute_factor or memory_factor");
  Override factor;
  factor.selector = "nic";
  factor.factor = 1.5;
  CHECK(error_of(factor) == "selector \"nic\": expected a factor above 0 and at most 1, got 1.5");
  CHECK(error_of(slow("gpu", 0, std::nullopt)) ==
        "selector \"gpu\": expected a compute_factor above 0 and at most 1, got 0");
  CHECK(error_of(slow("gpu", std::nullopt, 1.5)) ==
        "selector \"gpu\": expected a memory_factor above 0 and at most 1, got 1.5");
  CHECK(error_of(slow("nic[node=0]", 0.5, std::nullopt)) ==
        "selector \"nic[node=0]\": a compute_factor is of gpus and nodes, not of a nic");
  CHECK(error_of(slow("link[kind=nvlink]", std::nullopt, 0.5)) ==
        "selector \"link[kind=nvlink]\": a memory_factor is of gpus and nodes, not of a link");
}

}  // namespace flyover::test
