#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flyover/moe/copies.hpp"
#include "flyover/workload/expert_exchange.hpp"
#include "moe/expert_homes.hpp"
#include "moe/gate_sampler.hpp"

namespace flyover::moe {

// Counts what tokens bring, drawn one after the other. Borrows group and homes.
class TokenCounter {
 public:
  TokenCounter(const ExpertRouting& routing, const ExpertGroup& group, const ExpertHomes& homes)
      : sampler_(routing),
        group_(group),
        homes_(homes),
        chosen_(routing.chosen),
        node_seen_(group.nodes(), 0),
        rank_seen_(group.ranks(), 0) {}

  // Adds to rows of tables.
  void count(Random& random, std::uint64_t tokens, std::span<double> node, std::span<double> rank,
             std::span<double> pairs);

 private:
  GateSampler sampler_;
  const ExpertGroup& group_;
  const ExpertHomes& homes_;
  std::vector<std::uint32_t> chosen_;
  std::uint64_t token_ = 0;
  std::vector<std::uint64_t> node_seen_;  // The last token that went there.
  std::vector<std::uint64_t> rank_seen_;
};

}  // namespace flyover::moe
