#pragma once

// What no kernel can beat: when compute can hide an expert exchange, how long three ways to overlap
// them take, and how fast a token can be made. Closed forms from DeepSeek's reports.

#include <cstdint>

#include "flyover/base/units.hpp"

namespace flyover {

// FLOP per byte up to which the exchange of (token, expert) pairs hides behind their experts: a
// pair is 6 h d FLOP (three matrices) and 3 h bytes (FP8 there, BF16 back), so that C/B <= 2 d
// (DeepSeek-V4 report, 3.1). `d`: the experts' hidden size.
[[nodiscard]] double hidden_flops_per_byte(std::uint32_t d);
// Likewise of a NIC where a token crosses once for every node: `copies` per token, against `chosen`
// experts and `shared` ones.
[[nodiscard]] double hidden_flops_per_network_byte(std::uint32_t d, std::uint32_t chosen,
                                                   double copies, std::uint32_t shared = 1);

// Of one MoE layer, in units of its compute, of which two thirds are the first matrices and a third
// the second; `communication` is in the same units, a third dispatch and two thirds combine
// (DeepSeek-V4 report, Fig. 5). Ideal: nothing is lost to granularity.
struct LayerOverlap {
  double naive = 0;      // One after the other.
  double two_stage = 0;  // Dispatch beside the first matrices, combine beside the second (Comet).
  double waves = 0;      // All at once, but for the first wave's dispatch and the last's combine.
};
// Requires communication >= 0 and at least one wave.
[[nodiscard]] LayerOverlap layer_overlap(double communication, std::uint32_t waves);

// The least time per output token when only the exchange counts: two micro-batches, each of which
// is dispatched and combined while the other computes (arXiv 2505.09343, 2.3.2).
struct DecodeLimit {
  Duration exchange{};   // Dispatch and combine of a micro-batch in one layer.
  Duration per_token{};  // Through all layers.
  double tokens_per_second = 0;
};
struct DecodeShape {
  std::uint32_t tokens = 32;  // Of a GPU, in a micro-batch.
  std::uint32_t copies = 9;   // Routed experts and the shared one.
  std::uint32_t hidden = 7000;
  double bytes = 3;  // Per value, there and back.
  std::uint32_t layers = 61;
};
[[nodiscard]] DecodeLimit decode_limit(const DecodeShape& shape, Bandwidth rate);

}  // namespace flyover
