// How fast tokens are drawn and counted, and what expected copies cost.

#include <benchmark/benchmark.h>

#include "flyover/moe/copies.hpp"
#include "flyover/moe/popularity.hpp"

namespace {

using namespace flyover;

ExpertExchange exchange_of(Gate gate, std::uint32_t tokens, double exponent, bool sampled) {
  ExpertExchange exchange;
  exchange.tokens = tokens;
  exchange.routing.experts = 256;
  exchange.routing.chosen = 8;
  exchange.routing.gate = gate;
  exchange.routing.groups = 8;
  exchange.routing.groups_chosen = 4;
  exchange.routing.sampled = sampled;
  if (exponent > 0) exchange.routing.popularity = zipf_popularity(256, exponent, 1);
  return exchange;
}

ExpertGroup nodes_of_8(std::uint32_t ranks) {
  std::vector<std::uint32_t> domain;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) domain.push_back(rank / 8);
  return expert_group(domain);
}

// Gate, Zipf exponent in tenths. EP64 with 4,096 tokens per rank.
void sample_ep64(benchmark::State& state) {
  const ExpertExchange exchange = exchange_of(static_cast<Gate>(state.range(0)), 4096,
                                              static_cast<double>(state.range(1)) / 10, true);
  const ExpertGroup group = nodes_of_8(64);
  for (auto _ : state) benchmark::DoNotOptimize(expert_copies(exchange, group));
  state.SetItemsProcessed(state.iterations() * 64 * 4096);
}
BENCHMARK(sample_ep64)
    ->ArgNames({"gate", "zipf"})
    ->ArgsProduct({{0, 1, 2}, {0, 10}})
    ->Unit(benchmark::kMillisecond);

// A decoding step with a redundant expert for every fifth.
void sample_ep320(benchmark::State& state) {
  ExpertExchange exchange = exchange_of(static_cast<Gate>(state.range(0)), 128, 0, true);
  exchange.routing.slots = 320;
  const ExpertGroup group = nodes_of_8(320);
  for (auto _ : state) benchmark::DoNotOptimize(expert_copies(exchange, group));
  state.SetItemsProcessed(state.iterations() * 320 * 128);
}
BENCHMARK(sample_ep320)->ArgName("gate")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void expected_ep256(benchmark::State& state) {
  const ExpertExchange exchange = exchange_of(Gate::GroupMax, 4096, 0, false);
  const ExpertGroup group = nodes_of_8(256);
  for (auto _ : state) benchmark::DoNotOptimize(expert_copies(exchange, group));
}
BENCHMARK(expected_ep256)->Unit(benchmark::kMicrosecond);

}  // namespace
