#include "flyover/cost/nccl_tuner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

// A graph whose next lower speed is below this share of the best one's is not looked for.
constexpr double search_depth = 0.49;
// Channels this fast are cut in two; slower ones only while there are few.
constexpr double fast_channel = 50;
constexpr double slow_channel = 25;
constexpr std::uint32_t few_channels = 4;

std::size_t at(Protocol protocol) {
  return static_cast<std::size_t>(protocol);
}

std::size_t node_column(std::uint32_t nodes) {
  return std::min(nodes, 3U) - 1;
}

double log2_floor(std::uint32_t n) {
  return std::bit_width(n) - 1;
}

TunerGraph search_ring(const NcclTuning& tuning, const TunerArchitecture& architecture,
                       const TunerGroup& group) {
  const bool across = group.nodes > 1;
  const bool alone = group.local_ranks == 1;
  TunerGraph best;
  double best_total = 0;
  for (const double speed : across ? architecture.network_speeds : architecture.node_speeds) {
    if (best.channels > 0 && speed < search_depth * best.node_speed) break;
    double channels = tuning.max_channels;
    if (!alone) channels = std::min(channels, std::floor(group.node_bandwidth / speed));
    if (across) {
      channels = std::min(channels, group.nics * std::floor(group.nic_bandwidth / speed));
    }
    if (channels * speed > best_total) {
      best_total = channels * speed;
      best = {static_cast<std::uint32_t>(channels), speed, across ? speed : 0};
    }
  }
  return best;
}

void double_channels(const NcclTuning& tuning, const TunerArchitecture& architecture,
                     TunerGraph& graph) {
  if (graph.channels == 0 || graph.node_speed < slow_channel) return;
  if (architecture.halve_fast_channels && graph.node_speed < fast_channel &&
      graph.channels > few_channels) {
    return;
  }
  const std::uint32_t channels = std::min(2 * graph.channels, tuning.max_channels);
  const double factor = double(graph.channels) / channels;
  graph.channels = channels;
  graph.node_speed *= factor;
  graph.network_speed *= factor;
}

// A tree crosses the network once for every two times that a ring does, so that its channels may
// run up to twice as fast inside nodes.
TunerGraph raise_tree(const TunerArchitecture& architecture, const TunerGroup& group,
                      TunerGraph graph) {
  if (group.nodes == 1 || group.local_ranks == 1) return graph;
  // A tree does not come back to where it entered a node, which frees one link in n.
  const double room = group.node_bandwidth * group.local_ranks / (group.local_ranks - 1);
  const auto& speeds = architecture.network_speeds;
  for (auto speed = speeds.rbegin(); speed != speeds.rend(); ++speed) {
    if (*speed <= graph.node_speed) continue;
    if (graph.node_speed >= 2 * graph.network_speed || *speed * graph.channels > room) break;
    graph.node_speed = *speed;
  }
  return graph;
}

// One channel per member of a node, each led by another.
TunerGraph search_nvls(const NcclTuning& tuning, const TunerArchitecture& architecture,
                       const TunerGroup& group) {
  TunerGraph best;
  double best_total = 0;
  for (const double speed : architecture.node_speeds) {
    const double channels = std::min({double(group.local_ranks), double(tuning.max_channels),
                                      std::floor(group.node_bandwidth / speed)});
    if (channels * speed > best_total) {
      best_total = channels * speed;
      best = {static_cast<std::uint32_t>(channels), speed, 0};
    }
  }
  if (group.nodes > 1 && best.channels > 0) {
    best.network_speed = group.nic_bandwidth * group.nics / best.channels;
  }
  return best;
}

double steps(CollectiveOp op, std::uint32_t ranks) {
  if (op == CollectiveOp::AllReduce) return 2.0 * (ranks - 1);
  if (op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter) return ranks - 1.0;
  return ranks;
}

double network_steps(CollectiveOp op, std::uint32_t nodes) {
  return op == CollectiveOp::AllReduce ? 2.0 * (nodes - 1) : nodes - 1.0;
}

