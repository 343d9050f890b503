#include "interior.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "hash.hpp"
#include "shortest_paths.hpp"

namespace flyover::routing {

namespace {

const LocalPath nothing_to_cross{.exists = true};

LocalPath trace(const Digraph& graph, std::uint32_t from, std::uint32_t to, PathKind kind) {
  const std::uint32_t roots[] = {to};
  ShortestPaths paths(graph, roots);
  const std::uint32_t start = paths.find(from);
  if (start == none) return {};
  LocalPath path{.exists = true, .kind = kind, .latency = paths.slot(start).latency};
  std::vector<double> amounts(start + 1, 0.0);
  amounts[start] = 1;
  spray(paths, amounts, [&](std::uint32_t link, double share) {
    path.hops.push_back({link, share});
  });
  return path;
}

double width(std::span<const Arc> arcs) {
  double sum = 0;
  for (const Arc& arc : arcs) sum += arc.bandwidth;
  return sum;
}

// Adds `share` of a path over parallel arcs; returns the longest latency.
Duration append(LocalPath& path, std::span<const Arc> arcs, double share) {
  Duration latency{};
  for (const Arc& arc : arcs) {
    path.hops.push_back({arc.link, share * arc.bandwidth / width(arcs)});
    latency = std::max(latency, arc.latency);
  }
  return latency;
}

// As trace(), for the usual case of one switch between the two, without a look at everybody else on
// it: a node may have a thousand GPUs. Over every switch in proportion to its narrower side.
LocalPath across_switches(const Digraph& graph, std::uint32_t from, std::uint32_t to) {
  LocalPath path{.kind = PathKind::ScaleUp};
  if (!graph.between(from, to).empty()) return path;  // They are nearer than that.
  const auto narrower = [&](std::uint32_t v) {
    if (!graph.transit(v)) return 0.0;
    return std::min(width(graph.between(from, v)), width(graph.between(v, to)));
  };
  double total = 0;
  for (const std::uint32_t v : graph.before(to)) total += narrower(v);
  if (total == 0) return path;
  path.exists = true;
  for (const std::uint32_t v : graph.before(to)) {
    const double share = narrower(v) / total;
    if (share == 0) continue;
    const Duration up = append(path, graph.between(from, v), share);
    const Duration down = append(path, graph.between(v, to), share);
    path.latency = std::max(path.latency, up + down);
  }
  return path;
}

// All that makes two sites differ to the router, in a fixed order.
auto traits(const Vertex& v, const Fabric& fabric, VertexId id) {
  const std::uint32_t port = fabric.port_of(id);
  const bool usable = port != none && fabric.ports()[port].usable;
  return std::tuple(static_cast<std::uint64_t>(v.kind), v.up, v.rail, port != none, usable);
}

auto traits(const Link& link, Site site) {
  return std::tuple(site.local(link.from), site.local(link.to), link.bandwidth.per_second(),
                    link.latency.count(), static_cast<std::uint64_t>(link.kind), link.up);
}

std::uint64_t word(double value) {
  return static_cast<std::uint64_t>(value);
}
template <class Integer>
std::uint64_t word(Integer value) {
  return static_cast<std::uint64_t>(value);
}

template <class Tuple>
std::uint64_t combine_all(std::uint64_t seed, const Tuple& values) {
  return std::apply(
      [seed](const auto&... value) {
        std::uint64_t hash = seed;
        ((hash = (hash ^ word(value)) * 0x100000001b3U, hash ^= hash >> 29), ...);
        return hash;
      },
      values);
}

}  // namespace

std::vector<LinkId> links_inside(const Topology& topology, Site site) {
  std::vector<LinkId> links;
  for (std::uint32_t v = 0; v < site.vertices; ++v) {
    for (const LinkId l : topology.out(site.vertex(v))) {
      const Link& link = topology.links[l];
      if (site.contains(link.to) && !is_network(topology, link)) links.push_back(l);
    }
  }
  return links;
}

Interior::Interior(const Topology& topology, const Fabric& fabric, Site site, SiteLinks links)
    : nic_of_(site.vertices, none) {
  std::vector<char> scale_up_transit(site.vertices, 0), mesh_transit(site.vertices, 0),
      bus_transit(site.vertices, 0);
  for (std::uint32_t v = 0; v < site.vertices; ++v) {
    switch (topology.vertices[site.vertex(v)].kind) {
      case VertexKind::Gpu:
        gpus_.push_back(v);
        mesh_transit[v] = 1;
        break;
      case VertexKind::Nic:
        nic_of_[v] = static_cast<std::uint32_t>(nics_.size());
        nics_.push_back(v);
        break;
      case VertexKind::NvSwitch:
        scale_up_transit[v] = mesh_transit[v] = 1;
        break;
      case VertexKind::PcieSwitch:
      case VertexKind::Cpu:
        bus_transit[v] = 1;
        break;
      default:
        scale_up_transit[v] = mesh_transit[v] = bus_transit[v] = 1;
        break;
    }
  }
  std::vector<Arc> scale_up, bus, built_bus;
  for (std::uint32_t l = 0; l < links.size(); ++l) {
    const Link& link = topology.links[links[l]];
    const Arc arc{site.local(link.from), site.local(link.to), l, link.bandwidth.per_second(),
                  link.latency};
    const bool bus_link = !is_scale_up(topology, link);
    if (bus_link) built_bus.push_back(arc);
    if (in_service(topology, link)) (bus_link ? bus : scale_up).push_back(arc);
  }
  scale_up_ = Digraph(scale_up, std::move(scale_up_transit));
  mesh_ = Digraph(scale_up, std::move(mesh_transit));
  bus_ = Digraph(bus, bus_transit);

  find_ports(topology, fabric, site, built_bus);
  find_switches(topology, site);
  between_.resize(gpus_.size());
  to_nic_.resize(gpus_.size() * nics_.size());
  from_nic_.resize(gpus_.size() * nics_.size());
}

void Interior::find_ports(const Topology& topology, const Fabric& fabric, Site site,
                          std::span<const Arc> built_bus) {
  std::vector<char> transit(site.vertices, 0);
  for (std::uint32_t v = 0; v < site.vertices; ++v) transit[v] = bus_.transit(v) ? 1 : 0;
  const Digraph built(built_bus, std::move(transit));

  std::vector<std::uint32_t> ports;
  for (std::uint32_t v = 0; v < site.vertices; ++v) {
    if (fabric.port_of(site.vertex(v)) != none) ports.push_back(v);
  }
  PortDistances distances;
  distances.gpus = static_cast<std::uint32_t>(gpus_.size());
  distances.ports = static_cast<std::uint32_t>(ports.size());
  distances.built.assign(gpus_.size() * ports.size(), none);
  distances.current = distances.built;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const bool usable = fabric.ports()[fabric.port_of(site.vertex(ports[p]))].usable;
    const std::uint32_t roots[] = {ports[p]};
    ShortestPaths when_built(built, roots), now(bus_, roots);
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const std::size_t at = g * ports.size() + p;
      if (gpus_[g] == ports[p]) {
        distances.built[at] = 0;
        if (usable) distances.current[at] = 0;
      } else if (nic_of_[ports[p]] != none) {
        if (const std::uint32_t s = when_built.find(gpus_[g]); s != none) {
          distances.built[at] = when_built.distance(s);
        }
        if (const std::uint32_t s = now.find(gpus_[g]); s != none && usable) {
          distances.current[at] = now.distance(s);
        }
      }
    }
  }
  // A NIC that can only send, or only receive, is of no use.
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    const std::uint32_t roots[] = {gpus_[g]};
    ShortestPaths back(bus_, roots);
    for (std::size_t p = 0; p < ports.size(); ++p) {
      if (back.find(ports[p]) == none) distances.current[g * ports.size() + p] = none;
    }
  }
  uses_ = assign_ports(distances);

  std::map<std::uint32_t, std::vector<std::uint32_t>> rails;
  for (std::uint32_t g = 0; g < uses_.size(); ++g) {
    for (std::uint32_t& port : uses_[g].ports) {
      port = ports[port];
      if (uses_[g].displaced) continue;
      std::vector<std::uint32_t>& gpus = rails[topology.vertices[site.vertex(port)].rail];
      if (gpus.empty() || gpus.back() != g) gpus.push_back(g);
    }
  }
  rails_.assign(rails.begin(), rails.end());
}

