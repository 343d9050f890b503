#pragma once

#include <cstdint>
#include <vector>

namespace flyover::routing {

// Distances in PCIe hops inside a node, by [gpu * ports + port]; `none` where there is no path.
struct PortDistances {
  std::uint32_t gpus = 0;
  std::uint32_t ports = 0;
  std::vector<std::uint32_t> built;    // As the node was built.
  std::vector<std::uint32_t> current;  // With what is in service; none for ports out of service.
};

// The ports (NICs) that a GPU uses, nearest first.
struct PortUse {
  std::vector<std::uint32_t> ports;
  bool displaced = false;  // Its own ports are out of service: it uses that of another GPU.
};

// Gives every GPU the nearest ports: GPU k of m that are equally near to the same n ports gets
// those from k n / m up to (k + 1) n / m, and at least one. A GPU that has lost all of its own uses
// the next nearest one, of several the one with the fewest users.
[[nodiscard]] std::vector<PortUse> assign_ports(const PortDistances& distances);

}  // namespace flyover::routing