bool considered(CollectiveOp op, AlgorithmId algorithm, Protocol protocol,
                const TunerGroup& group) {
  const bool simple = protocol == Protocol::Simple;
  const bool gathers = op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter;
  // LL128 relies on 128-byte stores that stay whole on the way, which holds on NVLink.
  if (protocol == Protocol::LL128 && !group.nvlink) return false;
  switch (algorithm) {
    case AlgorithmId::Ring:
      return gathers || op == CollectiveOp::AllReduce || op == CollectiveOp::Broadcast ||
             op == CollectiveOp::Reduce;
    case AlgorithmId::Tree:
      return op == CollectiveOp::AllReduce;
    case AlgorithmId::Nvls:
      return simple && group.nvlink && group.local_ranks > 1 && group.nodes == 1 &&
             (gathers || op == CollectiveOp::AllReduce);
    case AlgorithmId::NvlsTree:
      return simple && group.nvlink && group.local_ranks > 1 && group.nodes > 1 &&
             op == CollectiveOp::AllReduce;
    case AlgorithmId::Pat:
      return simple && gathers && group.nodes == group.ranks;
    default:
      return false;
  }
}

// Algorithm bandwidth, GB/s.
double bandwidth(const NcclTuning& tuning, const TunerGroup& group, const TunerGraphs& graphs,
                 CollectiveOp op, AlgorithmId algorithm, Protocol protocol) {
  const TunerArchitecture& caps = tuner_architecture(tuning, group.architecture);
  const std::size_t column = node_column(group.nodes);
  const TunerGraph& ring = graphs.ring;
  const TunerGraph& nvls = graphs.nvls;
  const double ring_bandwidth =
      ring.channels * (group.nodes <= 2 ? ring.node_speed : ring.network_speed);
  switch (algorithm) {
    case AlgorithmId::Ring: {
      double bus = ring_bandwidth;
      if (protocol == Protocol::LL) bus = std::min(caps.ll[column], bus * 0.5);
      if (protocol == Protocol::LL128) {
        bus = std::min(bus * 0.92, ring.channels * caps.ring_ll128[column]);
      }
      return bus * group.ranks / steps(op, group.ranks);
    }
    case AlgorithmId::Tree: {
      const TunerGraph& tree = graphs.tree;
      const double whole =
          tree.channels * (group.nodes <= 2 ? tree.node_speed : tree.network_speed);
      double bus = std::min(whole * 0.92, tree.channels * caps.tree_simple[column]);
      if (protocol == Protocol::LL) bus = std::min(bus / 3.8, caps.ll[column]);
      if (protocol == Protocol::LL128) {
        bus = std::min(bus * (group.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                       tree.channels * caps.tree_ll128[column]);
      }
      return bus / 2;
    }
    case AlgorithmId::Nvls:
      if (op == CollectiveOp::AllReduce) return nvls.channels * nvls.node_speed * tuning.nvls_ratio;
      return nvls.channels * nvls.node_speed * (group.local_ranks - 1) / group.local_ranks;
    case AlgorithmId::NvlsTree: {
      const double network = group.nodes <= 2 ? nvls.network_speed : nvls.network_speed / 2;
      return nvls.channels * std::min(nvls.node_speed, network) * tuning.nvls_ratio;
    }
    default:
      return ring_bandwidth * 0.75;  // PAT
  }
}

double latency(const NcclTuning& tuning, const TunerGroup& group, CollectiveOp op,
               AlgorithmId algorithm, Protocol protocol) {
  const TunerLatency& table = tuning.latencies.at(algorithm);
  const std::size_t p = at(protocol);
  double node_hop = group.nvlink ? table.nvlink[p] : table.pcie[p];
  // With one GPU per node nothing hides the network, as at the edges of a tree.
  const double network_hop =
      group.local_ranks == 1 ? tuning.latencies.at(AlgorithmId::Tree).network[p] : table.network[p];
  const double depth = log2_floor(group.nodes);
  switch (algorithm) {
    case AlgorithmId::Ring: {
      if (op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce) {
        return table.base[p] + (group.nodes > 1 ? table.network[p] : node_hop);
      }
      if (group.nodes > 1) {
        const double post = tuning.network_post * (protocol == Protocol::Simple ? 3 : 1);
        node_hop = std::max(node_hop, post);
      }
      const double across = network_steps(op, group.nodes);
      return table.base[p] + (steps(op, group.ranks) - across) * node_hop + across * network_hop;
    }
    case AlgorithmId::Tree:
      return table.base[p] +
             2 * ((double(group.ranks) / group.nodes - 1) * node_hop + depth * network_hop);
    case AlgorithmId::Nvls:
      return table.base[p] + node_hop;
    case AlgorithmId::NvlsTree:
      return table.base[p] + node_hop + 2 * depth * network_hop;
    default:
      return table.base[p] + depth * (network_hop / 3.5) + 2.8 * group.ranks;  // PAT
  }
}

}  // namespace

