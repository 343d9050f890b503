#pragma once

// A collective replayed message by message: slower than its stream, and what the stream is checked
// against.

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/schedule.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

struct ChunkReplay {
  Duration time{};
  std::uint64_t events = 0;
  std::vector<double> link_bytes;  // By link.
};

// Every transfer starts when its dependencies have ended, takes the wire latency of its route, then
// moves its bytes at the fair rate. `ranks` are the GPUs of the group, in group order; relays are
// the switches of the domain that their members are in. Throws SimulationError when two of them
// cannot reach each other.
[[nodiscard]] ChunkReplay replay_chunks(const Topology& topology, const Router& router,
                                        const Schedule& schedule,
                                        std::span<const std::uint32_t> ranks);

}  // namespace flyover
