#include "flyover/workload/collective_op.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace flyover {

namespace {

constexpr std::array<std::string_view, 13> names = {
    "all_reduce",   "all_gather",  "reduce_scatter", "all_to_all", "broadcast",
    "reduce",       "scatter",     "gather",         "sendrecv",   "barrier",
    "moe_dispatch", "moe_combine", "moe_fused"};

// "AllToAll_perf" and "all_to_all" are one word to a reader.
std::string squeeze(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (c != '_' && c != '-') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (word.ends_with("perf")) word.resize(word.size() - 4);
  return word;
}

std::optional<CollectiveOp> named(std::string_view name) {
  const std::string wanted = squeeze(name);
  const auto found = std::ranges::find_if(names, [&](auto n) { return squeeze(n) == wanted; });
  if (found == names.end()) return std::nullopt;
  return static_cast<CollectiveOp>(found - names.begin());
}

}  // namespace

double bus_factor(CollectiveOp op, std::uint32_t ranks) {
  if (ranks < 2) return 1;
  const double n = ranks;
  switch (op) {
    case CollectiveOp::AllReduce:
      return 2 * (n - 1) / n;
    case CollectiveOp::AllGather:
    case CollectiveOp::ReduceScatter:
    case CollectiveOp::AllToAll:
    case CollectiveOp::Scatter:
    case CollectiveOp::Gather:
      return (n - 1) / n;
    case CollectiveOp::Broadcast:
    case CollectiveOp::Reduce:
    case CollectiveOp::SendRecv:
    case CollectiveOp::Barrier:
    case CollectiveOp::MoeDispatch:
    case CollectiveOp::MoeCombine:
    case CollectiveOp::MoeFused:
      return 1;
  }
  return 1;
}

std::string_view to_string(CollectiveOp op) {
  return names[static_cast<std::size_t>(op)];
}

std::optional<CollectiveOp> collective_op(std::string_view name) {
  const std::optional<CollectiveOp> op = named(name);
  return op && !exchanges_experts(*op) ? op : std::nullopt;
}

std::optional<CollectiveOp> expert_op(std::string_view name) {
  const std::optional<CollectiveOp> op = named(name);
  return op && exchanges_experts(*op) ? op : std::nullopt;
}

std::span<const std::string> collective_op_names() {
  static const std::vector<std::string> list(
      names.begin(), names.begin() + static_cast<std::size_t>(CollectiveOp::MoeDispatch));
  return list;
}

}  // namespace flyover