const TunerArchitecture& tuner_architecture(const NcclTuning& tuning, const std::string& name) {
  const auto found = tuning.architectures.find(name);
  if (found == tuning.architectures.end()) {
    std::string known;
    for (const auto& [architecture, table] : tuning.architectures) {
      known += (known.empty() ? "" : ", ") + architecture;
    }
    throw InputError(fmt::format(
        "NCCL's model has no tables for the GPU architecture \"{}\"; it has {}", name, known));
  }
  return found->second;
}

TunerGraphs search_graphs(const NcclTuning& tuning, const TunerGroup& group) {
  const TunerArchitecture& architecture = tuner_architecture(tuning, group.architecture);
  TunerGraphs graphs;
  graphs.ring = search_ring(tuning, architecture, group);
  graphs.tree = raise_tree(architecture, group, graphs.ring);
  double_channels(tuning, architecture, graphs.ring);
  double_channels(tuning, architecture, graphs.tree);
  if (group.nvlink) graphs.nvls = search_nvls(tuning, architecture, group);
  return graphs;
}

std::optional<double> tuner_time(const NcclTuning& tuning, const TunerGroup& group,
                                 const TunerGraphs& graphs, CollectiveOp op, AlgorithmId algorithm,
                                 Protocol protocol, Bytes bytes) {
  if (group.ranks < 2 || !considered(op, algorithm, protocol, group)) return std::nullopt;
  if (!tuning.latencies.contains(algorithm)) return std::nullopt;
  const double size = static_cast<double>(bytes.count());
  double rate = bandwidth(tuning, group, graphs, op, algorithm, protocol);
  if (rate <= 0) return std::nullopt;
  double delay = latency(tuning, group, op, algorithm, protocol);

  const std::vector<double>& correction = tuning.tree_correction[at(protocol)];
  const auto blocks = static_cast<std::uint64_t>(bytes.count() / 64);
  const std::size_t power = blocks == 0 ? 0 : static_cast<std::size_t>(std::bit_width(blocks) - 1);
  if (algorithm == AlgorithmId::Tree && op == CollectiveOp::AllReduce &&
      power < correction.size()) {
    rate *= correction[power];
  }
  if (algorithm == AlgorithmId::Ring && protocol == Protocol::Simple && group.nodes > 1 &&
      op == CollectiveOp::AllReduce &&
      size >= tuning.ring_plateau_bytes * group.ranks * open_channels(tuning, graphs.ring)) {
    delay *= tuning.ring_plateau;
  }
  return delay + size / (1000 * rate);
}

std::uint32_t open_channels(const NcclTuning& tuning, const TunerGraph& graph) {
  return std::clamp(2 * graph.channels, 1U, 2 * tuning.max_channels);
}

std::uint32_t used_channels(const NcclTuning& tuning, const TunerGroup& group,
                            AlgorithmId algorithm, Protocol protocol, Bytes bytes,
                            std::uint32_t open) {
  if (algorithm == AlgorithmId::Nvls || algorithm == AlgorithmId::NvlsTree) return open;
  const std::size_t p = at(protocol);
  double per_channel = double(tuning.threads[p]) * tuning.thread_bytes[p];
  if (algorithm == AlgorithmId::Ring && protocol == Protocol::LL) per_channel *= group.ranks;
  if (per_channel <= 0) return open;
  const double wanted = std::floor(static_cast<double>(bytes.count()) / per_channel);
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, double(open)));
}

}  // namespace flyover
