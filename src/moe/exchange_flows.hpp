#pragma once

// The messages of one exchange, summed by pair of ranks.

#include <cstdint>
#include <vector>

#include "flyover/moe/copies.hpp"
#include "flyover/moe/planner.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// Wire bytes of one copy of a token: payload and header, aligned (MOE.md 1.2, 2.2). Mode Nccl sends
// payload alone.
[[nodiscard]] double message_bytes(const ExpertExchange& exchange, CollectiveOp op);

// What ranks send to each other in one call, by position in the group.
struct ExchangeFlows {
  std::uint32_t ranks = 0;
  std::vector<double> bytes;  // From (row) to (column), on the wire; zero from a rank to itself.
  // By rank: copies of tokens that it writes to other nodes,
  std::vector<double> remote_copies;
  // and network writes beside them: counts or flags.
  std::vector<double> signals;

  [[nodiscard]] double at(std::uint32_t from, std::uint32_t to) const {
    return bytes[std::size_t{from} * ranks + to];
  }
};

// For modes Nccl, Normal, Direct and LowLatency. Combine is dispatch the other way round, with the
// message of its own.
[[nodiscard]] ExchangeFlows exchange_flows(const ExpertExchange& exchange, CollectiveOp op,
                                           const ExpertGroup& group, const ExpertCopies& copies);

// Logical and physical bytes of the flows.
[[nodiscard]] ExpertTraffic traffic_of(const ExpertExchange& exchange, CollectiveOp op,
                                       const ExpertGroup& group, const ExpertCopies& copies,
                                       const ExchangeFlows& flows);

}  // namespace flyover
