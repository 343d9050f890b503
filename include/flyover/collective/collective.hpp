#pragma once

// Names of algorithms, and the shape of a group: all that an algorithm sees of the cluster.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "flyover/workload/collective_op.hpp"

namespace flyover {

enum class AlgorithmId : std::uint8_t {
  Ring,
  Tree,
  Nvls,
  NvlsTree,
  CollnetDirect,
  CollnetChain,
  Pat,
  RecursiveDoubling,
  Direct,
  Pairwise,
  Hierarchical,
  AllPairs,
  OneShot,
  // Of expert exchanges, by mode (moe/planner.hpp); not in the table of algorithms.
  MoeNormal,
  MoeDirect,
  MoeLowLatency,
  MoeFused
};

// A group in rank order. Ranks are positions in the group; a member's domain is the scale-up domain
// (node) it sits in, and its rail the rail of its NIC.
struct GroupShape {
  std::vector<std::uint32_t> domain;  // Per rank; any numbers, equal when in one domain.
  std::vector<std::uint32_t> rail;    // Per rank.

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(domain.size()); }
};

// Ranks by domain: domains in order of their first rank, ranks in group order.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> by_domain(const GroupShape& shape);

// The rails on which channels enter each domain, equally many everywhere, so that no NIC carries
// more than the others: those that all domains have; without any, each domain's lowest, as many as
// the one with the fewest has. Domains in the order of by_domain, rails ascending.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> entry_rails(const GroupShape& shape);

[[nodiscard]] std::string_view to_string(AlgorithmId algorithm);  // "ring", "nvls-tree"
// Also NCCL's spellings: "Ring", "NVLSTree"; case is ignored.
[[nodiscard]] std::optional<AlgorithmId> algorithm_id(std::string_view name);

}  // namespace flyover
