#pragma once

// What bounds the kernels themselves, whatever the links could carry (MOE.md 1.3, 1.5).

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"
#include "moe/exchange_flows.hpp"

namespace flyover {

// How the kernels are run.
struct KernelUse {
  std::uint32_t sms = 0;  // 0: as many as sms_for() says.
  std::uint32_t channels = 0;
  std::uint32_t chunk = 0;  // Tokens per network write; 0: the library has no chunks.
};
// Throws InputError when the SMs make no channel or a chunk does not fit into the ring.
[[nodiscard]] KernelUse kernel_use(const ExpertExchange& exchange, CollectiveOp op,
                                   std::uint32_t ranks);

// Tokens that a rank's kernels copy, by role.
struct CopyWork {
  double tokens = 0;     // Its own tokens,
  double to_nodes = 0;   // copies of them for nodes, own node included,
  double own_node = 0;   // of those for its own node,
  double to_ranks = 0;   // and for ranks, own rank included.
  double arriving = 0;   // Copies for its node that it forwards, its own tokens' included,
  double forwarded = 0;  // what it makes of them for ranks of its node,
  double received = 0;   // and tokens for its own experts.
};
[[nodiscard]] std::vector<CopyWork> copy_work(const ExpertExchange& exchange,
                                              const ExpertGroup& group, const ExpertCopies& copies);

struct KernelLimit {
  double seconds = 0;   // That the call takes at least while bytes flow.
  std::string binding;  // "sms (20)", "writes of 8 tokens", "window of 128 tokens".
};
// What a library that states no number takes: as many as read 200 and write 50 GB/s each and keep
// up with links that need so many seconds for the slowest rank, and a quarter more; even, and at
// least four (DeepEP V2's rule, MOE.md 1.5, which counts on all of the network and 0.9 of NVLink).
[[nodiscard]] std::uint32_t sms_for(const ExpertExchange& exchange, CollectiveOp op,
                                    const ExpertGroup& group, const std::vector<CopyWork>& work,
                                    double link_seconds);

// Of the slowest rank. `round_trip`: of the network's wires.
[[nodiscard]] KernelLimit kernel_limit(const ExpertExchange& exchange, CollectiveOp op,
                                       const ExpertGroup& group, const ExpertCopies& copies,
                                       const ExchangeFlows& flows,
                                       const std::vector<CopyWork>& work, const KernelUse& use,
                                       Duration round_trip);

// HBM bytes of a mean rank, reads and writes, beside those of what it sends and receives.
[[nodiscard]] double local_copy_bytes(const ExpertExchange& exchange, CollectiveOp op,
                                      const ExpertGroup& group, const std::vector<CopyWork>& work);

}  // namespace flyover
