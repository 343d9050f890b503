#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flyover {

enum class CollectiveOp : std::uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  Reduce,
  Scatter,
  Gather,
  SendRecv,
  Barrier,
  // Of expert-parallel ranks: what they move is an ExpertExchange (expert_exchange.hpp).
  MoeDispatch,
  MoeCombine,
  MoeFused
};

// Bytes are counted as nccl-tests does: all_gather: the output of a rank; reduce_scatter and
// all_to_all: the input of a rank; scatter and gather: the root's whole buffer; others: one buffer.
// SendRecv is nccl-tests' ring: every rank sends its buffer to the next rank of the group.
//
// busbw = algbw * bus_factor: all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all, scatter
// and gather (n-1)/n; broadcast, reduce, sendrecv 1 (nccl-tests, doc/PERFORMANCE.md). Expert
// exchanges count (token, expert) pairs and have no bus bandwidth of their own: 1.
[[nodiscard]] double bus_factor(CollectiveOp op, std::uint32_t ranks);

[[nodiscard]] std::string_view to_string(CollectiveOp op);  // "all_reduce"
// Also nccl-tests' spellings: "all_reduce_perf", "alltoall_perf", "alltoall", "allreduce".
// Without expert exchanges, which expert_op names.
[[nodiscard]] std::optional<CollectiveOp> collective_op(std::string_view name);
[[nodiscard]] std::optional<CollectiveOp> expert_op(std::string_view name);
// Whether an ExpertExchange says what is moved.
[[nodiscard]] constexpr bool exchanges_experts(CollectiveOp op) {
  return op >= CollectiveOp::MoeDispatch;
}
// The names as to_string writes them, for messages and `flyover list`.
[[nodiscard]] std::span<const std::string> collective_op_names();

}  // namespace flyover
