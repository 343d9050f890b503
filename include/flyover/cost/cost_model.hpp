#pragma once

// What a communication library would do with a collective on a cluster, and what that costs: the
// candidates (algorithm x protocol x channels), the one that the library would choose, and for each
// the stream that the engine runs.
//
//   T(S) = startup(S) + S / rate      (LatencyRule in library.hpp has the parts of the start-up)
//   rate = min(cap, min over links of capacity / weight)
//
// with weight = payload bytes on the link per byte of S x the protocol's wire bytes per payload
// byte, divided by the efficiency of the link's generation under that algorithm and protocol.
// docs/models/cost.md has every equation and parameter.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/algorithms.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/cost/library.hpp"
#include "flyover/cost/pattern.hpp"
#include "flyover/routing/router.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover {

struct CollectiveCall {
  CollectiveOp op = CollectiveOp::AllReduce;
  Bytes bytes;
  std::string dtype;                 // "" when not stated.
  std::vector<std::uint32_t> ranks;  // GPU indices in group order.
  std::uint32_t root = 0;            // Position in `ranks`.
};

// One way to run the call. Plain data.
struct CollectivePlan {
  AlgorithmId algorithm = AlgorithmId::Ring;
  Protocol protocol = Protocol::Simple;
  std::uint32_t channels = 1;
  bool sharp = false;  // The network's switches reduce.
  Duration startup{};  // Before bytes flow: launch, hops, pipeline fill.
  // Wire bytes on each link per byte of the call, protocol overhead included; ascending by link.
  // Shared between plans of one group that differ in size only.
  std::shared_ptr<const std::vector<Hop>> loads;
  std::shared_ptr<const DomainFold> fold;  // As in Pattern: then `loads` does not name all links.
  double rate_cap = std::numeric_limits<double>::infinity();  // Bytes of the call per second.
  Duration alone{};                                           // Time without contention.
  // What limits it alone: "latency", "nvlink out", "nic in (host-leaf)", "protocol (LL)", "channels
  // (2)", "reduction (fp8)", "nothing to send".
  std::string bottleneck;
  double wire_share = 0;  // Of the bottleneck link's capacity that is used while bytes flow.
};

struct Choice {
  CollectivePlan plan;                       // What the library would choose.
  std::vector<CollectivePlan> alternatives;  // The others, fastest first, without loads.
};

// The same library told to take the fastest of all that it could be told to: what the user's
// NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE rule out, and what NCCL's own model would not choose,
// is considered; what the hardware cannot do is not, nor CollNet unless it is on already: it takes
// a plug-in and a fabric that is set up for it. Limits on channels stay. A CostModel with it gives
// the best possible plan:
//
//   const Library open = best_possible(library);
//   const CollectivePlan best = CostModel(topology, router, open).choose(call).plan;
//
// The router need not be built anew.
[[nodiscard]] Library best_possible(Library library);

// The variables that make the library take a plan: {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL128"}.
// None where NCCL's variables do not apply to the collective; NCCL_NVLS_ENABLE and
// NCCL_COLLNET_ENABLE only where the library's settings would not let it otherwise.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> variables_for(
    const Library& library, CollectiveOp op, const CollectivePlan& plan);

// The library that fits the chips of a topology: "rccl" for AMD's (architecture "cdna..."), "ideal"
// for TPUs, whose library we have no parameters of, else "nccl".
[[nodiscard]] std::string default_library(const Topology& topology);

// Borrows topology, router and library, which must outlive it. The router's options and the
// library's settings should agree on PXN. The first call of a group costs its edges, later ones
// microseconds; caches per group; not safe to share between threads.
class CostModel {
 public:
  CostModel(const Topology& topology, const Router& router, const Library& library);
  ~CostModel();
  CostModel(CostModel&&) noexcept;

  // Throws InputError when the group is empty, names a rank twice or one that is not there, when
  // its root is outside, and when the settings leave nothing to choose from (NCCL_ALGO=NVLS on a
  // PCIe box), with the reason for every algorithm; SimulationError when members cannot reach each
  // other.
  // `tracer`: asked before the group's edges are followed one by one; equal ranks mean equal
  // answers.
  [[nodiscard]] Choice choose(const CollectiveCall& call,
                              const PatternTracer& tracer = nullptr) const;
  // The plan of choose() alone. Where the library decides by its own estimates only the algorithm
  // that it decides for is laid on the group, which for thousands of ranks is most of the cost.
  [[nodiscard]] CollectivePlan plan(const CollectiveCall& call,
                                    const PatternTracer& tracer = nullptr) const;

  // A single message from rank to rank (send/recv).
  [[nodiscard]] CollectivePlan point_to_point(std::uint32_t from, std::uint32_t to,
                                              Bytes bytes) const;

  // Takes these instead of the library's from now on; groups need not be built again.
  void set_site(const SiteParameters& site);

  [[nodiscard]] GroupShape shape(std::span<const std::uint32_t> ranks) const;
  [[nodiscard]] const Router& router() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flyover
