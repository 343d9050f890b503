#include "flyover/workload/expert_exchange.hpp"

#include <algorithm>
#include <cmath>

namespace flyover {

std::string_view to_string(ExpertMode mode) {
  constexpr std::array<std::string_view, 5> names = {"nccl", "normal", "direct", "low-latency",
                                                     "fused"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view to_string(Gate gate) {
  constexpr std::array<std::string_view, 4> names = {"top-k", "group-sum-of-two", "group-max",
                                                     "hash"};
  return names[static_cast<std::size_t>(gate)];
}

std::string_view to_string(Placement placement) {
  constexpr std::array<std::string_view, 3> names = {"in-order", "hierarchical", "global"};
  return names[static_cast<std::size_t>(placement)];
}

std::uint64_t tokens_of(const ExpertExchange& exchange, std::uint32_t rank) {
  return exchange.rank_tokens.empty() ? exchange.tokens : exchange.rank_tokens[rank];
}

Bytes pair_bytes(const ExpertExchange& exchange, CollectiveOp op) {
  double tokens = exchange.tokens;
  for (const std::uint32_t own : exchange.rank_tokens) tokens = std::max<double>(tokens, own);
  double width = 0;
  if (op != CollectiveOp::MoeCombine) width += exchange.dispatch_bytes;
  if (op != CollectiveOp::MoeDispatch) width += exchange.combine_bytes;
  return Bytes{std::llround(tokens * exchange.routing.chosen * width)};
}

}  // namespace flyover
