#pragma once

#include "flyover/routing/route.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

// A route between two nodes, cut where it turns down again: what the fabric's switches add up
// climbs the first part, and their total comes down the second. Each has half of the latency.
struct SummitCut {
  Route up;
  Route down;
};
[[nodiscard]] SummitCut cut_at_summit(const Topology& topology, const Route& route, NodeId from);

// Whether both ends of a link are switches of the fabric.
[[nodiscard]] bool is_trunk(const Topology& topology, LinkId link);

}  // namespace flyover