void Interior::find_switches(const Topology& topology, Site site) {
  const std::size_t n = gpus_.size();
  reduction_.resize(n);
  std::vector<std::size_t> members;
  for (std::size_t g = 0; g < n; ++g) {
    if (topology.vertices[site.vertex(gpus_[g])].up) members.push_back(g);
  }
  double total = 0;
  for (std::uint32_t s = 0; s < site.vertices && !members.empty(); ++s) {
    if (topology.vertices[site.vertex(s)].kind != VertexKind::NvSwitch) continue;
    double narrowest = std::numeric_limits<double>::infinity();
    for (const std::size_t g : members) {
      narrowest = std::min({narrowest, width(scale_up_.between(gpus_[g], s)),
                            width(scale_up_.between(s, gpus_[g]))});
    }
    if (narrowest == 0) continue;
    total += narrowest;
    const auto add = [narrowest](LocalPath& path, std::span<const Arc> arcs) {
      path.exists = true;
      path.kind = PathKind::ScaleUp;
      path.latency = std::max(path.latency, append(path, arcs, narrowest));
    };
    for (const std::size_t g : members) {
      add(reduction_[g].up, scale_up_.between(gpus_[g], s));
      add(reduction_[g].down, scale_up_.between(s, gpus_[g]));
    }
  }
  for (Reduction& paths : reduction_) {
    for (LocalHop& hop : paths.up.hops) hop.share /= total;
    for (LocalHop& hop : paths.down.hops) hop.share /= total;
  }
}

