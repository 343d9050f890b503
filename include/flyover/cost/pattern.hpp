#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/algorithms.hpp"
#include "flyover/routing/route.hpp"

namespace flyover {

// Of a group of domains that are alike some carry the same, link by link.
struct DomainFold {
  std::vector<std::uint32_t> kind;   // Per domain, in order of first rank.
  std::vector<std::uint32_t> first;  // Per kind, its first domain.
};

// What one algorithm does on one group, whatever the size and the protocol.
struct Pattern {
  std::vector<Hop> payload;  // Payload bytes on each link per byte of the call.
  // Where there is one the payload names, of links in domains, those of the first of each kind
  // only.
  std::shared_ptr<const DomainFold> fold;
  bool sharp = false;       // Switches of the network reduce.
  std::uint32_t steps = 0;  // As in Summary.
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

// Lays an algorithm on a group in a way of its own. The payload may then name some links only, of
// each sort that carries as much per byte and has as much bandwidth one; none: it does not know
// how.
using PatternTracer = std::function<std::optional<Pattern>(const CollectiveShape&, const Algorithm&,
                                                           const PatternOptions&)>;

}  // namespace flyover
