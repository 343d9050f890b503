#include "support/random_jobs.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/clusters.hpp"
#include "support/dice.hpp"
#include "support/topologies.hpp"

namespace flyover::test {

namespace {

using namespace literals;

Topology random_cluster(Dice& dice, std::uint32_t most_gpus, std::string& description) {
  ClusterSpec spec;
  NodeSpec node = dice.of<NodeSpec>({switched_node(), switched_node(), switched_node(), mesh_node(),
                                     cube_mesh_node(), pcie_node(), bare_node(4)});
  const std::string scale_up = node.gpu.scale_up;
  node.gpu = plain_gpu();
  node.gpu.scale_up = scale_up;
  node.in_switch_reduction = node.scale_up == ScaleUp::Switched && dice.one_in(2);
  const std::uint32_t most = std::max(1U, most_gpus / node.gpus);
  std::uint32_t nodes = 1 + dice.below(most);
  FabricSpec& fabric = spec.fabric;
  fabric.kind = dice.of<FabricKind>({FabricKind::SingleSwitch, FabricKind::LeafSpine,
                                     FabricKind::FatTree, FabricKind::RailOptimized,
                                     FabricKind::RailOptimized, FabricKind::MultiPlane});
  if (nodes == 1) fabric.kind = FabricKind::None;
  fabric.link_bandwidth = node.nic_bandwidth;
  fabric.link_latency = 500ns;
  fabric.nodes_per_unit = 1 + dice.below(4);
  fabric.routing = dice.of<RoutingPolicy>({RoutingPolicy::Adaptive, RoutingPolicy::Ecmp});
  fabric.oversubscription = dice.one_in(3) ? 2 : 1;
  spec.name = "random";
  spec.nodes = {{node, nodes}};
  // A node that is unlike the others.
  if (nodes > 1 && dice.one_in(4)) {
    NodeSpec slow = node;
    slow.gpu.name += "-slow";
    for (auto& [dtype, rate] : slow.gpu.flops) rate = rate * 0.8;
    spec.nodes = {{node, nodes - 1}, {slow, 1}};
  }
  Topology topology = build_topology(spec);
  description = fmt::format("{} x {}, {}, {}", nodes, node.name, to_string(fabric.kind),
                            to_string(fabric.routing));

  for (std::uint32_t faults = dice.below(3); faults > 0; --faults) {
    const LinkId link{dice.below(static_cast<std::uint32_t>(topology.links.size()))};
    topology.links[link].bandwidth = topology.links[link].bandwidth * 0.6;
    description += fmt::format("; link {} degraded", index(link));
  }
  if (nodes > 1 && node.nics > 1 && dice.one_in(4)) {
    const std::string nic =
        fmt::format("nic[node={},index={}]", dice.below(nodes), dice.below(node.nics));
    Override down;
    down.selector = nic;
    down.up = false;
    apply_override(topology, down);
    description += "; " + nic + " down";
  }
  return topology;
}

using Groups = std::vector<std::vector<std::uint32_t>>;

// Blocks of neighbours, or ranks that lie `stride` apart, in turn or at random.
Groups random_groups(Dice& dice, std::uint32_t ranks) {
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0U);
  const std::uint32_t kind = dice.below(8);
  if (kind == 0) return {all};
  if (kind == 1) {
    dice.shuffle(all);
    all.resize(1 + dice.below(ranks));
  }
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t n = 1; n <= ranks; ++n) {
    if (ranks % n == 0 || kind == 2) sizes.push_back(n);
  }
  const std::uint32_t size = dice.of(sizes);
  const auto count = (static_cast<std::uint32_t>(all.size()) + size - 1) / size;
  Groups groups(count);
  const bool strided = kind > 4;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    groups[strided ? i % count : i / size].push_back(all[i]);
  }
  return groups;
}

class Writer {
 public:
  Writer(Dice& dice, std::uint32_t ranks) : dice_(dice) {
    workload_.name = "random";
    workload_.ranks = ranks;
    // Pipeline stages, or all alike.
    const std::uint32_t stages = ranks % 4 == 0 ? dice_.of<std::uint32_t>({1, 1, 2, 4}) : 1;
    for (std::uint32_t s = 0; s < stages; ++s) {
      Program& program = workload_.programs.emplace_back();
      program.name = fmt::format("stage {}", s);
      for (std::uint32_t r = 0; r < ranks / stages; ++r) {
        program.ranks.push_back(s * (ranks / stages) + r);
      }
    }
  }

