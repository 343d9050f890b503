#pragma once

// Which links a transfer between two GPUs uses, and in what shares.
//
// Inside a node: over the scale-up links (striped over the switches in proportion to their lanes),
// else over PCIe. Between nodes: GPU -> its NIC -> fabric -> the peer's NIC -> GPU. A GPU's NIC is the
// nearest one in service; GPUs that are equally near share the NICs out evenly, and a GPU with several
// NICs to itself (VR NVL72: two) spreads its bytes over them. With PXN a sender first hands the data
// over scale-up links to the GPU of its node that sits on the receiver's rail, so that the fabric is
// entered on the right rail.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/base/units.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

struct RouterOptions {
  bool pxn = true;  // NCCL_PXN_DISABLE=0
};

struct Hop {
  LinkId link{};
  double share = 1;  // Of the bytes that the route carries.
};

// The classes of path that a cost model tells apart.
enum class PathKind : std::uint8_t { Self, ScaleUp, Pcie, Network };

struct Route {
  std::vector<Hop> hops;  // In no order; links that carry several parts of the bytes appear once.
  Duration latency{};     // Sum of link latencies along the longest used path.
  std::uint32_t switch_hops = 0;  // Fabric switches passed.
  PathKind kind = PathKind::Self;
  bool relayed = false;  // Forwarded by another GPU (PXN).
};

// Adds up the load that many transfers put on links: the weights of a stream.
class LoadMap {
 public:
  explicit LoadMap(std::size_t links) : load_(links, 0.0), seen_(links, 0) {}

  void add(LinkId link, double amount) {
    if (!seen_[index(link)]) {
      seen_[index(link)] = 1;
      touched_.push_back(link);
    }
    load_[index(link)] += amount;
  }
  void add(const Route& route, double bytes) {
    for (const Hop& hop : route.hops) add(hop.link, bytes * hop.share);
  }
  // The links touched since the last clear, ascending, with their loads.
  [[nodiscard]] std::vector<Hop> take();

 private:
  std::vector<double> load_;
  std::vector<char> seen_;
  std::vector<LinkId> touched_;
};

// Borrows the topology, which must outlive it. Paths inside nodes and between switches are cached, so
// that a route costs its own length; not safe to share between threads.
class Router {
 public:
  Router(const Topology& topology, RouterOptions options);
  ~Router();
  Router(Router&&) noexcept;

  // From rank to rank (GPU indices of the topology). `flow` tells apart the flows between one pair for
  // ECMP. Throws SimulationError, naming both ends and the reason, when no path is in service.
  [[nodiscard]] Route route(std::uint32_t from, std::uint32_t to, std::uint64_t flow = 0) const;
  // As load.add(route(from, to, flow), bytes), without building the route: for all-to-all over
  // thousands of ranks. Returns what the cost model needs to know of the path.
  struct PathInfo {
    Duration latency{};
    std::uint32_t switch_hops = 0;
    PathKind kind = PathKind::Self;
    bool relayed = false;
  };
  PathInfo add_route(LoadMap& load, std::uint32_t from, std::uint32_t to, double bytes,
                     std::uint64_t flow = 0) const;

  // From a GPU up into the reduction units of its node's switches, and back down (NVLS).
  [[nodiscard]] Route to_switch(std::uint32_t rank) const;
  [[nodiscard]] Route from_switch(std::uint32_t rank) const;
  [[nodiscard]] bool has_in_switch_reduction(std::uint32_t rank) const;

  // NICs in service that the GPU uses, nearest first; empty in a node without any.
  [[nodiscard]] std::span<const VertexId> nics(std::uint32_t rank) const;
  // The rail of the GPU's first NIC.
  [[nodiscard]] std::uint32_t rail(std::uint32_t rank) const;
  // How two ranks would talk, without the route.
  [[nodiscard]] PathKind path_kind(std::uint32_t from, std::uint32_t to) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
