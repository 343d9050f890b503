#pragma once

// The exact program of one collective on one group: which block goes from whom to whom, after what.
// A schedule knows neither the network nor the time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"

namespace flyover {

enum class Action : std::uint8_t {
  Copy,    // The receiver's block becomes what the sender's is.
  Reduce,  // The sender's block is added to the receiver's.
  // The sender's own contribution, as it was before the collective, is added to the receiver's
  // block: it is read from the input, which nothing overwrites. Between ranks only.
  Contribute,
};

inline constexpr std::uint32_t none = 0xffffffffU;
// The domain of the relay that stands for the network's switches, which reduce for all domains.
inline constexpr std::uint32_t network_relay = 0xfffffffeU;

// One message. Ranks of `ranks` and above are relays: reduction units of switches, of a domain's or
// of the network's (network_relay), which
// start empty (a Reduce into an empty block is a Copy) and whose Copy to every member is a
// multicast.
struct Transfer {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t block = 0;
  std::uint16_t channel = 0;
  Action action = Action::Copy;
  // The transfer on the same channel between the same two that must have ended first (one message
  // in flight per connection), or none. It orders time but carries no data.
  std::uint32_t previous = none;
};

struct Schedule {
  CollectiveOp op = CollectiveOp::AllReduce;
  std::uint32_t ranks = 0;
  std::uint32_t relays = 0;
  std::uint32_t root = 0;
  std::vector<std::uint32_t> relay_domain;  // Per relay: the domain (as in GroupShape) it serves.

  // What the collective promises about each block (see check). `owner` is the rank that must end
  // up with it: all_gather: that starts with it; reduce_scatter, scatter, all_to_all, sendrecv:
  // that ends with it; `source` the rank that starts with it (all_to_all, gather, sendrecv). Empty
  // where the collective names none. all_to_all: block s n + t goes from s to t, those with s = t
  // included.
  std::vector<Bytes> block_bytes;
  std::vector<std::uint32_t> block_owner;
  std::vector<std::uint32_t> block_source;

  // Every transfer comes after those that it needs. Dependencies are the receives (at the sender)
  // and the reads that must have ended before it starts, in CSR form.
  std::vector<Transfer> transfers;
  std::vector<std::uint32_t> dependency_begin;  // transfers.size() + 1 entries.
  std::vector<std::uint32_t> dependencies;

  [[nodiscard]] std::span<const std::uint32_t> after(std::uint32_t transfer) const {
    return std::span(dependencies)
        .subspan(dependency_begin[transfer],
                 dependency_begin[transfer + 1] - dependency_begin[transfer]);
  }
};

// Runs the schedule symbolically and says what is wrong with it, or "" when every rank ends with
// exactly what the collective promises, each contribution reduced exactly once, in *every* order
// that the dependencies allow (two transfers that touch one block of one rank, at least one writing
// it, must be ordered by dependencies or `previous`; but two Reduces into one block need no order,
// as a sum has none). For t transfers of a block over n ranks: O(t (t + n) / 64) a block.
[[nodiscard]] std::string check(const Schedule& schedule);

}  // namespace flyover
