#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover::moe {

// The ranks that the slots of every expert are on; a rank with two of them comes twice.
struct ExpertHomes {
  std::vector<std::uint32_t> begin;  // By expert, into `rank`; one more than experts.
  std::vector<std::uint32_t> rank;

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t expert) const {
    return std::span(rank).subspan(begin[expert], begin[expert + 1] - begin[expert]);
  }
};

// Throws InputError as expert_slots does.
[[nodiscard]] ExpertHomes expert_homes(const ExpertRouting& routing, const ExpertGroup& group);

}  // namespace flyover::moe
