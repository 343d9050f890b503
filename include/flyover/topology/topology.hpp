#pragma once

// A cluster as plain data: a directed property graph. Built once (builders.hpp), then only read.
//
// Vertices are GPUs, switches, NICs and CPU sockets; each link is one direction of a cable or bus.
// A node is one scale-up domain (an 8-GPU server, an NVL72 rack): its vertices carry its NodeId and
// the fabric's switches carry none.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/base/units.hpp"
#include "flyover/topology/hardware.hpp"

namespace flyover {

// Switch is a fabric switch of no stated tier, as in explicit graphs. Host is a machine without
// GPUs on a fabric port, such as the fabric manager of a SuperPOD; it has one link and carries no
// traffic.
enum class VertexKind : std::uint8_t {
  Gpu,
  NvSwitch,
  PcieSwitch,
  Cpu,
  Nic,
  Leaf,
  Spine,
  Core,
  Switch,
  Host
};
// Local and Global are the cables inside and between the groups of a dragonfly.
enum class LinkKind : std::uint8_t {
  NvLink,
  Xgmi,
  Pcie,
  CpuLink,
  HostLeaf,
  LeafSpine,
  SpineCore,
  Local,
  Global,
  Torus,
  Other
};
inline constexpr std::size_t link_kinds = static_cast<std::size_t>(LinkKind::Other) + 1;

inline constexpr NodeId no_node{0xffffffffU};

struct Vertex {
  VertexKind kind = VertexKind::Gpu;
  bool up = true;
  NodeId node = no_node;
  std::uint32_t index = 0;  // Within its kind: of its node, or of the whole fabric for switches.
  std::uint32_t rail = 0;   // NIC, leaf: its rail or plane. Leaf of a dragonfly: its group.
  std::uint32_t unit = 0;   // Leaf, spine, core: its scalable unit, pod or group.
};

// One direction of a cable. `lanes` parallel lanes that hardware stripes over (18 NVLinks, 16 PCIe
// lanes) are one link; parallel cables between two switches are several links, since routing tells
// them apart, but for a trunk (FabricSpec::trunks).
struct Link {
  VertexId from{};
  VertexId to{};
  Bandwidth bandwidth;  // All lanes together, this direction, with degradation applied.
  Bandwidth nominal;    // As bought.
  Duration latency{};   // Propagation and the forwarding of the device it leaves.
  LinkKind kind = LinkKind::Other;
  bool up = true;
  std::uint32_t lanes = 1;
  std::uint32_t cables = 1;  // Of a trunk: that it stands for.
};

// How the fabric between NICs forwards.
enum class RoutingPolicy : std::uint8_t {
  Ecmp,            // One of the shortest paths, by a hash of the flow and the seed.
  Adaptive,        // Packets sprayed over all shortest paths, in proportion to link bandwidth.
  DimensionOrder,  // Torus: x first, then y, then z, the shorter way round.
};

struct Node {
  std::string preset;       // The name of its node type, for people.
  std::uint32_t type = 0;   // Equal types have equal insides, link by link, before overrides.
  VertexId first_vertex{};  // A node's vertices are consecutive.
  std::uint32_t vertices = 0;
  // The links that came with its type are consecutive, and in the same order in all nodes of that
  // type. None in explicit graphs, whose links come in any order.
  LinkId first_link{};
  std::uint32_t links = 0;
  std::uint32_t first_gpu = 0;  // A node's GPUs are consecutive in Topology::gpus.
  std::uint32_t gpus = 0;
  std::uint32_t gpu_model = 0;  // Index into Topology::gpu_models, as bought.
  bool in_switch_reduction = false;
  std::string nic_model;   // "ConnectX-7"; "" when it has no NICs.
  std::string cpu_vendor;  // "intel", "amd", "arm"; "" when not known.
};

struct Topology {
  std::string name;
  IdVector<VertexId, Vertex> vertices;
  IdVector<LinkId, Link> links;
  IdVector<NodeId, Node> nodes;
  std::vector<VertexId> gpus;  // Rank r of a workload runs on gpus[r].
  // As bought; those that slow_gpu() made of them follow.
  std::vector<GpuModel> gpu_models;
  // By rank, index into gpu_models; empty while every GPU is as its node was bought.
  std::vector<std::uint32_t> model_of_gpu;
  std::string fabric;         // "single-switch", "rail-optimized", ...; "none" without one.
  std::string fabric_preset;  // "ndr", ...: the network generation, which picks cost parameters.
  bool in_network_reduction = false;  // The fabric's switches can reduce (SHARP).
  RoutingPolicy routing = RoutingPolicy::Adaptive;
  std::uint64_t routing_seed = 0;
  // Extent per dimension when fabric is a torus. Its routers are in order of x + X (y + Y z):
  // router i is the leaf with index i (nodes with NICs) or the GPU of node i (nodes without).
  std::vector<std::uint32_t> torus;
  std::uint32_t ports_per_cable =
      1;                           // Twin-port cables carry two fabric links; only counts differ.
  std::vector<std::string> names;  // Per vertex, explicit graphs only; empty otherwise.
  std::vector<std::string> notes;  // Every assumption made while building, for `warnings`.

  // Links that leave a vertex, and that enter it, in order of LinkId. Valid after index_links().
  [[nodiscard]] std::span<const LinkId> out(VertexId v) const;
  [[nodiscard]] std::span<const LinkId> in(VertexId v) const;
  // The same of all vertices of a node, vertex by vertex.
  [[nodiscard]] std::span<const LinkId> out(NodeId n) const;
  [[nodiscard]] std::span<const LinkId> in(NodeId n) const;
  // Builds the adjacency. Call after the last link was added.
  void index_links();

  // The links of nodes (Node::first_link) come first, node by node: so many of them.
  [[nodiscard]] std::uint32_t links_of_nodes() const;

  // The GPU model of a rank's GPU as it is, and as it was bought. They have one name.
  [[nodiscard]] const GpuModel& gpu_model(std::uint32_t rank) const;
  [[nodiscard]] const GpuModel& bought_gpu_model(std::uint32_t rank) const;
  // Makes the GPU of `rank` reach these shares of the FLOP rates and of the memory bandwidth that
  // it was bought with. Requires shares above 0 and at most 1. Invalidates references to models.
  void slow_gpu(std::uint32_t rank, double compute_factor, double memory_factor);
  [[nodiscard]] NodeId node_of_rank(std::uint32_t rank) const { return vertices[gpus[rank]].node; }

 private:
  std::vector<LinkId> out_, in_;
  std::vector<std::uint32_t> out_begin_, in_begin_;
};

// "node3/gpu2", "node0/nic7", "leaf12"; an explicit graph's own names.
[[nodiscard]] std::string vertex_name(const Topology& topology, VertexId v);
[[nodiscard]] std::string_view to_string(VertexKind kind);       // "gpu", "nvswitch", "leaf", ...
[[nodiscard]] std::string_view to_string(LinkKind kind);         // "nvlink", "host-leaf", ...
[[nodiscard]] std::string_view to_string(RoutingPolicy policy);  // "ecmp", "adaptive", ...
[[nodiscard]] std::optional<VertexKind> vertex_kind(std::string_view name);
[[nodiscard]] std::optional<LinkKind> link_kind(std::string_view name);
[[nodiscard]] std::optional<RoutingPolicy> routing_policy(std::string_view name);

}  // namespace flyover
