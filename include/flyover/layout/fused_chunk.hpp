#pragma once

// Two micro-batches in one stage at once, one forward and one backward, so that dispatch and
// combine of each run beside kernels of the other: what DualPipe's fused steps do inside (DeepSeek-
// V3, 3.2.1, figure 4; the order is read from github.com/deepseek-ai/profile-data, train.json). A
// pair of layers, one of either micro-batch, is a period of two streams:
//
//   kernels    attention F   experts B   expert weights   experts F   attention B   weights
//   messages   combine B     dispatch F  dispatch B                   combine F
//
// with the next period's combine B beside the weights. Backward, a combine is a dispatch of
// gradients and a dispatch a combine. What waits for what beside the order of the streams:
//
//   attention F -> dispatch F -> experts F -> combine F -> attention F of the next layer
//   attention B -> combine B of the layer before -> experts B -> dispatch B -> attention B

#include <cstdint>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

// A layer of the micro-batch that goes forward. Layers without experts have attention alone.
struct ForwardSegments {
  Duration attention{};  // Up to the dispatch,
  Duration dispatch{};
  Duration experts{};  // up to the combine,
  Duration combine{};
  Duration after{};  // and what follows it.
};

// Of the one that goes backward.
struct BackwardSegments {
  Duration before{};   // Up to the combine's backward: what is recomputed, too.
  Duration combine{};  // Gradients to the experts.
  Duration experts{};
  Duration expert_weights{};
  Duration dispatch{};  // Gradients back from them.
  Duration attention{};
  Duration weights{};
};

// Layers in the order in which they run: backward, the last of the chunk first. Where one list is
// longer its rest runs alone, in the same order.
struct FusedChunk {
  std::vector<ForwardSegments> forward;
  std::vector<BackwardSegments> backward;
};

struct FusedRun {
  Duration span{};
  Duration kernels{};   // That the stream of kernels is busy,
  Duration messages{};  // likewise of messages,
  Duration exposed{};   // and messages while no kernel runs.
};

// While a message is under way kernels reach `kernel_rate` of their speed (1: all of it): with 20
// of 132 SMs taken for messages, 112 / 132. Messages keep theirs. Requires a rate above zero, and
// no more than 1. O(segments); to the picosecond with a rate of 1.
[[nodiscard]] FusedRun run_fused_chunk(const FusedChunk& chunk, double kernel_rate = 1);

// The same as the operations of each of so many ranks, streams "kernels" and "messages", all of
// recorded durations: for times that were measured while both ran. Operations are named after the
// segment, its way and the layer's place in the list: "experts B2".
[[nodiscard]] Workload fused_chunk_workload(const FusedChunk& chunk, std::string name,
                                            std::uint32_t ranks);

}  // namespace flyover
