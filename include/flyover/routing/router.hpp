#pragma once

// Which links a transfer between two GPUs uses, and in what shares.
//
// Inside a node: over the scale-up links (striped over the switches in proportion to the narrower
// of the lanes up and down), else over PCIe, else over two scale-up links and the GPU between them.
// Between nodes: GPU -> its NIC -> fabric -> the peer's NIC -> GPU. A GPU's NIC is the nearest one
// in service; GPUs that are equally near share the NICs out evenly, and a GPU with several NICs to
// itself (VR NVL72: two) spreads its bytes over them. A GPU that is cabled to the fabric is its own
// NIC. What stays in a node never passes a NIC.
//
// With PXN a sender first hands the data over scale-up links to the GPU of its node that sits on
// the receiver's rail, so that the fabric is entered on the right rail. It does so when the rails
// enter the fabric at different switches. Where rails are not joined at all and the sender's node
// is not on the receiver's rail, a GPU of the receiver's node relays.
//
// In the fabric paths are the shortest in hops. ECMP: each switch chooses one of its next hops by a
// hash of (seed, switch, source NIC, destination NIC, flow). Adaptive: each switch splits the bytes
// over its next hops in proportion to what the shortest paths beyond them can carry. Dimension
// order: see RoutingPolicy; around a fault, by ECMP. Whatever is out of service is avoided.

#include <cstdint>
#include <memory>
#include <span>

#include "flyover/base/ids.hpp"
#include "flyover/base/units.hpp"
#include "flyover/routing/load_map.hpp"
#include "flyover/routing/route.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

struct RouterOptions {
  bool pxn = true;  // NCCL_PXN_DISABLE=0
};

// Borrows the topology, which must outlive it. Paths inside nodes are cached per kind of node (same
// links, same state), paths between switches per destination, so that a route costs its own length;
// not safe to share between threads.
class Router {
 public:
  // Throws InputError for dimension-order routing without a torus.
  Router(const Topology& topology, RouterOptions options);
  ~Router();
  // Movable while no LoadMap holds something of it.
  Router(Router&&) noexcept;

  // From rank to rank (GPU indices of the topology). `flow` tells apart the flows between one pair
  // for ECMP. Throws SimulationError, naming both ends and the reason, when no path is in service.
  [[nodiscard]] Route route(std::uint32_t from, std::uint32_t to, std::uint64_t flow = 0) const;
  // Likewise, at the cost of the hops that it lists.
  [[nodiscard]] RouteOutline outline(std::uint32_t from, std::uint32_t to,
                                     std::uint64_t flow = 0) const;
  // As load.add(route(from, to, flow), bytes), without building the route: for all-to-all over
  // thousands of ranks.
  PathInfo add_route(LoadMap& load, std::uint32_t from, std::uint32_t to, double bytes,
                     std::uint64_t flow = 0) const;

  // From a GPU up into the reduction units of its node's switches, and back down (NVLS). Every GPU
  // of a node uses the switches in the same shares: of each, the narrowest lanes of any GPU in
  // service. Throws SimulationError when no switch in service reaches all of them.
  [[nodiscard]] Route to_switch(std::uint32_t rank) const;
  [[nodiscard]] Route from_switch(std::uint32_t rank) const;
  [[nodiscard]] bool has_in_switch_reduction(std::uint32_t rank) const;

  // NICs in service that the GPU uses, nearest first; empty in a node without any. (NICs that no
  // cable joins to anything do not count; a GPU that is cabled to the fabric is its own.)
  [[nodiscard]] std::span<const VertexId> nics(std::uint32_t rank) const;
  // The rail of the GPU's first NIC; of a GPU without one, its index in the node.
  [[nodiscard]] std::uint32_t rail(std::uint32_t rank) const;
  // How two ranks would talk, without the route. Throws as route() for two GPUs of one node.
  [[nodiscard]] PathKind path_kind(std::uint32_t from, std::uint32_t to) const;

 private:
  friend class LoadMap;
  void settle(LoadMap& load) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
