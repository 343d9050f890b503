#pragma once

// DeepEP's normal dispatch chunk by chunk, to hold the planner's closed form to: channels that copy
// a chunk and post it, NICs and NVLink ports that serve one message after the other, receive rings
// with windows of tokens, forwarders that free them once a chunk has left (MOE.md 1.3).

#include "flyover/base/units.hpp"
#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover::test {

struct ChunkedMachine {
  double network_rate = 0;  // Bytes per second of a NIC, each way, as the kernels reach it,
  double nvlink_rate = 0;   // and of a GPU's NVLinks.
  Duration network_latency{};
  Duration nvlink_latency{};
};

// Time from the start of all channels to the last token in place. Requires nodes of equal size.
[[nodiscard]] Duration chunked_dispatch(const ExpertExchange& exchange, const ExpertGroup& group,
                                        const ExpertCopies& copies, const ChunkedMachine& machine);

}  // namespace flyover::test
