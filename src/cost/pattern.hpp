#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/collective/algorithms.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// What one algorithm does on one group, whatever the size and the protocol.
struct Pattern {
  std::vector<Hop> payload;  // Payload bytes on each link per byte of the call.
  bool sharp = false;        // Switches of the network reduce.
  std::uint32_t steps = 0;   // As in Summary.
  std::uint32_t domain_hops = 0;
  std::uint32_t network_hops = 0;
  Duration longest_latency{};          // Of the wires of any edge.
  Duration mean_network_latency{};     // Of the edges between domains.
  std::uint32_t domain_messages = 0;   // Most peers that a rank sends to in its domain,
  std::uint32_t network_messages = 0;  // and outside.
};

struct PatternOptions {
  // In a domain without switches rings use all links between its members (mesh.hpp) and not just
  // those between neighbours in group order.
  bool mesh_rings = false;
  // Rings leave a domain on the rail on which they enter the next one (NCCL pairs and turns its
  // rings so that they do), whatever the last member's own rail.
  bool rail_rings = false;
};

[[nodiscard]] Pattern trace_pattern(const Topology& topology, const Router& router,
                                    LoadMap& scratch, std::span<const std::uint32_t> ranks,
                                    const CollectiveShape& shape, const Algorithm& algorithm,
                                    const PatternOptions& options);

}  // namespace flyover
