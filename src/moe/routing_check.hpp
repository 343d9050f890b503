#pragma once

#include <cstdint>

#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover::moe {

[[nodiscard]] inline std::uint32_t slots_of(const ExpertRouting& routing) {
  return routing.slots == 0 ? routing.experts : routing.slots;
}

// Throws InputError, naming the numbers, when experts cannot be chosen or placed as `routing` says.
void check_routing(const ExpertRouting& routing, const ExpertGroup& group);

}  // namespace flyover::moe
