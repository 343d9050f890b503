#include "flyover/topology/topology.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

template <class Kind>
struct Name {
  Kind kind;
  std::string_view name;
};

constexpr std::array vertex_names{
    Name<VertexKind>{VertexKind::Gpu, "gpu"},
    Name<VertexKind>{VertexKind::NvSwitch, "nvswitch"},
    Name<VertexKind>{VertexKind::PcieSwitch, "pcie-switch"},
    Name<VertexKind>{VertexKind::Cpu, "cpu"},
    Name<VertexKind>{VertexKind::Nic, "nic"},
    Name<VertexKind>{VertexKind::Leaf, "leaf"},
    Name<VertexKind>{VertexKind::Spine, "spine"},
    Name<VertexKind>{VertexKind::Core, "core"},
    Name<VertexKind>{VertexKind::Switch, "switch"},
    Name<VertexKind>{VertexKind::Host, "host"},
};

constexpr std::array link_names{
    Name<LinkKind>{LinkKind::NvLink, "nvlink"},
    Name<LinkKind>{LinkKind::Xgmi, "xgmi"},
    Name<LinkKind>{LinkKind::Pcie, "pcie"},
    Name<LinkKind>{LinkKind::CpuLink, "cpu-link"},
    Name<LinkKind>{LinkKind::HostLeaf, "host-leaf"},
    Name<LinkKind>{LinkKind::LeafSpine, "leaf-spine"},
    Name<LinkKind>{LinkKind::SpineCore, "spine-core"},
    Name<LinkKind>{LinkKind::Local, "local"},
    Name<LinkKind>{LinkKind::Global, "global"},
    Name<LinkKind>{LinkKind::Torus, "torus"},
    Name<LinkKind>{LinkKind::Other, "other"},
};

constexpr std::array policy_names{
    Name<RoutingPolicy>{RoutingPolicy::Ecmp, "ecmp"},
    Name<RoutingPolicy>{RoutingPolicy::Adaptive, "adaptive"},
    Name<RoutingPolicy>{RoutingPolicy::DimensionOrder, "dimension-order"},
};

template <class Kind, std::size_t n>
std::string_view name_of(const std::array<Name<Kind>, n>& names, Kind kind) {
  for (const auto& entry : names) {
    if (entry.kind == kind) return entry.name;
  }
  require(false, "every kind has a name");
  return {};
}

template <class Kind, std::size_t n>
std::optional<Kind> kind_of(const std::array<Name<Kind>, n>& names, std::string_view name) {
  for (const auto& entry : names) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

// The links of one node by one of their ends: link first_link + order[i] for i from begin[v], where
// v is its first vertex's v-th.
struct NodeIndex {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> order;

  [[nodiscard]] std::span<const std::uint32_t> links(std::uint32_t v) const {
    return std::span(order).subspan(begin[v], begin[v + 1] - begin[v]);
  }
};

// Turns counts, each one place behind its own, into where each begins.
void add_up(std::vector<std::uint32_t>& begin) {
  for (std::size_t v = 0; v + 1 < begin.size(); ++v) begin[v + 1] += begin[v];
}

NodeIndex index_node(const Topology& topology, const Node& node, VertexId Link::*end) {
  const auto link = [&](std::uint32_t l) -> const Link& {
    return topology.links[LinkId{static_cast<std::uint32_t>(node.first_link) + l}];
  };
  const auto local = [&](std::uint32_t l) {
    return index(link(l).*end) - index(node.first_vertex);
  };
  NodeIndex found;
  found.begin.assign(node.vertices + 1, 0);
  for (std::uint32_t l = 0; l < node.links; ++l) {
    require(local(l) < node.vertices, "a node's links between its vertices");
    ++found.begin[local(l) + 1];
  }
  add_up(found.begin);
  found.order.resize(node.links);
  std::vector<std::uint32_t> next(found.begin.begin(), found.begin.end() - 1);
  for (std::uint32_t l = 0; l < node.links; ++l) found.order[next[local(l)]++] = l;
  return found;
}

// Counting sort of the links by one of their ends: stable, so each list is in order of LinkId. A
// type's nodes are sorted once and for all of them.
void index_by(const Topology& topology, VertexId Link::*end, std::vector<LinkId>& order,
              std::vector<std::uint32_t>& begin) {
  const std::size_t vertices = topology.vertices.size();
  const auto links = static_cast<std::uint32_t>(topology.links.size());
  const std::uint32_t first_outside = topology.links_of_nodes();
  const auto end_of = [&](std::uint32_t l) {
    const std::size_t v = index(topology.links[LinkId{l}].*end);
    require(v < vertices, "a link between vertices of its topology");
    return v;
  };
  std::map<std::uint32_t, NodeIndex> types;
  const auto type_of = [&](const Node& node) -> const NodeIndex& {
    const auto known = types.find(node.type);
    if (known != types.end()) return known->second;
    return types.emplace(node.type, index_node(topology, node, end)).first->second;
  };

  begin.assign(vertices + 1, 0);
  for (const Node& node : topology.nodes) {
    if (node.links == 0) continue;
    const NodeIndex& type = type_of(node);
    for (std::uint32_t v = 0; v < node.vertices; ++v) {
      begin[index(node.first_vertex) + v + 1] = static_cast<std::uint32_t>(type.links(v).size());
    }
  }
  for (std::uint32_t l = first_outside; l < links; ++l) ++begin[end_of(l) + 1];
  add_up(begin);

  order.resize(links);
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (const Node& node : topology.nodes) {
    if (node.links == 0) continue;
    const NodeIndex& type = type_of(node);
    for (std::uint32_t v = 0; v < node.vertices; ++v) {
      std::uint32_t& at = next[index(node.first_vertex) + v];
      for (const std::uint32_t l : type.links(v)) {
        order[at++] = LinkId{static_cast<std::uint32_t>(node.first_link) + l};
      }
    }
  }
  for (std::uint32_t l = first_outside; l < links; ++l) order[next[end_of(l)]++] = LinkId{l};
}

std::span<const LinkId> slice(const std::vector<LinkId>& order,
                              const std::vector<std::uint32_t>& begin, VertexId first,
                              std::size_t count) {
  const std::size_t v = index(first);
  require(v + count < begin.size(), "index_links() was called after the last vertex was added");
  return std::span(order).subspan(begin[v], begin[v + count] - begin[v]);
}

}  // namespace

