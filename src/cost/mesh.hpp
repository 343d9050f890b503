#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/topology/topology.hpp"

namespace flyover {

struct DirectPair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double share = 0;  // Of the bandwidth of all pairs.
};

// The pairs of a domain's members that have a scale-up link of their own, when rings can be
// threaded through these links so that all of them are used: no switch, every member linked to two
// others or more, and nobody out of reach. Otherwise none.
[[nodiscard]] std::vector<DirectPair> direct_pairs(const Topology& topology,
                                                   std::span<const std::uint32_t> ranks);

}  // namespace flyover
