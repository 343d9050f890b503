#include "node.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "graph.hpp"

namespace flyover {

namespace {

// Where item i of `items` hangs when they are spread evenly, in order, below `places`.
std::uint32_t spread(std::uint32_t i, std::uint32_t items, std::uint32_t places) {
  return static_cast<std::uint32_t>(std::uint64_t{i} * places / items);
}

struct Parts {
  VertexId first_gpu{}, first_switch{}, first_pcie{}, first_cpu{}, first_nic{};
};

VertexId at(VertexId first, std::uint32_t i) {
  return VertexId{static_cast<std::uint32_t>(first) + i};
}

bool is_xgmi(const NodeSpec& spec) {
  return spec.gpu.scale_up.starts_with("xgmi");
}

void wire_scale_up(Topology& topology, const NodeSpec& spec, const Parts& parts) {
  const auto join = [&](VertexId a, VertexId b, std::uint32_t lanes, std::uint32_t cables = 1) {
    connect(topology, a, b,
            {.kind = is_xgmi(spec) ? LinkKind::Xgmi : LinkKind::NvLink,
             .bandwidth = spec.lane_bandwidth * lanes,
             .latency = spec.scale_up_latency,
             .lanes = lanes,
             .cables = cables});
  };
  const auto gpu = [&](std::uint32_t i) { return at(parts.first_gpu, i); };
  switch (spec.scale_up) {
    case ScaleUp::Switched:
      if (spec.trunks) {
        const auto& lanes = spec.links_per_switch;
        const auto all = std::accumulate(lanes.begin(), lanes.end(), 0U);
        const auto used = lanes.size() - static_cast<std::size_t>(std::ranges::count(lanes, 0U));
        for (std::uint32_t g = 0; g < spec.gpus; ++g) {
          join(gpu(g), parts.first_switch, all, static_cast<std::uint32_t>(used));
        }
        break;
      }
      for (std::uint32_t g = 0; g < spec.gpus; ++g) {
        for (std::uint32_t s = 0; s < spec.links_per_switch.size(); ++s) {
          const std::uint32_t lanes = spec.links_per_switch[s];
          if (lanes > 0) join(gpu(g), at(parts.first_switch, s), lanes);
        }
      }
      break;
    case ScaleUp::Mesh:
      for (std::uint32_t a = 0; a < spec.gpus; ++a) {
        for (std::uint32_t b = a + 1; b < spec.gpus; ++b) join(gpu(a), gpu(b), spec.mesh_lanes);
      }
      break;
    case ScaleUp::Pairs:
      for (std::uint32_t a = 0; a + 1 < spec.gpus; a += 2)
        join(gpu(a), gpu(a + 1), spec.mesh_lanes);
      break;
    case ScaleUp::Explicit:
      for (const ScaleUpLink& link : spec.scale_up_links)
        join(gpu(link.a), gpu(link.b), link.lanes);
      break;
    case ScaleUp::None:
      break;
  }
}

void wire_pcie(Topology& topology, const NodeSpec& spec, const Parts& parts) {
  const Cable bus{
      .kind = LinkKind::Pcie, .bandwidth = spec.pcie_bandwidth, .latency = spec.pcie_latency};
  Cable gpu_bus = bus;
  if (spec.gpu_pcie_bandwidth > Bandwidth{}) gpu_bus.bandwidth = spec.gpu_pcie_bandwidth;

  const std::uint32_t roots = spec.pcie_switches > 0 ? spec.pcie_switches : spec.cpus;
  const VertexId first_root = spec.pcie_switches > 0 ? parts.first_pcie : parts.first_cpu;
  if (roots > 0) {
    for (std::uint32_t g = 0; g < spec.gpus; ++g) {
      connect(topology, at(parts.first_gpu, g), at(first_root, spread(g, spec.gpus, roots)),
              gpu_bus);
    }
    for (std::uint32_t n = 0; n < spec.nics; ++n) {
      const std::uint32_t root =
          spec.nic_pcie_switch.empty() ? spread(n, spec.nics, roots) : spec.nic_pcie_switch[n];
      connect(topology, at(parts.first_nic, n), at(first_root, root), bus);
    }
  } else {
    // No tree to hang them in: every NIC and every GPU gets at least one direct partner.
    const std::uint32_t pairs = spec.nics > 0 ? std::max(spec.nics, spec.gpus) : 0;
    Cable direct = gpu_bus;
    if (direct.bandwidth == Bandwidth{}) direct.bandwidth = spec.nic_bandwidth;
    for (std::uint32_t i = 0; i < pairs; ++i) {
      connect(topology, at(parts.first_gpu, spread(i, pairs, spec.gpus)),
              at(parts.first_nic, spread(i, pairs, spec.nics)), direct);
    }
  }
  if (spec.cpus == 0) return;
  for (std::uint32_t s = 0; s < spec.pcie_switches; ++s) {
    connect(topology, at(parts.first_pcie, s),
            at(parts.first_cpu, spread(s, spec.pcie_switches, spec.cpus)), bus);
  }
  const std::uint32_t board = spec.cpus_per_board > 0 ? spec.cpus_per_board : spec.cpus;
  for (std::uint32_t a = 0; a < spec.cpus; ++a) {
    for (std::uint32_t b = a + 1; b < spec.cpus && b / board == a / board; ++b) {
      connect(topology, at(parts.first_cpu, a), at(parts.first_cpu, b),
              {.kind = LinkKind::CpuLink,
               .bandwidth = spec.cpu_bandwidth,
               .latency = spec.pcie_latency});
    }
  }
}

}  // namespace

void check_node(const NodeSpec& spec) {
  const auto check = [&](bool holds, const std::string& problem) {
    if (!holds) throw InputError(fmt::format("node \"{}\": {}", spec.name, problem));
  };
  const bool lanes_rated = spec.lane_bandwidth > Bandwidth{};
  check(spec.gpus > 0, "expected at least one GPU");
  switch (spec.scale_up) {
    case ScaleUp::Switched:
      check(!spec.links_per_switch.empty(),
            "switched scale-up wiring needs links_per_switch, such as [5, 4, 4, 5]");
      check(std::accumulate(spec.links_per_switch.begin(), spec.links_per_switch.end(), 0U) > 0,
            "links_per_switch has no links");
      break;
    case ScaleUp::Mesh:
    case ScaleUp::Pairs:
      check(spec.mesh_lanes > 0, "mesh and pairs wiring need the lanes between two GPUs");
      break;
    case ScaleUp::Explicit:
      for (const ScaleUpLink& link : spec.scale_up_links) {
        check(link.a < spec.gpus && link.b < spec.gpus && link.a != link.b && link.lanes > 0,
              fmt::format("scale-up link {}-{} with {} lanes is not between two of its {} GPUs",
                          link.a, link.b, link.lanes, spec.gpus));
      }
      break;
    case ScaleUp::None:
      break;
  }
  check(spec.scale_up == ScaleUp::None || lanes_rated, "scale-up links need a lane bandwidth");
  const std::uint32_t roots = spec.pcie_switches > 0 ? spec.pcie_switches : spec.cpus;
  check(roots == 0 || spec.pcie_bandwidth > Bandwidth{}, "its PCIe tree needs a bandwidth");
  const std::uint32_t board = spec.cpus_per_board > 0 ? spec.cpus_per_board : spec.cpus;
  check(board < 2 || spec.cpu_bandwidth > Bandwidth{},
        "sockets that are joined need a socket bandwidth");
  check(spec.nics == 0 || spec.nic_bandwidth > Bandwidth{}, "its NICs need a bandwidth");
  check(spec.nic_pcie_switch.empty() || spec.nic_pcie_switch.size() == spec.nics,
        fmt::format("expected the PCIe switch of each of its {} NICs, got {}", spec.nics,
                    spec.nic_pcie_switch.size()));
  for (const std::uint32_t root : spec.nic_pcie_switch) {
    check(root < roots, fmt::format("there is no PCIe switch {} (it has {})", root, roots));
  }
  check(spec.nic_rail.empty() || spec.nic_rail.size() == spec.nics,
        fmt::format("expected the rail of each of its {} NICs, got {}", spec.nics,
                    spec.nic_rail.size()));
}

void add_node(Topology& topology, const NodeSpec& spec, std::uint32_t type,
              std::uint32_t gpu_model) {
  const NodeId id{static_cast<std::uint32_t>(topology.nodes.size())};
  const auto add_all = [&](VertexKind kind, std::size_t count) {
    const VertexId first{static_cast<std::uint32_t>(topology.vertices.size())};
    for (std::uint32_t i = 0; i < count; ++i) {
      Vertex vertex{.kind = kind, .node = id, .index = i};
      if (kind == VertexKind::Nic) vertex.rail = spec.nic_rail.empty() ? i : spec.nic_rail[i];
      add_vertex(topology, vertex);
    }
    return first;
  };
  Parts parts;
  parts.first_gpu = add_all(VertexKind::Gpu, spec.gpus);
  const std::size_t switches = spec.trunks ? 1 : spec.links_per_switch.size();
  parts.first_switch =
      add_all(VertexKind::NvSwitch, spec.scale_up == ScaleUp::Switched ? switches : 0);
  parts.first_pcie = add_all(VertexKind::PcieSwitch, spec.pcie_switches);
  parts.first_cpu = add_all(VertexKind::Cpu, spec.cpus);
  parts.first_nic = add_all(VertexKind::Nic, spec.nics);

  Node node;
  node.preset = spec.name;
  node.type = type;
  node.first_vertex = parts.first_gpu;
  node.vertices = static_cast<std::uint32_t>(topology.vertices.size() - index(parts.first_gpu));
  node.first_gpu = static_cast<std::uint32_t>(topology.gpus.size());
  node.gpus = spec.gpus;
  node.gpu_model = gpu_model;
  node.in_switch_reduction = spec.in_switch_reduction && spec.scale_up == ScaleUp::Switched;
  node.nic_model = spec.nics > 0 ? spec.nic_model : "";
  node.cpu_vendor = spec.cpu_vendor;
  topology.nodes.push_back(std::move(node));
  for (std::uint32_t g = 0; g < spec.gpus; ++g) topology.gpus.push_back(at(parts.first_gpu, g));

  const std::size_t first_link = topology.links.size();
  wire_scale_up(topology, spec, parts);
  wire_pcie(topology, spec, parts);
  topology.nodes[id].first_link = LinkId{static_cast<std::uint32_t>(first_link)};
  topology.nodes[id].links = static_cast<std::uint32_t>(topology.links.size() - first_link);
}

void add_copy(Topology& topology, const Topology& pattern, NodeId original) {
  const Node& from = pattern.nodes[original];
  const NodeId id{static_cast<std::uint32_t>(topology.nodes.size())};
  Node node = from;
  node.first_vertex = VertexId{static_cast<std::uint32_t>(topology.vertices.size())};
  node.first_link = LinkId{static_cast<std::uint32_t>(topology.links.size())};
  node.first_gpu = static_cast<std::uint32_t>(topology.gpus.size());
  topology.nodes.push_back(std::move(node));

  const auto moved = [&, to = topology.nodes[id].first_vertex](VertexId v) {
    return at(to, static_cast<std::uint32_t>(index(v) - index(from.first_vertex)));
  };
  for (std::uint32_t v = 0; v < from.vertices; ++v) {
    Vertex vertex = pattern.vertices[at(from.first_vertex, v)];
    vertex.node = id;
    topology.vertices.push_back(vertex);
  }
  for (std::uint32_t g = 0; g < from.gpus; ++g) {
    topology.gpus.push_back(moved(pattern.gpus[from.first_gpu + g]));
  }
  for (std::uint32_t l = 0; l < from.links; ++l) {
    Link link = pattern.links[LinkId{static_cast<std::uint32_t>(from.first_link) + l}];
    link.from = moved(link.from);
    link.to = moved(link.to);
    topology.links.push_back(link);
  }
}

}  // namespace flyover
