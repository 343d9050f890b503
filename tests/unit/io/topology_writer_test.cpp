#include "flyover/io/topology_writer.hpp"

#include <catch2/catch.hpp>

#include "flyover/io/topology_reader.hpp"

namespace flyover::io {

namespace {

void check_equal(const Topology& a, const Topology& b) {
  CHECK(a.name == b.name);
  CHECK(a.gpus == b.gpus);
  CHECK(a.gpu_models == b.gpu_models);
  CHECK(a.fabric == b.fabric);
  CHECK(a.fabric_preset == b.fabric_preset);
  CHECK(a.in_network_reduction == b.in_network_reduction);
  CHECK(a.routing == b.routing);
  CHECK(a.routing_seed == b.routing_seed);
  CHECK(a.torus == b.torus);
  CHECK(a.ports_per_cable == b.ports_per_cable);
  CHECK(a.names == b.names);
  CHECK(a.notes == b.notes);
  REQUIRE(a.vertices.size() == b.vertices.size());
  REQUIRE(a.links.size() == b.links.size());
  REQUIRE(a.nodes.size() == b.nodes.size());
  bool equal = true;
  for (std::uint32_t v = 0; v < a.vertices.size(); ++v) {
    const Vertex& x = a.vertices[VertexId{v}];
    const Vertex& y = b.vertices[VertexId{v}];
    equal = equal && x.kind == y.kind && x.up == y.up && x.node == y.node && x.index == y.index &&
            x.rail == y.rail && x.unit == y.unit;
  }
  CHECK(equal);
  for (std::uint32_t l = 0; l < a.links.size(); ++l) {
    const Link& x = a.links[LinkId{l}];
    const Link& y = b.links[LinkId{l}];
    equal = equal && x.from == y.from && x.to == y.to && x.bandwidth == y.bandwidth &&
            x.nominal == y.nominal && x.latency == y.latency && x.kind == y.kind && x.up == y.up &&
            x.lanes == y.lanes;
  }
  CHECK(equal);
  for (std::uint32_t n = 0; n < a.nodes.size(); ++n) {
    const Node& x = a.nodes[NodeId{n}];
    const Node& y = b.nodes[NodeId{n}];
    equal = equal && x.preset == y.preset && x.type == y.type && x.first_vertex == y.first_vertex &&
            x.vertices == y.vertices && x.first_gpu == y.first_gpu && x.gpus == y.gpus &&
            x.gpu_model == y.gpu_model && x.in_switch_reduction == y.in_switch_reduction &&
            x.nic_model == y.nic_model && x.cpu_vendor == y.cpu_vendor;
  }
  CHECK(equal);
}

Topology read(std::string text) {
  return read_topology(Document::parse("t.json", std::move(text)));
}

}  // namespace

TEST_CASE("a topology written as JSON reads back to an equal graph", "[topology][writer]") {
  const auto argument = GENERATE(as<std::string>{}, "dgx-h100", "dgx-h100:3", "superpod-h100:31",
                                 "superpod-b300-ethernet:2", "gb200-nvl72:2", "mi355x-8:2",
                                 "pcie-8-bridged:2", "tpu-v4-cube", "deepseek-mpft:65", "dgx-1v");
  CAPTURE(argument);
  const Topology topology = load_topology(argument);
  check_equal(read(topology_json(topology)), topology);
}

TEST_CASE("changed links and vertices survive the round trip", "[topology][writer]") {
  Topology topology = load_topology("dgx-h100:2");
  Override change;
  change.selector = "nic[node=1,index=2]";
  change.up = false;
  apply_override(topology, change);
  change = {};
  change.selector = "link[from=node0/nic0,to=leaf0]";
  change.factor = 1.0 / 3;  // One direction only, and a rate that no decimal writes exactly.
  apply_override(topology, change);
  check_equal(read(topology_json(topology)), topology);
}

TEST_CASE("slow GPUs survive the round trip", "[topology][writer]") {
  Topology topology = load_topology("dgx-h100:2");
  Override change;
  change.selector = "node[index=0]";
  change.memory_factor = 0.7;
  apply_override(topology, change);
  change = {};
  change.selector = "gpu[node=1,index=3]";
  change.compute_factor = 1.0 / 3;
  apply_override(topology, change);
  const Topology again = read(topology_json(topology));
  check_equal(again, topology);
  CHECK(topology_json(again) == topology_json(topology));
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    CHECK(again.gpu_model(rank) == topology.gpu_model(rank));
    CHECK(again.bought_gpu_model(rank) == topology.bought_gpu_model(rank));
  }
}

