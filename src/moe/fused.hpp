#pragma once

// Dispatch, the experts' two matrices and combine in one persistent kernel, in waves of experts
// (MegaMoE; MOE.md 5.3 to 5.5).
//
// A rank has `experts` of them, each of `rows` (token, expert) pairs. Rows are cut into blocks of
// M; a tile is a block by 128 columns, of h channels (gate and up, 2 d columns) or of d (down, h
// columns). Tiles go round the SMs in turn. A tile of depth K takes
//
//   max(M 128 2 K / (efficiency peak / SMs), weights / (HBM / SMs)) + M 128 2 tile_extra / (peak /
//   SMs)
//
// where the first term is its products, or the weights that it is the first to need on their way
// from HBM, and tile_extra stands for what does not overlap with either: the activation, casting
// and pushing rows home, all of which grow with M and not with K.

#include <cstdint>

#include "flyover/moe/copies.hpp"
#include "flyover/topology/hardware.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

struct FusedShape {
  std::uint32_t experts = 0;        // Of the rank (slots).
  double pairs = 0;                 // Of all its experts.
  double active = 0;                // Experts with any pair: an expected number.
  std::uint32_t hidden = 0;         // h
  std::uint32_t expert_hidden = 0;  // d
  double weight_bytes = 0;          // Of an element of the matrices.
};

// Of the rank with most pairs, which fall on its experts at random.
[[nodiscard]] FusedShape fused_shape(const ExpertExchange& exchange, const ExpertCopies& copies);

struct FusedMachine {
  std::uint32_t sms = 0;
  double flops = 0;        // Peak of the data type, per second.
  double efficiency = 0;   // Share of it that the products of a tile reach.
  double tile_extra = 0;   // Channels.
  double memory_rate = 0;  // Bytes per second.
};

// Of a GPU. Throws InputError when it has no rate for the exchange's data type.
[[nodiscard]] FusedMachine fused_machine(const ExpertExchange& exchange, const GpuModel& gpu);

struct Waves {
  std::uint32_t block = 0;             // M
  std::uint32_t experts_per_wave = 0;  // w
  std::uint32_t count = 0;
};
// M by the expected rows of an expert; w the fewest experts with two rounds of first-matrix tiles,
// and, where one expert does not fill the SMs, up to twice as many when that fills the last wave
// better.
[[nodiscard]] Waves waves_of(const FusedShape& shape, std::uint32_t sms);

// Of all tiles, without waiting for tokens.
struct FusedWork {
  Waves waves;
  double compute = 0;  // Seconds if weights came at once,
  double memory = 0;   // if products took no time,
  double seconds = 0;  // and as it is.
};
[[nodiscard]] FusedWork fused_work(const FusedShape& shape, const FusedMachine& machine);

}  // namespace flyover
