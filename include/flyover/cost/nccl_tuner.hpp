#pragma once

// NCCL's own performance model: the one it chooses with, not the one that we predict times with. A
// graph search finds channels x per-channel speed; published latencies and caps turn that into a
// time per algorithm and protocol. Equations: docs/models/cost.md; tables:
// configs/libraries/nccl-*.json.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/collective/collective.hpp"
#include "flyover/cost/protocol.hpp"

namespace flyover {

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple.
using ByNodes = std::array<double, 3>;     // 1, 2, more nodes.

// Speeds in GB/s and latencies in us, as in NCCL's tables.
struct TunerArchitecture {
  std::vector<double> node_speeds;     // Per channel, falling: what the search tries inside nodes,
  std::vector<double> network_speeds;  // and across.
  ByNodes ll{};                        // Caps on bus bandwidth: in total,
  ByNodes ring_ll128{};                // and per channel.
  ByNodes tree_ll128{};
  ByNodes tree_simple{};
  bool halve_fast_channels = false;  // Channels are doubled only from 50 GB/s when there are many.
};

struct TunerLatency {
  ByProtocol base{};
  ByProtocol nvlink{};
  ByProtocol pcie{};
  ByProtocol network{};
};

struct NcclTuning {
  std::map<std::string, TunerArchitecture> architectures;
  std::map<std::string, double> lane_speeds;  // GB/s per lane by link class, for planning.
  double pcie_share = 1;                      // Planned share of nominal bandwidth.
  double network_share = 1;
  std::map<AlgorithmId, TunerLatency> latencies;
  double network_post = 0;        // us per ring step on the host; three times as much for Simple.
  double nvls_ratio = 1;          // Bus to algorithm bandwidth of NVLS and NVLSTree.
  double ring_plateau = 1;        // Latency factor of ring-Simple all-reduce across nodes ...
  double ring_plateau_bytes = 0;  // ... from this many bytes per rank and channel on.
  std::array<std::vector<double>, 3> tree_correction;  // By protocol, per power of two from 64 B.
  std::uint32_t max_channels = 32;
  std::array<std::uint32_t, 3> threads{};       // Per channel, by protocol.
  std::array<std::uint32_t, 3> thread_bytes{};  // A channel pays off from threads x this on.
};

// What the model needs to know of a group.
struct TunerGroup {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  std::uint32_t local_ranks = 1;  // Of the fullest node.
  std::string architecture;
  bool nvlink = false;        // Members of a node reach each other over scale-up links.
  double node_bandwidth = 0;  // Planned GB/s of one GPU into its node.
  std::uint32_t nics = 0;     // Of one node, that the members use.
  double nic_bandwidth = 0;   // Planned GB/s of one.
};

// Channels and GB/s per channel that the search finds.
struct TunerGraph {
  std::uint32_t channels = 0;
  double node_speed = 0;
  double network_speed = 0;
};
struct TunerGraphs {
  TunerGraph ring;
  TunerGraph tree;  // The ring's channels, faster inside nodes where these allow it.
  TunerGraph nvls;
};
[[nodiscard]] const TunerArchitecture& tuner_architecture(const NcclTuning& tuning,
                                                          const std::string& name);
[[nodiscard]] TunerGraphs search_graphs(const NcclTuning& tuning, const TunerGroup& group);

// NCCL's estimate in us, or nothing when NCCL does not consider the combination.
[[nodiscard]] std::optional<double> tuner_time(const NcclTuning& tuning, const TunerGroup& group,
                                               const TunerGraphs& graphs, CollectiveOp op,
                                               AlgorithmId algorithm, Protocol protocol,
                                               Bytes bytes);

// Channels that NCCL opens (the search's, doubled), and those it uses for a message of `bytes`.
[[nodiscard]] std::uint32_t open_channels(const NcclTuning& tuning, const TunerGraph& graph);
[[nodiscard]] std::uint32_t used_channels(const NcclTuning& tuning, const TunerGroup& group,
                                          AlgorithmId algorithm, Protocol protocol, Bytes bytes,
                                          std::uint32_t open);

}  // namespace flyover
