#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flyover::moe {

using Counts = std::vector<std::uint32_t>;  // Experts chosen of each group.

// Sorted counts: which values there are, and how many of each.
struct Parts {
  std::vector<std::uint32_t> value;
  std::vector<std::uint32_t> number;

  explicit Parts(const Counts& counts);
};

// In how many ways groups can have these counts, the rest of them none; 0 when there are too few.
[[nodiscard]] double arrangements(std::span<const std::uint32_t> number, std::uint32_t groups);

}  // namespace flyover::moe
