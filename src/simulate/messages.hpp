#pragma once

// Sends and receives, matched: the k-th send of a (from, to, tag) meets the k-th receive.

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "flyover/workload/operation_graph.hpp"
#include "simulate/program.hpp"

namespace flyover {

inline constexpr std::uint64_t no_instance = std::numeric_limits<std::uint64_t>::max();

// One message, told by the operations of the two programs; absent: there is none to meet.
struct MessagePattern {
  std::uint32_t send = absent;
  std::uint32_t receive = absent;
  Bytes bytes;
  double slowdown = 1;  // The sender's.
};

// All that one rank sends another.
struct RankPair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t pattern = 0;  // Equal ones stand for equal programs and equal operations of them.
};

struct MessagePairs {
  std::vector<RankPair> pairs;                        // Sorted by (from, to).
  std::vector<std::vector<MessagePattern>> patterns;  // Sorted by (tag, k).
};

// Throws InputError for a peer that is no rank or the rank itself, and where the two sides of a
// message disagree on its size. Costs the peers of all ranks and the operations of all programs.
[[nodiscard]] MessagePairs pair_messages(const Workload& workload, const Ranks& ranks);

struct MatchedMessage {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Bytes bytes;
  std::uint64_t send = no_instance;
  std::uint64_t receive = no_instance;
  double slowdown = 1;  // The sender's.
  // Between which GPUs, and for how many messages that are alike it stands.
  std::uint32_t from_gpu = 0;
  std::uint32_t to_gpu = 0;
  std::uint32_t count = 1;
};

struct Messages {
  std::vector<MatchedMessage> all;  // Pair by pair, by (tag, k).
  // Message of an instance that sends or receives. Sorted by instance.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_instance;

  // Appends the messages of a pair, `count` times over. Call index() after the last.
  void add(std::uint32_t from, std::uint32_t to, const std::vector<MessagePattern>& pattern,
           const Ranks& ranks, const RankPair& gpus, std::uint32_t count);
  void index();

  [[nodiscard]] std::uint32_t of(std::uint64_t instance) const;
};

// Every rank's own messages.
[[nodiscard]] Messages match_messages(const Workload& workload, const Ranks& ranks);

}  // namespace flyover
