#pragma once

// The inside of a node, and the paths in it. Nodes that are alike, link by link and state by state,
// share one Interior, which numbers vertices and links from the node's first.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "affinity.hpp"
#include "digraph.hpp"
#include "fabric.hpp"
#include "flyover/routing/route.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::routing {

// Consecutive vertices that belong together: a node, or a GPU that is in none.
struct Site {
  VertexId first{};
  std::uint32_t vertices = 0;

  [[nodiscard]] VertexId vertex(std::uint32_t local) const {
    return VertexId{static_cast<std::uint32_t>(first) + local};
  }
  [[nodiscard]] std::uint32_t local(VertexId v) const {
    return static_cast<std::uint32_t>(v) - static_cast<std::uint32_t>(first);
  }
  [[nodiscard]] bool contains(VertexId v) const { return v >= first && local(v) < vertices; }
};

// The links inside a site by their local numbers. Borrows the offsets.
struct SiteLinks {
  LinkId first{};
  std::span<const std::uint32_t> offsets;

  [[nodiscard]] std::size_t size() const { return offsets.size(); }
  [[nodiscard]] LinkId operator[](std::size_t local) const {
    return LinkId{static_cast<std::uint32_t>(first) + offsets[local]};
  }
};

// The links inside a site, in the order that local numbers follow.
[[nodiscard]] std::vector<LinkId> links_inside(const Topology& topology, Site site);

struct LocalHop {
  std::uint32_t link = 0;  // Within the site.
  double share = 0;
};

struct LocalPath {
  bool exists = false;
  PathKind kind = PathKind::Self;
  bool relayed = false;
  Duration latency{};
  std::vector<LocalHop> hops{};
};

// Borrows nothing: all that it needs of the topology is copied. Paths are found on first use.
class Interior {
 public:
  Interior(const Topology& topology, const Fabric& fabric, Site site, SiteLinks links);

  // Local numbers of the GPUs' vertices; everything below takes GPUs as indices into this.
  [[nodiscard]] std::span<const std::uint32_t> gpus() const { return gpus_; }

  [[nodiscard]] const LocalPath& between(std::uint32_t from_gpu, std::uint32_t to_gpu);
  // `port` is the local number of a port's vertex; a GPU that is its own port has nothing to cross.
  [[nodiscard]] const LocalPath& to_port(std::uint32_t gpu, std::uint32_t port);
  [[nodiscard]] const LocalPath& from_port(std::uint32_t port, std::uint32_t gpu);

  // Ports are local numbers of vertices.
  [[nodiscard]] const PortUse& use(std::uint32_t gpu) const { return uses_[gpu]; }
  // GPUs whose own port (not another's, for want of one in service) is on the rail.
  [[nodiscard]] std::span<const std::uint32_t> gpus_on_rail(std::uint32_t rail) const;
  // A GPU that has this port as its own and can be reached from `gpu` over scale-up links.
  [[nodiscard]] std::optional<std::uint32_t> owner(std::uint32_t port, std::uint32_t gpu);

  // From a GPU to the switches that all GPUs in service reach, and back.
  [[nodiscard]] const LocalPath& to_switches(std::uint32_t gpu) const { return reduction_[gpu].up; }
  [[nodiscard]] const LocalPath& from_switches(std::uint32_t gpu) const {
    return reduction_[gpu].down;
  }

 private:
  struct Reduction {
    LocalPath up, down;
  };
  using Cache = std::vector<std::optional<LocalPath>>;

  void find_ports(const Topology& topology, const Fabric& fabric, Site site,
                  std::span<const Arc> built_bus);
  void find_switches(const Topology& topology, Site site);
  [[nodiscard]] LocalPath find_between(std::uint32_t from, std::uint32_t to) const;

  std::vector<std::uint32_t> gpus_, nics_;
  std::vector<std::uint32_t> nic_of_;  // By local vertex: index into nics_, or none.
  Digraph scale_up_, mesh_, bus_;      // mesh_: scale_up_ with GPUs to pass through.
  std::vector<PortUse> uses_;
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> rails_;  // Ascending.
  std::vector<Reduction> reduction_;
  // By source, then target: a ring over a thousand GPUs needs a thousand paths, not a million.
  std::vector<std::unordered_map<std::uint32_t, LocalPath>> between_;
  Cache to_nic_, from_nic_;
};

// Sites that may share an Interior have equal fingerprints, and are alike.
[[nodiscard]] std::uint64_t fingerprint(const Topology& topology, const Fabric& fabric, Site site,
                                        SiteLinks links);
[[nodiscard]] bool alike(const Topology& topology, const Fabric& fabric, Site a, SiteLinks a_links,
                         Site b, SiteLinks b_links);

}  // namespace flyover::routing
