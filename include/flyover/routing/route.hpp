#pragma once

#include <cstdint>
#include <vector>

#include "flyover/base/ids.hpp"
#include "flyover/base/units.hpp"

namespace flyover {

struct Hop {
  LinkId link{};
  double share = 1;  // Of the bytes that the route carries.
};

// The classes of path that a cost model tells apart.
enum class PathKind : std::uint8_t { Self, ScaleUp, Pcie, Network };

// What a cost model needs to know of a path besides its links.
struct PathInfo {
  Duration latency{};             // Sum of link latencies along the longest used path.
  std::uint32_t switch_hops = 0;  // Fabric switches (on a torus: routers) passed.
  PathKind kind = PathKind::Self;
  bool relayed = false;  // Forwarded by another GPU (PXN, or a mesh that is not full).
};

struct Route : PathInfo {
  std::vector<Hop> hops;  // By link; links that carry several parts of the bytes appear once.
};

// A route without listing the links that a fabric sprays it over, which may be thousands.
struct RouteOutline : PathInfo {
  std::vector<Hop> hops;  // The others, in the order of the way.
  std::uint32_t sprayed =
      0;  // Equal numbers of one router: over the same links in the same shares.
};

}  // namespace flyover
