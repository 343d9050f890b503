#pragma once

// DeepSeek's settings on DeepSeek's machine, for tests of expert exchanges.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flyover/io/expert_kernels_reader.hpp"
#include "flyover/io/topology_reader.hpp"
#include "flyover/moe/planner.hpp"
#include "support/cluster.hpp"

namespace flyover::test {

inline std::shared_ptr<const ExpertKernels> expert_kernels(const std::string& name,
                                                           ExpertMode mode) {
  return std::make_shared<ExpertKernels>(
      io::read_expert_kernels(io::expert_kernels_document(name), mode));
}

// Nodes of eight H800, each NIC in a plane of its own.
inline Topology h800_planes(std::uint32_t nodes) {
  return io::read_topology(io::Document::parse(
      "h800.json", R"({"node": {"preset": "hgx-h800"}, "nodes": )" + std::to_string(nodes) +
                       R"(, "fabric": {"type": "multi-plane", "preset": "ndr"}})"));
}

inline std::vector<std::uint32_t> first_ranks(std::uint32_t count) {
  std::vector<std::uint32_t> ranks(count);
  for (std::uint32_t r = 0; r < count; ++r) ranks[r] = r;
  return ranks;
}

// On the first `ranks` GPUs, by a planner that remembers nothing of other exchanges.
inline ExpertPlan expert_plan(const Cluster& cluster, const ExpertExchange& exchange,
                              CollectiveOp op, std::uint32_t ranks) {
  return ExpertPlanner(cluster.topology, cluster.cost).plan(exchange, op, first_ranks(ranks));
}

// DeepEP's benchmark of its normal kernels at so many ranks: groups are nodes, of which a token may
// take four; FP8 with a scale per 128 values there, BF16 back; layout cached.
inline ExpertExchange deepep_normal(std::uint32_t ranks, const std::string& library = "deepep-v1") {
  ExpertExchange exchange;
  exchange.name = "benchmark";
  exchange.mode = ExpertMode::Normal;
  exchange.routing.experts = 256;
  exchange.routing.chosen = 8;
  if (const std::uint32_t nodes = ranks / 8; nodes > 4) {
    exchange.routing.gate = Gate::GroupMax;
    exchange.routing.groups = nodes;
    exchange.routing.groups_chosen = 4;
  }
  exchange.tokens = 4096;
  exchange.hidden = 7168;
  exchange.dispatch_bytes = 7392;
  exchange.combine_bytes = 14336;
  exchange.cached = true;
  exchange.sms = 24;
  exchange.kernels = expert_kernels(library, exchange.mode);
  return exchange;
}

// DeepEP's benchmark of its low-latency kernels.
inline ExpertExchange deepep_low_latency(const std::string& library = "deepep-v1") {
  ExpertExchange exchange;
  exchange.name = "benchmark";
  exchange.mode = ExpertMode::LowLatency;
  exchange.routing.experts = 256;
  exchange.routing.chosen = 8;
  exchange.tokens = 128;
  exchange.hidden = 7168;
  exchange.dispatch_bytes = 7392;
  exchange.combine_bytes = 14336;
  exchange.kernels = expert_kernels(library, exchange.mode);
  return exchange;
}

}  // namespace flyover::test