TEST_CASE("an explicit graph keeps its own names, however odd", "[topology][writer]") {
  const Topology topology = read(R"({ "name": "odd <\"&\"> one", "gpu_models": ["h100"],
    "vertices": [ { "name": "a \"b\"", "kind": "gpu" }, { "name": "c<d>&", "kind": "gpu" } ],
    "edges": [ { "from": "a \"b\"", "to": "c<d>&", "bandwidth": "10 GB/s", "latency": "1 us",
                 "directed": true } ] })");
  check_equal(read(topology_json(topology)), topology);
  CHECK_THAT(topology_graphml(topology), Catch::Contains("c&lt;d&gt;&amp;"));
  CHECK_THAT(topology_dot(topology), Catch::Contains("\"c<d>&\""));
  CHECK_THAT(topology_svg(topology), Catch::Contains("c&lt;d&gt;&amp;"));
  CHECK_THAT(topology_svg(topology), Catch::Contains("odd &lt;&quot;&amp;&quot;&gt; one"));
}

TEST_CASE("DOT and GraphML name every vertex and link with its properties", "[topology][writer]") {
  const Topology topology = load_topology("dgx-h100:2");
  const std::string dot = topology_dot(topology);
  CHECK_THAT(dot, Catch::StartsWith("digraph G {"));
  CHECK_THAT(dot, Catch::Contains("\"node0/gpu0\" [kind=gpu, node=0, state=up];"));
  CHECK_THAT(dot, Catch::Contains("\"node0/gpu0\"->\"node0/nvswitch0\"  [bandwidth=\"125 GB/s\", "
                                  "kind=nvlink, lanes=5, latency=\"250 ns\", state=up];"));
  const std::string graphml = topology_graphml(topology);
  CHECK_THAT(graphml, Catch::Contains("<graphml"));
  CHECK_THAT(graphml, Catch::Contains(">node0/gpu0</data>"));
  std::size_t edges = 0;
  for (std::size_t at = graphml.find("<edge "); at != std::string::npos;
       at = graphml.find("<edge ", at + 1)) {
    ++edges;
  }
  CHECK(edges == topology.links.size());
}

TEST_CASE("the drawing names small tiers one by one and large ones in groups",
          "[topology][writer]") {
  const std::string small = topology_svg(load_topology("dgx-h100:2"));
  CHECK_THAT(small, Catch::StartsWith("<svg "));
  CHECK_THAT(small, Catch::EndsWith("</svg>\n"));
  for (const char* words : {">gpu7<", ">node1<", "leaf7", "spine0", "leaf-spine", "nvlink",
                            "host-leaf", "1 host-leaf cables, 50 GB/s each way"}) {
    CHECK_THAT(small, Catch::Contains(words));
  }
  const std::string large = topology_svg(load_topology("superpod-h100:2048"));
  CHECK(large.size() < 400'000);
  CHECK_THAT(large, Catch::Contains("nodes 0-127"));
  CHECK_THAT(large, Catch::Contains("\u00d7 1024"));
  CHECK_THAT(large, Catch::Contains("512 in all"));
  CHECK_THAT(large, !Catch::Contains(">gpu0<"));
}

}  // namespace flyover::io
