#pragma once

// NCCL's own performance model: the one it chooses with, not the one that we predict times with. A
// graph search finds channels x per-channel speed; published latencies and caps turn that into a
// time per algorithm and protocol. What changed from version to version is data, so that one set of
// equations serves them all. Equations: docs/models/cost.md; tables: configs/libraries/nccl-*.json.

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
  double ll = 0;                       // Caps on bus bandwidth: in total, inside a node,
  ByNodes ring_ll128{};                // and per channel.
  ByNodes tree_ll128{};
  ByNodes tree_simple{};
  ByNodes nvls_tree{};         // 0: none. Only with nvls_efficiency.
  double nvls_efficiency = 0;  // Share of the searched speed that NVLS keeps; 0: see nvls_ratio.
  double bus_limit = 0;        // On any bus bandwidth, in total; 0: none.
  double ring_plateau = 1;     // Latency factor of ring-Simple all-reduce across nodes.
  bool halve_fast_channels = false;  // Channels are doubled only from 50 GB/s when there are many.
  double collnet_direct = 1;         // Share that CollNetDirect keeps.
};

struct TunerLatency {
  ByProtocol base{};
  ByProtocol nvlink{};
  ByProtocol pcie{};
  ByProtocol network{};
};

// What depends on the host's processors, across nodes.
struct TunerHost {
  std::array<double, 2> ll{};  // Cap on LL's bus bandwidth over 2 and more nodes.
  double network_post = 0;     // us per ring step; three times as much for Simple.
};

struct NcclTuning {
  std::map<std::string, TunerArchitecture> architectures;
  std::map<std::string, TunerHost> hosts;     // By vendor of the CPU; "" is any other.
  std::map<std::string, double> lane_speeds;  // GB/s per lane by link class, for planning.
  double pcie_share = 1;                      // Planned share of nominal bandwidth.
  double network_share = 1;
  // Networks, by generation or kind, whose plug-in shows all NICs of a GPU as one device,
  std::vector<std::string> joined_networks;
  // and the GB/s up to which NICs of one GPU are ports of one card; 0: none.
  double joined_port = 0;
  // us that a network's plug-in says of itself, by generation or kind. Counted twice for Simple.
  std::map<std::string, double> plugin_latencies;
  std::map<AlgorithmId, TunerLatency> latencies;  // Others are not considered.

  // Shares of the searched bandwidth.
  double ring_ll = 0.5;         // Rings under LL that reduce or cross nodes,
  double ring_ll_gather = 0.5;  // and the others.
  double ring_ll128 = 0.92;
  double lone_ring_ll128 = 0.92;  // With one GPU per node.
  double lone_tree = 1;           // Trees with one GPU per node.
  double pat = 0.75;
  double collnet_chain = 1;

  // Without nvls_efficiency NVLS gets this share of its channels' speed (for NVLSTree halved beyond
  // 2 nodes), as algorithm bandwidth.
  double nvls_ratio = 1;
  double nvls_gather_ratio = 1;       // For all-gather and reduce-scatter; 0: not considered.
  bool nvls_gather_skips_own = true;  // Times (local ranks - 1) / local ranks.
  // NVLSTree as NCCL 2.18 counted it: 2 (nodes - 1) network hops instead of 2 log2 nodes, and
  // nvls_tree_ratio x nodes / (2 (nodes - 1)) of its channels' speed.
  bool nvls_tree_linear = false;
  double nvls_tree_ratio = 1;

  double ll_node_hops = 1;        // Factor on LL's hops inside nodes when there are several nodes.
  bool rings_close = false;       // A ring crosses the network once per node, not nodes - 1 times.
  bool lone_hops_exposed = true;  // One GPU per node: every network hop costs as much as a tree's.
  double arity_us = 0.4;          // Per further GPU of a node that CollNetDirect serves.
  double ring_plateau_bytes = 0;  // ring_plateau holds from this many per rank and channel on.
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
  std::string cpu_vendor;     // "intel", "amd", ...; "" when not known.
  bool nvlink = false;        // Members of a node reach each other over scale-up links.
  bool switched = false;      // Through switches, which CollNetDirect wants.
  bool collnet = false;       // The network's switches reduce, and NCCL may let them.
  double node_bandwidth = 0;  // Planned GB/s of one GPU into its node.
  std::uint32_t nics = 0;     // Of one node, that the members use, as NCCL sees them.
  double nic_bandwidth = 0;   // Planned GB/s of one.
  double plugin_latency = 0;  // us
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
  TunerGraph collnet;  // A channel per NIC.
};
[[nodiscard]] const TunerArchitecture& tuner_architecture(const NcclTuning& tuning,
                                                          const std::string& name);
[[nodiscard]] TunerGraphs search_graphs(const NcclTuning& tuning, const TunerGroup& group);

// Whether NCCL has such kernels and the group's hardware can run them, whatever the settings say of
// CollNet and NVLS.
[[nodiscard]] bool tuner_can(CollectiveOp op, AlgorithmId algorithm, Protocol protocol,
                             const TunerGroup& group);

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