  Workload write() {
    const std::uint32_t families = 1 + dice_.below(3);
    for (std::uint32_t f = 0; f < families; ++f) {
      workload_.groups.push_back(
          {fmt::format("family {}", f), random_groups(dice_, workload_.ranks)});
    }
    const std::uint32_t steps = 3 + dice_.below(8);
    for (std::uint32_t step = 0; step < steps; ++step) {
      switch (dice_.below(6)) {
        case 0:
        case 1:
          compute(step);
          break;
        case 2:
          if (workload_.ranks > 1) messages(step);
          break;
        default:
          collective(step);
      }
    }
    compute(steps);
    return std::move(workload_);
  }

 private:
  Operation& add(Program& program, std::string id, OpKind kind, std::string stream) {
    Operation op;
    op.id = op.name = std::move(id);
    op.kind = kind;
    op.stream = std::move(stream);
    const auto count = static_cast<std::uint32_t>(program.ops.size());
    if (count > 0 && after_ < count) op.after = {count - 1 - after_};
    program.ops.push_back(std::move(op));
    return program.ops.back();
  }

  void compute(std::uint32_t step) {
    after_ = dice_.below(3);
    for (Program& program : workload_.programs) {
      Operation& op = add(program, fmt::format("k{}", step), OpKind::Compute, "compute");
      op.dtype = "bf16";
      op.flops = Flops{1e9 * (1 + dice_.below(1000))};
      if (dice_.one_in(2)) op.bytes = Bytes{1 + dice_.below(100'000'000)};
    }
  }

  void collective(std::uint32_t step) {
    const auto family = dice_.below(static_cast<std::uint32_t>(workload_.groups.size()));
    std::vector<bool> member(workload_.ranks, false);
    for (const auto& group : workload_.groups[family].groups) {
      for (const std::uint32_t rank : group) member[rank] = true;
    }
    const auto what = dice_.of<CollectiveOp>({CollectiveOp::AllReduce, CollectiveOp::AllReduce,
                                              CollectiveOp::AllGather, CollectiveOp::ReduceScatter,
                                              CollectiveOp::AllToAll, CollectiveOp::Broadcast});
    const Bytes bytes{std::int64_t{1} << (10 + dice_.below(18))};
    const double slowdown = dice_.one_in(4) ? 1.25 : 1;
    after_ = dice_.below(3);
    split_programs(member);
    for (Program& program : workload_.programs) {
      if (!member[program.ranks.front()]) continue;
      Operation& op = add(program, fmt::format("c{}", step), OpKind::Collective,
                          fmt::format("family {}", family));
      op.collective = what;
      op.bytes = bytes;
      op.group = family;
      op.slowdown = slowdown;
    }
  }

  // Ranks that a collective leaves out have programs of their own from then on.
  void split_programs(const std::vector<bool>& member) {
    std::vector<Program> parts;
    for (Program& program : workload_.programs) {
      Program others = program;
      std::erase_if(program.ranks, [&](std::uint32_t r) { return !member[r]; });
      std::erase_if(others.ranks, [&](std::uint32_t r) { return member[r]; });
      if (!program.ranks.empty() && !others.ranks.empty()) others.name += "'";
      if (!program.ranks.empty()) parts.push_back(std::move(program));
      if (!others.ranks.empty()) parts.push_back(std::move(others));
    }
    workload_.programs = std::move(parts);
  }

  // Everybody to the neighbour that lies `distance` further.
  void messages(std::uint32_t step) {
    const std::uint32_t distance = 1 + dice_.below(workload_.ranks - 1);
    const Bytes bytes{std::int64_t{1} << (12 + dice_.below(14))};
    after_ = dice_.below(3);
    for (Program& program : workload_.programs) {
      Operation& send = add(program, fmt::format("s{}", step), OpKind::Send, "send");
      send.peer = distance;
      send.peer_relative = true;
      send.bytes = bytes;
      Operation& receive = add(program, fmt::format("r{}", step), OpKind::Recv, "receive");
      receive.after.clear();
      receive.peer = -std::int64_t{distance};
      receive.peer_relative = true;
      receive.bytes = bytes;
    }
  }

  Dice& dice_;
  Workload workload_;
  std::uint32_t after_ = 0;  // How far back the operation lies that the next one waits for.
};

}  // namespace

RandomJob random_job(std::uint64_t seed, std::uint32_t most_gpus) {
  Dice dice(seed);
  RandomJob job;
  job.topology = random_cluster(dice, most_gpus, job.description);
  job.workload = Writer(dice, static_cast<std::uint32_t>(job.topology.gpus.size())).write();
  job.library = dice.of<std::string>({"ideal", "nccl"});
  job.description = fmt::format("seed {}: {}; {}", seed, job.description, job.library);
  return job;
}

Workload shuffled(Workload workload, std::uint64_t seed) {
  Dice dice(seed);
  dice.shuffle(workload.programs);
  for (GroupFamily& family : workload.groups) dice.shuffle(family.groups);
  return workload;
}

}  // namespace flyover::test
