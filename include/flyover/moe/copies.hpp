#pragma once

// How many copies of whose tokens go where: all that routing means to the network.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// Ranks of an expert-parallel group, by position, and the nodes they are in. A node's members are
// in group order; the index of a rank is its place there.
struct ExpertGroup {
  std::vector<std::uint32_t> node;                  // By rank; numbered as they come.
  std::vector<std::vector<std::uint32_t>> members;  // By node.
  std::vector<std::uint32_t> index;                 // By rank.

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(node.size()); }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(members.size()); }
};
// `domain`: by rank, any numbers, equal in one node.
[[nodiscard]] ExpertGroup expert_group(std::span<const std::uint32_t> domain);

// Counts by source rank (row) and destination.
struct CopyTable {
  std::uint32_t columns = 0;
  std::vector<double> counts;  // Row by row.

  [[nodiscard]] double at(std::uint32_t row, std::uint32_t column) const {
    return counts[std::size_t{row} * columns + column];
  }
};

// Own node and own rank included everywhere.
struct ExpertCopies {
  CopyTable to_node;  // Tokens of a rank that some expert of the node gets,
  CopyTable to_rank;  // likewise of a rank,
  CopyTable pairs;    // and (token, expert) pairs that a rank gets.
  // Whether every rank of a group whose nodes are alike sends and receives the same.
  bool balanced = false;
  // In words, for results: "expected, closed form", "expected, estimated from 262144 tokens",
  // "sampled, seed 1".
  std::string basis;
};

// Of an exchange on a group. Throws InputError, naming the numbers, when experts, groups or slots
// do not divide as the gate or placement needs, or k is more than the experts that may be chosen.
// Expected: O(ranks^2). With popularity that is not equal an estimate (up to 0.2 s), which equal
// arguments pay for once per process, from whatever thread. Sampled: O(tokens k), 10 to 90 ns per
// token and choice. Equations and what is estimated: docs/models/moe-routing.md.
[[nodiscard]] ExpertCopies expert_copies(const ExpertExchange& exchange, const ExpertGroup& group);

}  // namespace flyover