std::span<const LinkId> Topology::out(VertexId v) const {
  return slice(out_, out_begin_, v, 1);
}

std::span<const LinkId> Topology::in(VertexId v) const {
  return slice(in_, in_begin_, v, 1);
}

std::span<const LinkId> Topology::out(NodeId n) const {
  return slice(out_, out_begin_, nodes[n].first_vertex, nodes[n].vertices);
}

std::span<const LinkId> Topology::in(NodeId n) const {
  return slice(in_, in_begin_, nodes[n].first_vertex, nodes[n].vertices);
}

void Topology::index_links() {
  index_by(*this, &Link::from, out_, out_begin_);
  index_by(*this, &Link::to, in_, in_begin_);
}

std::uint32_t Topology::links_of_nodes() const {
  if (nodes.empty()) return 0;
  const Node& last = nodes[NodeId{static_cast<std::uint32_t>(nodes.size() - 1)}];
  return static_cast<std::uint32_t>(last.first_link) + last.links;
}

const GpuModel& Topology::gpu_model(std::uint32_t rank) const {
  return model_of_gpu.empty() ? bought_gpu_model(rank) : gpu_models[model_of_gpu[rank]];
}

const GpuModel& Topology::bought_gpu_model(std::uint32_t rank) const {
  return gpu_models[nodes[node_of_rank(rank)].gpu_model];
}

void Topology::slow_gpu(std::uint32_t rank, double compute_factor, double memory_factor) {
  require(compute_factor > 0 && compute_factor <= 1 && memory_factor > 0 && memory_factor <= 1,
          "shares of a GPU's rates above 0 and at most 1");
  const std::uint32_t bought = nodes[node_of_rank(rank)].gpu_model;
  std::uint32_t model = bought;
  if (compute_factor < 1 || memory_factor < 1) {
    GpuModel slow = gpu_models[bought];
    slow.compute_factor = compute_factor;
    slow.memory_factor = memory_factor;
    for (auto& [dtype, rate] : slow.flops) rate = rate * compute_factor;
    slow.memory_bandwidth = slow.memory_bandwidth * memory_factor;
    const auto known = std::ranges::find(gpu_models, slow);
    model = static_cast<std::uint32_t>(known - gpu_models.begin());
    if (known == gpu_models.end()) gpu_models.push_back(std::move(slow));
  }
  if (model_of_gpu.empty()) {
    if (model == bought) return;
    for (std::uint32_t r = 0; r < gpus.size(); ++r) {
      model_of_gpu.push_back(nodes[node_of_rank(r)].gpu_model);
    }
  }
  model_of_gpu[rank] = model;
}

std::string vertex_name(const Topology& topology, VertexId v) {
  if (!topology.names.empty()) return topology.names[index(v)];
  const Vertex& vertex = topology.vertices[v];
  if (vertex.node == no_node) return fmt::format("{}{}", to_string(vertex.kind), vertex.index);
  return fmt::format("node{}/{}{}", index(vertex.node), to_string(vertex.kind), vertex.index);
}

std::string_view to_string(VertexKind kind) {
  return name_of(vertex_names, kind);
}
std::string_view to_string(LinkKind kind) {
  return name_of(link_names, kind);
}
std::string_view to_string(RoutingPolicy policy) {
  return name_of(policy_names, policy);
}

std::optional<VertexKind> vertex_kind(std::string_view name) {
  return kind_of(vertex_names, name);
}
std::optional<LinkKind> link_kind(std::string_view name) {
  return kind_of(link_names, name);
}
std::optional<RoutingPolicy> routing_policy(std::string_view name) {
  return kind_of(policy_names, name);
}

}  // namespace flyover
