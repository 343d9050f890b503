#pragma once

// The summary of a collective for the fluid engine, computed directly, in time linear in the edges
// it uses (all-to-all: in the pairs).

#include <cstdint>
#include <vector>

#include "flyover/collective/collective.hpp"
#include "flyover/collective/schedule.hpp"

namespace flyover {

// Load on one directed edge between ranks (or relays, numbered from `ranks` as in Schedule).
struct EdgeLoad {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double fraction = 0;         // Payload bytes over this edge ÷ the collective's bytes.
  std::uint32_t messages = 0;  // Blocks sent over it.
  std::uint16_t channel = 0;

  friend bool operator==(const EdgeLoad&, const EdgeLoad&) = default;
};

struct Summary {
  std::uint32_t ranks = 0;
  std::uint32_t relays = 0;
  std::vector<std::uint32_t> relay_domain;
  std::vector<EdgeLoad> edges;  // Sorted by (channel, from, to); one entry each.
  // The longest chain of transfers that must follow one another, in transfers, counting the order
  // of a connection's messages (Transfer::previous) too.
  std::uint32_t steps = 0;
  // The longest data-only chain (dependencies without `previous`) in hops inside a domain and
  // between domains: of all longest-in-hops chains, the one with most hops between domains.
  std::uint32_t intra_hops = 0;
  std::uint32_t inter_hops = 0;
};

// Load on the edges between members of a domain, or from one domain to another, over all channels.
struct MemberLoad {
  std::uint32_t from =
      0;  // Positions among the domain's members; as many as there are: its switch.
  std::uint32_t to = 0;
  double fraction = 0;
  std::uint32_t channels = 0;  // That have the edge.
};

// The summary of a group of alike domains, each with members on the same rails, in order of rails:
// its size does not grow with the channels, nor with the members of all domains together.
struct FoldedSummary {
  std::uint32_t steps = 0;  // As in Summary.
  std::uint32_t intra_hops = 0;
  std::uint32_t inter_hops = 0;
  std::vector<MemberLoad> inside;  // The same in every domain.
  // From one domain to another, by kind of edge,
  std::vector<std::vector<MemberLoad>> between;
  struct Edge {
    std::uint32_t from = 0;  // Domains, in order of first rank.
    std::uint32_t to = 0;
    std::uint32_t kind = 0;
  };
  std::vector<Edge> edges;  // and all edges.
};

// The same facts, derived from a schedule: what the direct summary is tested against.
[[nodiscard]] Summary summarise(const Schedule& schedule, const GroupShape& shape);

}  // namespace flyover
