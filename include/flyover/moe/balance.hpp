#pragma once

// How unevenly experts load the ranks and nodes that they are on. A dispatch ends when the busiest
// has got all: of the normal kernels NVLink and matrices wait for the busiest rank and the network
// for the busiest node, of the low-latency kernels all wait for the busiest rank (MOE.md 3.1).

#include <span>
#include <vector>

#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

struct LoadBalance {
  double mean = 0;
  double most = 0;

  // TensorRT-LLM's imbalance ratio, max / mean - 1; 0 without load.
  [[nodiscard]] double imbalance() const { return mean > 0 ? most / mean - 1 : 0; }
  // SGLang's balancedness, mean / max; 1 without load.
  [[nodiscard]] double balancedness() const { return most > 0 ? mean / most : 1; }
};
// Requires a load.
[[nodiscard]] LoadBalance load_balance(std::span<const double> loads);

struct ExpertLoads {
  std::vector<double> slot;
  std::vector<double> rank;
  std::vector<double> node;
};
// When expert e gets load[e], in equal parts to each of its slots. `slots`: the expert of every
// slot, as expert_slots and eplb make them.
[[nodiscard]] ExpertLoads expert_loads(std::span<const double> load,
                                       std::span<const std::uint32_t> slots,
                                       const ExpertGroup& group);

// What destinations get from all sources, own included: the sum of each column.
[[nodiscard]] std::vector<double> received(const CopyTable& table);

}  // namespace flyover
