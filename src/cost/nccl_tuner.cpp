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

// The highest speed that `limit` still allows on so many channels, at most twice `from`.
double raise_network(const std::vector<double>& speeds, double from, double limit) {
  const auto fits = [&](double speed) { return speed <= limit && speed <= 2 * from; };
  const auto best = std::ranges::find_if(speeds, fits);
  return best == speeds.end() ? from : std::max(from, *best);
}

// One channel per member of a node, each led by another: inside one node at the highest speed that
// all of them can have at once.
TunerGraph search_nvls(const NcclTuning& tuning, const TunerArchitecture& architecture,
                       const TunerGroup& group) {
  const bool across = group.nodes > 1;
  const double most = std::min(double(group.local_ranks), double(tuning.max_channels));
  TunerGraph best;
  double best_total = 0;
  for (const double speed : across ? architecture.network_speeds : architecture.node_speeds) {
    double channels = std::min(most, std::floor(group.node_bandwidth / speed));
    // A head may have several NICs, so that only their sum counts.
    if (across) channels = std::min(channels, std::floor(group.nics * group.nic_bandwidth / speed));
    if (channels * speed > best_total) {
      best_total = channels * speed;
      best = {static_cast<std::uint32_t>(channels), speed, across ? speed : 0};
    }
    if (channels >= most && !across) {
      best = {static_cast<std::uint32_t>(channels), speed, 0};
      break;
    }
  }
  if (across && best.channels > 0) {
    best.network_speed = raise_network(architecture.network_speeds, best.node_speed,
                                       group.nics * group.nic_bandwidth / best.channels);
  }
  return best;
}

// A channel per NIC, led by a GPU beside it.
TunerGraph search_collnet(const TunerArchitecture& architecture, const TunerGroup& group) {
  TunerGraph graph;
  const auto speed = std::ranges::find_if(architecture.network_speeds, [&](double candidate) {
    return candidate <= group.nic_bandwidth;
  });
  if (speed == architecture.network_speeds.end()) return graph;
  graph.channels = std::min(group.nics, group.local_ranks);
  graph.network_speed = *speed;
  const double room = graph.channels > 0 ? group.node_bandwidth / graph.channels : 0;
  graph.node_speed = group.local_ranks == 1
                         ? graph.network_speed
                         : raise_network(architecture.network_speeds, graph.network_speed, room);
  return graph;
}

double steps(CollectiveOp op, std::uint32_t ranks) {
  if (op == CollectiveOp::AllReduce) return 2.0 * (ranks - 1);
  if (op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter) return ranks - 1.0;
  return ranks;
}

double network_steps(const NcclTuning& tuning, CollectiveOp op, std::uint32_t nodes) {
  if (nodes == 1) return 0;
  if (op != CollectiveOp::AllReduce) return nodes - 1.0;
  return 2.0 * (tuning.rings_close ? nodes : nodes - 1);
}

const TunerHost& host_of(const NcclTuning& tuning, const std::string& vendor) {
  const auto own = tuning.hosts.find(vendor);
  return own == tuning.hosts.end() ? tuning.hosts.at("") : own->second;
}

// LL depends on the GPU inside a node, and on the processors that forward it across.
double ll_cap(const NcclTuning& tuning, const TunerArchitecture& architecture,
              const TunerGroup& group) {
  if (group.nodes == 1) return architecture.ll;
  return host_of(tuning, group.cpu_vendor).ll[group.nodes == 2 ? 0 : 1];
}

bool gathers(CollectiveOp op) {
  return op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter;
}

// Algorithm bandwidth of NVLS and NVLSTree, GB/s.
double nvls_bandwidth(const NcclTuning& tuning, const TunerArchitecture& architecture,
                      const TunerGroup& group, const TunerGraph& graph, CollectiveOp op,
                      AlgorithmId algorithm) {
  const bool tree = algorithm == AlgorithmId::NvlsTree;
  const bool pair = group.nodes <= 2;
  const double own = double(group.local_ranks - 1) / group.local_ranks;
  if (architecture.nvls_efficiency > 0) {
    if (graph.channels < 2) return 0;
    double speed = graph.node_speed * architecture.nvls_efficiency * (graph.channels - 1) /
                   graph.channels * (gathers(op) ? own : 2);
    if (group.nodes > 1) speed = std::min(speed, graph.network_speed * (tree && pair ? 2 : 1));
    const double cap = architecture.nvls_tree[node_column(group.nodes)];
    if (tree && cap > 0) speed = std::min(speed, cap);
    const double bus = graph.channels * speed;
    return gathers(op) ? bus : bus * group.ranks / steps(op, group.ranks);
  }
  if (tree && tuning.nvls_tree_linear) {
    return graph.channels * (pair ? graph.node_speed : graph.network_speed) *
           tuning.nvls_tree_ratio * group.nodes / (2.0 * (group.nodes - 1));
  }
  double speed = graph.node_speed;
  if (gathers(op) && tuning.nvls_gather_skips_own) speed *= own;
  if (group.nodes > 1) {
    speed = std::min(speed, tree && !pair ? graph.network_speed / 2 : graph.network_speed);
  }
  return graph.channels * speed * (gathers(op) ? tuning.nvls_gather_ratio : tuning.nvls_ratio);
}

