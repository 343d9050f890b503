#pragma once

// What a dispatch, a combine or both in one kernel load, and what they take: the plan that the
// engine runs, as the cost model makes them for collectives.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flyover/cost/cost_model.hpp"
#include "flyover/moe/copies.hpp"
#include "flyover/topology/topology.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover {

// Bytes of one call by one kind of port, per direction.
struct PortBytes {
  double mean = 0;  // Over the group's ranks.
  double most = 0;  // Of the busiest, in or out.
};

struct ExpertTraffic {
  double nodes_per_token = 0;  // E[D_n], own node included, over all tokens of the group,
  double ranks_per_token = 0;  // E[D_N], own rank included.
  // Payload as DeepEP counts it, local copies included: of nodes (RDMA) and of ranks (NVLink);
  // modes without a forwarding hop count in both what they send: (token, expert) pairs, or, in mode
  // Direct, tokens of ranks.
  PortBytes logical_network;
  PortBytes logical_nvlink;
  // What crosses the wire, with headers: sent or received, own node and own rank left out.
  PortBytes network;
  PortBytes nvlink;
  std::string basis;  // ExpertCopies::basis.
};

struct ExpertPlan {
  // Loads per byte of pair_bytes(). `algorithm` names the mode.
  CollectivePlan plan;
  ExpertTraffic traffic;
  std::uint32_t sms = 0;  // That the kernels hold on every GPU from the start to the end.
  // The parts of plan.startup that are not the kernel's: counts and barrier before it, and the copy
  // or sum of what arrived by a kernel of its own after it.
  Duration notify{};
  Duration epilogue{};
  // HBM bytes, reads and writes, of a mean GPU per byte of pair_bytes() that the kernels' own
  // copies cost beside what is sent and received: send and receive rings, unpacking, the final
  // sums.
  double local_copies = 0;
  bool balanced = false;  // ExpertCopies::balanced.
};

// The kernel's own time, without what comes before and after it.
[[nodiscard]] inline Duration kernel_alone(const ExpertPlan& plan) {
  return plan.plan.alone - plan.notify - plan.epilogue;
}

// DeepEP's "bottleneck bandwidth": logical bytes of the network where the group spans nodes, else
// of NVLink, by the time of the kernel alone, GB/s (MOE.md 1.8).
[[nodiscard]] double bottleneck_bandwidth(const ExpertTraffic& traffic, Duration kernel,
                                          bool spans_nodes);

// Borrows all. Plans are remembered by exchange (its address), operation and ranks.
class ExpertPlanner {
 public:
  ExpertPlanner(const Topology& topology, const CostModel& cost);
  ~ExpertPlanner();
  ExpertPlanner(ExpertPlanner&&) noexcept;

  // `op`: MoeDispatch, MoeCombine, or MoeFused for mode Fused. Throws InputError for a group that
  // the mode cannot serve (more ranks than a kernel supports, no NIC, no NVLink for Fused) and as
  // expert_copies does; SimulationError when members cannot reach each other.
  [[nodiscard]] const ExpertPlan& plan(const ExpertExchange& exchange, CollectiveOp op,
                                       std::span<const std::uint32_t> ranks) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
