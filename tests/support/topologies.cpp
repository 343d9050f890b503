#include "support/topologies.hpp"

#include <stdexcept>
#include <string>

namespace flyover::test {

using namespace flyover::literals;

namespace {

NodeSpec with_buses(NodeSpec spec) {
  spec.gpu.name = "test-gpu";
  spec.gpus = 8;
  spec.pcie_switches = 4;
  spec.cpus = 2;
  spec.pcie_bandwidth = 55_GBps;
  spec.cpu_bandwidth = 40_GBps;
  spec.pcie_latency = 300ns;
  spec.nics = 8;
  spec.nic_bandwidth = 50_GBps;
  return spec;
}

}  // namespace

NodeSpec switched_node() {
  NodeSpec spec;
  spec.name = "switched";
  spec.gpu.scale_up = "nvlink4";
  spec.scale_up = ScaleUp::Switched;
  spec.lane_bandwidth = 25_GBps;
  spec.links_per_switch = {5, 4, 4, 5};
  spec.scale_up_latency = 200ns;
  spec.in_switch_reduction = true;
  return with_buses(spec);
}

NodeSpec mesh_node() {
  NodeSpec spec;
  spec.name = "mesh";
  spec.gpu.scale_up = "xgmi-test";
  spec.scale_up = ScaleUp::Mesh;
  spec.lane_bandwidth = 50_GBps;
  spec.mesh_lanes = 1;
  spec.scale_up_latency = 200ns;
  return with_buses(spec);
}

NodeSpec cube_mesh_node() {
  NodeSpec spec;
  spec.name = "cube-mesh";
  spec.gpu.scale_up = "nvlink2";
  spec.scale_up = ScaleUp::Explicit;
  spec.lane_bandwidth = 25_GBps;
  spec.scale_up_links = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                         {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                         {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  spec.scale_up_latency = 200ns;
  spec = with_buses(spec);
  spec.nics = 4;
  return spec;
}

NodeSpec pcie_node() {
  NodeSpec spec;
  spec.name = "pcie-box";
  spec.gpu.scale_up = "pcie5";
  spec = with_buses(spec);
  spec.pcie_switches = 2;
  spec.nics = 2;
  return spec;
}

NodeSpec bare_node(std::uint32_t gpus) {
  NodeSpec spec = switched_node();
  spec.name = "bare";
  spec.gpus = spec.nics = gpus;
  spec.pcie_switches = spec.cpus = 0;
  return spec;
}

Topology cluster(const NodeSpec& node, std::uint32_t count, FabricKind fabric,
                 const std::function<void(FabricSpec&)>& change) {
  ClusterSpec spec;
  spec.name = "test";
  spec.nodes.push_back({node, count});
  spec.fabric.kind = fabric;
  spec.fabric.link_latency = 500ns;
  if (change) change(spec.fabric);
  return build_topology(spec);
}

VertexId vertex(const Topology& topology, std::string_view name) {
  for (std::uint32_t v = 0; v < topology.vertices.size(); ++v) {
    if (vertex_name(topology, VertexId{v}) == name) return VertexId{v};
  }
  throw std::invalid_argument("no vertex is called " + std::string(name));
}

std::vector<LinkId> links_between(const Topology& topology, std::string_view from,
                                  std::string_view to) {
  const VertexId a = vertex(topology, from), b = vertex(topology, to);
  std::vector<LinkId> found;
  for (const LinkId l : topology.out(a)) {
    if (topology.links[l].to == b) found.push_back(l);
  }
  if (found.empty()) {
    throw std::invalid_argument("no link from " + std::string(from) + " to " + std::string(to));
  }
  return found;
}

void take_down(Topology& topology, std::string_view name) {
  topology.vertices[vertex(topology, name)].up = false;
}

void take_down(Topology& topology, std::string_view from, std::string_view to) {
  for (const LinkId l : links_between(topology, from, to)) topology.links[l].up = false;
  for (const LinkId l : links_between(topology, to, from)) topology.links[l].up = false;
}

void scale_bandwidth(Topology& topology, std::string_view from, std::string_view to,
                     double factor) {
  for (const LinkId l : links_between(topology, from, to)) {
    topology.links[l].bandwidth = topology.links[l].nominal * factor;
  }
}

Sketch& Sketch::node(std::string_view name, bool in_switch_reduction) {
  Node node;
  node.preset = name;
  node.type = static_cast<std::uint32_t>(topology_.nodes.size());
  node.first_vertex = VertexId{static_cast<std::uint32_t>(topology_.vertices.size())};
  node.first_gpu = static_cast<std::uint32_t>(topology_.gpus.size());
  node.in_switch_reduction = in_switch_reduction;
  topology_.nodes.push_back(node);
  return *this;
}

VertexId Sketch::add(VertexKind kind, std::string_view name, std::uint32_t rail) {
  Vertex vertex;
  vertex.kind = kind;
  vertex.rail = rail;
  vertex.node = NodeId{static_cast<std::uint32_t>(topology_.nodes.size() - 1)};
  Node& node = topology_.nodes[vertex.node];
  ++node.vertices;
  topology_.names.emplace_back(name);
  const VertexId id = topology_.vertices.push_back(vertex);
  if (kind == VertexKind::Gpu) {
    ++node.gpus;
    topology_.gpus.push_back(id);
  }
  return id;
}

VertexId Sketch::fabric(VertexKind kind, std::string_view name) {
  Vertex vertex;
  vertex.kind = kind;
  topology_.names.emplace_back(name);
  const VertexId id = topology_.vertices.push_back(vertex);
  if (kind == VertexKind::Gpu) topology_.gpus.push_back(id);
  return id;
}

void Sketch::cable(VertexId a, VertexId b, LinkKind kind, Bandwidth bandwidth, Duration latency) {
  Link link;
  link.bandwidth = link.nominal = bandwidth;
  link.latency = latency;
  link.kind = kind;
  link.from = a;
  link.to = b;
  topology_.links.push_back(link);
  link.from = b;
  link.to = a;
  topology_.links.push_back(link);
}

Topology Sketch::build(RoutingPolicy policy) {
  topology_.name = "sketch";
  topology_.routing = policy;
  topology_.gpu_models.emplace_back();
  topology_.index_links();
  return topology_;
}

}  // namespace flyover::test
