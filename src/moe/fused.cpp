#include "moe/fused.hpp"

#include <algorithm>
#include <cmath>

namespace flyover {

namespace {

constexpr std::uint32_t tile_columns = 128;

std::uint32_t block_rows(double rows) {
  struct Step {
    double rows;
    std::uint32_t block;
  };
  constexpr Step steps[] = {{8.5, 16}, {16.5, 32}, {32.5, 64}, {64.5, 96}, {96.5, 128}};
  for (const Step& step : steps) {
    if (rows <= step.rows) return step.block;
  }
  return 192;
}

double tiles_across(double columns) {
  return std::ceil(columns / tile_columns);
}

}  // namespace

Waves waves_of(const FusedShape& shape, std::uint32_t sms) {
  const double rows = shape.pairs / shape.experts;
  Waves waves;
  waves.block = block_rows(rows);
  const double tiles = std::max(1.0, std::ceil(rows / waves.block)) *
                       tiles_across(2.0 * shape.expert_hidden);
  const auto fewest = static_cast<std::uint32_t>(std::ceil(2.0 * sms / tiles));
  std::uint32_t best = std::min(fewest, shape.experts);
  if (tiles < sms) {
    const auto fullness = [&](std::uint32_t w) {
      const std::uint32_t last = shape.experts % w;
      return last == 0 ? 1.0 : static_cast<double>(last) / w;
    };
    for (std::uint32_t w = best; w <= std::min(2 * fewest, shape.experts); ++w) {
      if (fullness(w) > fullness(best)) best = w;
    }
  }
  waves.experts_per_wave = best;
  waves.count = (shape.experts + best - 1) / best;
  return waves;
}

FusedWork fused_work(const FusedShape& shape, const FusedMachine& machine) {
  FusedWork work;
  work.waves = waves_of(shape, machine.sms);
  if (shape.pairs <= 0) return work;
  const double blocks = std::max(1.0, std::ceil(shape.pairs / shape.active / work.waves.block));
  const double sm_flops = machine.flops / machine.sms;
  const double sm_memory = machine.memory_rate / machine.sms;
  const auto layer = [&](double depth, double columns) {
    const double rounds = std::ceil(shape.active * blocks * tiles_across(columns) / machine.sms);
    const double per_channel = 2.0 * work.waves.block * tile_columns / sm_flops;
    const double products = per_channel * depth / machine.efficiency;
    const double extra = per_channel * machine.tile_extra;
    // Blocks of one expert share its weights, which stay in the L2 cache between them.
    const double load = tile_columns * depth * shape.weight_bytes / sm_memory / blocks;
    work.compute += rounds * (products + extra);
    work.memory += rounds * (load + extra);
    work.seconds += rounds * (std::max(products, load) + extra);
  };
  layer(shape.hidden, 2.0 * shape.expert_hidden);
  layer(shape.expert_hidden, shape.hidden);
  return work;
}

}  // namespace flyover