// Algorithm bandwidth, GB/s.
double bandwidth(const NcclTuning& tuning, const TunerGroup& group, const TunerGraphs& graphs,
                 CollectiveOp op, AlgorithmId algorithm, Protocol protocol) {
  const TunerArchitecture& caps = tuner_architecture(tuning, group.architecture);
  const std::size_t column = node_column(group.nodes);
  const bool lone = group.local_ranks == 1;
  const auto searched = [&](const TunerGraph& graph) {
    const double whole =
        graph.channels * (group.nodes <= 2 ? graph.node_speed : graph.network_speed);
    return caps.bus_limit > 0 ? std::min(whole, caps.bus_limit) : whole;
  };
  const TunerGraph& ring = graphs.ring;
  switch (algorithm) {
    case AlgorithmId::Ring: {
      double bus = searched(ring);
      if (protocol == Protocol::LL) {
        const bool plain =
            group.nodes == 1 && op != CollectiveOp::AllReduce && op != CollectiveOp::Reduce;
        bus = std::min(ll_cap(tuning, caps, group),
                       bus * (plain ? tuning.ring_ll_gather : tuning.ring_ll));
      }
      if (protocol == Protocol::LL128) {
        bus = std::min(bus * (lone ? tuning.lone_ring_ll128 : tuning.ring_ll128),
                       ring.channels * caps.ring_ll128[column]);
      }
      return bus * group.ranks / steps(op, group.ranks);
    }
    case AlgorithmId::Tree: {
      const TunerGraph& tree = graphs.tree;
      double bus = std::min(searched(tree) * 0.92, tree.channels * caps.tree_simple[column]);
      if (protocol == Protocol::LL) bus = std::min(bus / 3.8, ll_cap(tuning, caps, group));
      if (protocol == Protocol::LL128) {
        bus = std::min(bus * (group.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                       tree.channels * caps.tree_ll128[column]);
      }
      return bus * (lone ? tuning.lone_tree : 1) / 2;
    }
    case AlgorithmId::Nvls:
    case AlgorithmId::NvlsTree:
      return nvls_bandwidth(tuning, caps, group, graphs.nvls, op, algorithm);
    case AlgorithmId::CollnetDirect: {
      // At full speed only when every GPU has a NIC of its own; otherwise half of what that costs.
      const TunerGraph& graph = graphs.collnet;
      if (graph.channels == 0) return 0;
      const double per_nic = double(group.local_ranks) / graph.channels;
      return graph.channels * graph.node_speed / ((per_nic + 1) / 2) * caps.collnet_direct / 2;
    }
    case AlgorithmId::CollnetChain:
      return graphs.collnet.channels * graphs.collnet.node_speed * tuning.collnet_chain / 2;
    default:
      return searched(ring) * tuning.pat;
  }
}

double latency(const NcclTuning& tuning, const TunerGroup& group, CollectiveOp op,
               AlgorithmId algorithm, Protocol protocol) {
  const TunerLatency& table = tuning.latencies.at(algorithm);
  const std::size_t p = at(protocol);
  double node_hop = group.nvlink ? table.nvlink[p] : table.pcie[p];
  if (group.nodes > 1 && protocol == Protocol::LL) node_hop *= tuning.ll_node_hops;
  // With one GPU per node nothing hides the network, as at the edges of a tree.
  const bool exposed = group.local_ranks == 1 && tuning.lone_hops_exposed;
  const double network_hop =
      (exposed ? tuning.latencies.at(AlgorithmId::Tree).network[p] : table.network[p]) +
      group.plugin_latency * (protocol == Protocol::Simple ? 2 : 1);
  const double depth = log2_floor(group.nodes);
  const double others = std::floor(double(group.ranks) / group.nodes) - 1;  // Of a node.
  switch (algorithm) {
    case AlgorithmId::Ring: {
      if (op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce) {
        return table.base[p] + (group.nodes > 1 ? table.network[p] : node_hop);
      }
      if (group.nodes > 1) {
        const double post = host_of(tuning, group.cpu_vendor).network_post;
        node_hop = std::max(node_hop, post * (protocol == Protocol::Simple ? 3 : 1));
      }
      const double across = network_steps(tuning, op, group.nodes);
      return table.base[p] + (steps(op, group.ranks) - across) * node_hop + across * network_hop;
    }
    case AlgorithmId::Tree:
      return table.base[p] +
             2 * ((double(group.ranks) / group.nodes - 1) * node_hop + depth * network_hop);
    case AlgorithmId::Nvls:
      return table.base[p] + node_hop + (group.nodes > 1 ? network_hop : 0);
    case AlgorithmId::NvlsTree:
      return table.base[p] + node_hop +
             2 * (tuning.nvls_tree_linear ? group.nodes - 1.0 : depth) * network_hop;
    case AlgorithmId::CollnetDirect:
      return table.base[p] + 2 * (std::min(1.0, others) * node_hop + others * tuning.arity_us) +
             network_hop;
    case AlgorithmId::CollnetChain:
      return table.base[p] + 2 * others * node_hop + network_hop;
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
  double_channels(tuning, architecture, graphs.ring);
  graphs.tree = raise_tree(architecture, group, graphs.ring);
  if (group.nvlink) graphs.nvls = search_nvls(tuning, architecture, group);
  if (group.collnet) graphs.collnet = search_collnet(architecture, group);
  return graphs;
}

bool tuner_can(CollectiveOp op, AlgorithmId algorithm, Protocol protocol, const TunerGroup& group) {
  const bool simple = protocol == Protocol::Simple;
  const bool reduces_all = op == CollectiveOp::AllReduce;
  const bool across = group.nodes > 1;
  // LL128 relies on 128-byte stores that stay whole on the way, which holds on NVLink.
  if (protocol == Protocol::LL128 && !group.nvlink) return false;
  switch (algorithm) {
    case AlgorithmId::Ring:
      return gathers(op) || reduces_all || op == CollectiveOp::Broadcast ||
             op == CollectiveOp::Reduce;
    case AlgorithmId::Tree:
      return reduces_all;
    case AlgorithmId::Nvls:
      if (!simple || !group.nvlink || group.local_ranks < 2) return false;
      return across ? reduces_all && group.collnet : reduces_all || gathers(op);
    case AlgorithmId::NvlsTree:
      return simple && group.nvlink && group.local_ranks > 1 && across && reduces_all;
    case AlgorithmId::CollnetDirect:
      return simple && across && reduces_all && group.collnet &&
             (group.switched || group.local_ranks == 1);
    case AlgorithmId::CollnetChain:
      return simple && across && reduces_all && group.collnet;
    case AlgorithmId::Pat:
      return simple && gathers(op) && group.nodes == group.ranks;
    default:
      return false;
  }
}

std::optional<double> tuner_time(const NcclTuning& tuning, const TunerGroup& group,
                                 const TunerGraphs& graphs, CollectiveOp op, AlgorithmId algorithm,
                                 Protocol protocol, Bytes bytes) {
  if (group.ranks < 2 || !tuner_can(op, algorithm, protocol, group)) return std::nullopt;
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
    delay *= tuner_architecture(tuning, group.architecture).ring_plateau;
  }
  return delay + size / (1000 * rate);
}

std::uint32_t open_channels(const NcclTuning& tuning, const TunerGraph& graph) {
  return std::clamp(2 * graph.channels, 1U, 2 * tuning.max_channels);
}

std::uint32_t used_channels(const NcclTuning& tuning, const TunerGroup& group,
                            AlgorithmId algorithm, Protocol protocol, Bytes bytes,
                            std::uint32_t open) {
  const bool fixed = algorithm != AlgorithmId::Ring && algorithm != AlgorithmId::Tree &&
                     algorithm != AlgorithmId::Pat;
  if (fixed) return open;
  const std::size_t p = at(protocol);
  double per_channel = double(tuning.threads[p]) * tuning.thread_bytes[p];
  if (algorithm == AlgorithmId::Ring && protocol == Protocol::LL) per_channel *= group.ranks;
  if (per_channel <= 0) return open;
  const double wanted = std::floor(static_cast<double>(bytes.count()) / per_channel);
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, double(open)));
}

}  // namespace flyover
