#pragma once

// Which NICs carry a transfer between two nodes, and which GPUs relay it (PXN).

#include <cstdint>
#include <vector>

#include "cluster.hpp"

namespace flyover::routing {

// A part of a transfer: from the sender, over a GPU of its node if `from_relay` is one, out by a
// port, in by a port, over a GPU of the receiver's node if `to_relay` is one, to the receiver.
struct Lane {
  std::uint32_t from_port = 0;
  std::uint32_t to_port = 0;
  double share = 1;
  std::uint32_t from_relay = none;  // Index of a GPU within its node.
  std::uint32_t to_relay = none;
};

// Fills `lanes` (shares add up to 1), in this order of preference:
// 1. from the sender's NICs to those of the receiver on the same rails;
// 2. with PXN, over the GPU of the sender's node on the receiver's rail, when that enters the
// fabric
//    elsewhere than the sender's own NIC;
// 3. from the sender's NICs to the receiver's over whatever joins the rails;
// 4. with PXN, over GPUs at either end that do have NICs which are joined.
// Leaves `lanes` empty when there is no way.
void choose_lanes(Cluster& cluster, RankPlace from, RankPlace to, bool pxn,
                  std::vector<Lane>& lanes);

}  // namespace flyover::routing
