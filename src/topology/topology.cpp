#include "flyover/topology/topology.hpp"

#include <algorithm>
#include <array>

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

// Counting sort of the links by one of their ends: stable, so each list is in order of LinkId.
void index_by(const IdVector<LinkId, Link>& links, std::size_t vertices, VertexId Link::*end,
              std::vector<LinkId>& order, std::vector<std::uint32_t>& begin) {
  begin.assign(vertices + 1, 0);
  for (const Link& link : links) {
    require(index(link.from) < vertices && index(link.to) < vertices,
            "a link between vertices of its topology");
    ++begin[index(link.*end) + 1];
  }
  for (std::size_t v = 0; v < vertices; ++v) begin[v + 1] += begin[v];
  order.resize(links.size());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t l = 0; l < links.size(); ++l) {
    const LinkId id{static_cast<std::uint32_t>(l)};
    order[next[index(links[id].*end)]++] = id;
  }
}

std::span<const LinkId> slice(const std::vector<LinkId>& order,
                              const std::vector<std::uint32_t>& begin, VertexId v) {
  require(index(v) + 1 < begin.size(), "index_links() was called after the last vertex was added");
  return std::span(order).subspan(begin[index(v)], begin[index(v) + 1] - begin[index(v)]);
}

}  // namespace

std::span<const LinkId> Topology::out(VertexId v) const {
  return slice(out_, out_begin_, v);
}

std::span<const LinkId> Topology::in(VertexId v) const {
  return slice(in_, in_begin_, v);
}

void Topology::index_links() {
  index_by(links, vertices.size(), &Link::from, out_, out_begin_);
  index_by(links, vertices.size(), &Link::to, in_, in_begin_);
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
