#pragma once

// Sends and receives, matched: the k-th send of a (from, to, tag) meets the k-th receive.

#include <cstdint>
#include <limits>
#include <vector>

#include "flyover/workload/operation_graph.hpp"
#include "simulate/program.hpp"

namespace flyover {

inline constexpr std::uint64_t no_instance = std::numeric_limits<std::uint64_t>::max();

struct MatchedMessage {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Bytes bytes;
  std::uint64_t send = no_instance;
  std::uint64_t receive = no_instance;
  double slowdown = 1;  // The sender's.
};

struct Messages {
  std::vector<MatchedMessage> all;  // Sorted by (from, to, tag, k).
  // Message of an instance that sends or receives. Sorted by instance.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_instance;

  [[nodiscard]] std::uint32_t of(std::uint64_t instance) const;
};

// Throws InputError for a peer that is no rank or the rank itself, and where the two sides of a
// message disagree on its size.
[[nodiscard]] Messages match_messages(const Workload& workload, const Ranks& ranks);

}  // namespace flyover