LocalPath Interior::find_between(std::uint32_t from, std::uint32_t to) const {
  if (LocalPath path = across_switches(scale_up_, from, to); path.exists) return path;
  if (LocalPath path = trace(scale_up_, from, to, PathKind::ScaleUp); path.exists) return path;
  if (LocalPath path = trace(bus_, from, to, PathKind::Pcie); path.exists) return path;
  LocalPath path = trace(mesh_, from, to, PathKind::ScaleUp);
  path.relayed = path.exists;
  return path;
}

const LocalPath& Interior::between(std::uint32_t from_gpu, std::uint32_t to_gpu) {
  const auto [path, fresh] = between_[from_gpu].try_emplace(to_gpu);
  if (fresh) path->second = find_between(gpus_[from_gpu], gpus_[to_gpu]);
  return path->second;
}

const LocalPath& Interior::to_port(std::uint32_t gpu, std::uint32_t port) {
  if (nic_of_[port] == none) return nothing_to_cross;
  std::optional<LocalPath>& path = to_nic_[gpu * nics_.size() + nic_of_[port]];
  if (!path) path = trace(bus_, gpus_[gpu], port, PathKind::Pcie);
  return *path;
}

const LocalPath& Interior::from_port(std::uint32_t port, std::uint32_t gpu) {
  if (nic_of_[port] == none) return nothing_to_cross;
  std::optional<LocalPath>& path = from_nic_[gpu * nics_.size() + nic_of_[port]];
  if (!path) path = trace(bus_, port, gpus_[gpu], PathKind::Pcie);
  return *path;
}

std::span<const std::uint32_t> Interior::gpus_on_rail(std::uint32_t rail) const {
  const auto at =
      std::lower_bound(rails_.begin(), rails_.end(), rail,
                       [](const auto& entry, std::uint32_t r) { return entry.first < r; });
  if (at == rails_.end() || at->first != rail) return {};
  return at->second;
}

std::optional<std::uint32_t> Interior::owner(std::uint32_t port, std::uint32_t gpu) {
  for (std::uint32_t g = 0; g < uses_.size(); ++g) {
    if (g == gpu || uses_[g].displaced ||
        std::ranges::find(uses_[g].ports, port) == uses_[g].ports.end()) {
      continue;
    }
    if (const LocalPath& path = between(gpu, g); path.exists && path.kind == PathKind::ScaleUp)
      return g;
  }
  return std::nullopt;
}

std::uint64_t fingerprint(const Topology& topology, const Fabric& fabric, Site site,
                          SiteLinks links) {
  std::uint64_t hash = combine(site.vertices, links.size());
  for (std::uint32_t v = 0; v < site.vertices; ++v) {
    const VertexId id = site.vertex(v);
    hash = combine_all(hash, traits(topology.vertices[id], fabric, id));
  }
  for (std::uint32_t l = 0; l < links.size(); ++l) {
    hash = combine_all(hash, traits(topology.links[links[l]], site));
  }
  return mix(hash);
}

bool alike(const Topology& topology, const Fabric& fabric, Site a, SiteLinks a_links, Site b,
           SiteLinks b_links) {
  if (a.vertices != b.vertices || a_links.size() != b_links.size()) return false;
  for (std::uint32_t v = 0; v < a.vertices; ++v) {
    if (traits(topology.vertices[a.vertex(v)], fabric, a.vertex(v)) !=
        traits(topology.vertices[b.vertex(v)], fabric, b.vertex(v))) {
      return false;
    }
  }
  for (std::uint32_t l = 0; l < a_links.size(); ++l) {
    if (traits(topology.links[a_links[l]], a) != traits(topology.links[b_links[l]], b)) {
      return false;
    }
  }
  return true;
}

}  // namespace flyover::routing
