#include "flyover/topology/topology.hpp"

#include <catch2/catch.hpp>

#include "clusters.hpp"

namespace flyover::test {

TEST_CASE("adjacency lists every link once at each of its ends, in order", "[topology]") {
  const Topology topology = build_topology(cluster(hgx(), 4, fabric(FabricKind::RailOptimized)));
  std::size_t out = 0, in = 0;
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    const auto leaving = topology.out(VertexId{v});
    const auto entering = topology.in(VertexId{v});
    CHECK(std::ranges::is_sorted(leaving));
    CHECK(std::ranges::is_sorted(entering));
    for (const LinkId id : leaving) CHECK(topology.links[id].from == VertexId{v});
    for (const LinkId id : entering) CHECK(topology.links[id].to == VertexId{v});
    out += leaving.size();
    in += entering.size();
  }
  CHECK(out == topology.links.size());
  CHECK(in == topology.links.size());
}

TEST_CASE("the two directions of a cable are neighbours", "[topology]") {
  const Topology topology = build_topology(cluster(hgx(), 40, fabric(FabricKind::RailOptimized)));
  for (std::uint32_t l = 0; l < topology.links.size(); l += 2) {
    const Link& there = topology.links[LinkId{l}];
    const Link& back = topology.links[LinkId{l + 1}];
    if (there.from != back.to || there.to != back.from) FAIL(l);
  }
}

TEST_CASE("nodes of a type have the same links in the same order, before those of the fabric",
          "[topology]") {
  ClusterSpec spec = cluster(hgx(), 2, fabric(FabricKind::RailOptimized));
  NodeSpec small = hgx();
  small.gpus = small.nics = 4;
  spec.nodes.push_back({small, 2});
  spec.nodes.push_back({hgx(), 1});

  const Topology topology = build_topology(spec);

  std::uint32_t next = 0;
  for (const Node& node : topology.nodes) {
    REQUIRE(node.first_link == LinkId{next});
    const Node& first = topology.nodes[NodeId{node.type == 0 ? 0U : 2U}];
    REQUIRE(node.links == first.links);
    const auto local = [](const Node& owner, VertexId v) {
      return index(v) - index(owner.first_vertex);
    };
    for (std::uint32_t l = 0; l < node.links; ++l) {
      const Link& link = topology.links[LinkId{next + l}];
      const Link& like = topology.links[LinkId{static_cast<std::uint32_t>(first.first_link) + l}];
      CHECK(local(node, link.from) == local(first, like.from));
      CHECK(local(node, link.to) == local(first, like.to));
      CHECK(local(node, link.to) < node.vertices);
      CHECK(link.kind == like.kind);
      CHECK(link.lanes == like.lanes);
    }
    next += node.links;
  }
  CHECK(topology.links_of_nodes() == next);
  for (std::uint32_t l = next; l < topology.links.size(); ++l) {
    const Link& link = topology.links[LinkId{l}];
    CHECK((topology.vertices[link.from].node == no_node ||
           topology.vertices[link.to].node == no_node));
  }
}

TEST_CASE("a node's vertices and GPUs are consecutive, fabric vertices have no node",
          "[topology]") {
  const Topology topology = build_topology(cluster(hgx(), 3, fabric(FabricKind::LeafSpine)));
  for (std::uint32_t n = 0; n < 3; ++n) {
    const Node& node = topology.nodes[NodeId{n}];
    CHECK(node.first_gpu == 8 * n);
    CHECK(node.gpus == 8);
    CHECK(node.vertices == 30);
    for (std::uint32_t i = 0; i < node.vertices; ++i) {
      const VertexId v{static_cast<std::uint32_t>(node.first_vertex) + i};
      CHECK(topology.vertices[v].node == NodeId{n});
    }
    CHECK(topology.gpus[node.first_gpu] == node.first_vertex);
    CHECK(topology.node_of_rank(8 * n + 7) == NodeId{n});
  }
  CHECK(topology.vertices[VertexId{90}].node == no_node);
  CHECK(topology.gpu_model(5).name == "H100-SXM");
}

TEST_CASE("vertices are named after their node, kind and index", "[topology]") {
  Topology topology = build_topology(cluster(hgx(), 2, fabric(FabricKind::RailOptimized)));
  CHECK(vertex_name(topology, topology.gpus[10]) == "node1/gpu2");
  CHECK(vertex_name(topology, VertexId{8}) == "node0/nvswitch0");
  CHECK(vertex_name(topology, VertexId{12}) == "node0/pcie-switch0");
  CHECK(vertex_name(topology, VertexId{29}) == "node0/nic7");
  CHECK(vertex_name(topology, VertexId{60}) == "leaf0");
  topology.names.assign(topology.vertices.size(), "mine");
  CHECK(vertex_name(topology, VertexId{60}) == "mine");
}

TEST_CASE("every kind has a name that finds it again", "[topology]") {
  for (int i = 0; i <= static_cast<int>(VertexKind::Host); ++i) {
    const auto kind = static_cast<VertexKind>(i);
    CHECK(vertex_kind(to_string(kind)) == kind);
  }
  for (int i = 0; i <= static_cast<int>(LinkKind::Other); ++i) {
    const auto kind = static_cast<LinkKind>(i);
    CHECK(link_kind(to_string(kind)) == kind);
  }
  for (int i = 0; i <= static_cast<int>(RoutingPolicy::DimensionOrder); ++i) {
    const auto policy = static_cast<RoutingPolicy>(i);
    CHECK(routing_policy(to_string(policy)) == policy);
  }
  for (const FabricInfo& info : fabrics()) {
    CHECK(fabric_kind(info.name) == info.kind);
    CHECK(to_string(info.kind) == info.name);
  }
  CHECK_FALSE(vertex_kind("router"));
  CHECK_FALSE(link_kind("wire"));
  CHECK_FALSE(routing_policy("random"));
  CHECK_FALSE(fabric_kind("hypercube"));
}

}  // namespace flyover::test
