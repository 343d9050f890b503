#pragma once

#include <cstdint>
#include <vector>

#include "fabric.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::routing {

// Paths on a torus that settle one coordinate after another, each the shorter way round; half-way
// round, upwards. Router k in order of vertices stands at (k mod X, k / X mod Y, ...). Borrows
// both.
class DimensionOrder {
 public:
  // Throws InputError when the topology is not a torus.
  DimensionOrder(const Topology& topology, const Fabric& fabric);

  // The cables from one fabric vertex to another, of parallel ones that which `key` picks. False
  // when one is missing or out of service, and then `path` holds nothing of use.
  [[nodiscard]] bool find(std::uint32_t from, std::uint32_t to, std::uint64_t key,
                          std::vector<Arc>& path) const;

 private:
  const Fabric* fabric_;
  std::vector<std::uint32_t> extents_;
  std::vector<std::uint32_t> routers_;      // Fabric vertices by position.
  std::vector<std::uint32_t> position_of_;  // By fabric vertex.
};

}  // namespace flyover::routing
