#include "moe/fused.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

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

FusedShape fused_shape(const ExpertExchange& exchange, const ExpertCopies& copies) {
  const ExpertRouting& routing = exchange.routing;
  const std::uint32_t ranks = copies.pairs.columns;
  FusedShape shape;
  shape.experts = (routing.slots > 0 ? routing.slots : routing.experts) / ranks;
  shape.hidden = exchange.hidden;
  shape.expert_hidden = exchange.expert_hidden;
  shape.weight_bytes = exchange.kernels->weight_bytes;
  for (std::uint32_t to = 0; to < ranks; ++to) {
    double pairs = 0;
    for (std::uint32_t from = 0; from < ranks; ++from) pairs += copies.pairs.at(from, to);
    shape.pairs = std::max(shape.pairs, pairs);
  }
  const double missed = std::pow(1 - 1.0 / shape.experts, shape.pairs);
  shape.active = std::min(shape.pairs, shape.experts * (1 - missed));
  return shape;
}

FusedMachine fused_machine(const ExpertExchange& exchange, const GpuModel& gpu) {
  const auto flops = gpu.flops.find(exchange.dtype);
  if (flops == gpu.flops.end()) {
    throw InputError(fmt::format("{} has no rate for \"{}\"", gpu.name, exchange.dtype));
  }
  FusedMachine machine;
  machine.sms = exchange.sms > 0 ? exchange.sms : gpu.sms;
  machine.flops = flops->second.per_second();
  machine.efficiency = exchange.efficiency > 0 ? exchange.efficiency : gpu.flop_efficiency;
  machine.tile_extra = exchange.kernels->tile_extra;
  machine.memory_rate = gpu.memory_bandwidth.per_second() * gpu.memory_efficiency;
  return machine;
}

Waves waves_of(const FusedShape& shape, std::uint32_t sms) {
  const double rows = shape.pairs / shape.experts;
  Waves waves;
  waves.block = block_rows(rows);
  const double tiles =
      std::max(1.0, std::ceil(rows / waves.block)) * tiles_across(2.0 * shape.expert_hidden);
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
