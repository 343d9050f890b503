#include "support/regular_jobs.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/expert_words.hpp"
#include "flyover/layout/expand.hpp"
#include "support/dice.hpp"
#include "support/topologies.hpp"
#include "support/training.hpp"

namespace flyover::test {

namespace {

using namespace literals;

// Eighteen switches, a NIC per GPU.
NodeSpec nvl72_node() {
  NodeSpec node = bare_node(72);
  node.name = "nvl72";
  node.links_per_switch.assign(18, 1);
  node.lane_bandwidth = 50_GBps;
  return node;
}

// One way to build a fabric, and how many nodes it takes.
struct FabricForm {
  std::string name;
  FabricKind kind;
  std::uint32_t radix;
  std::vector<std::uint32_t> units;  // Nodes per unit; 0: as many as the ports allow.
};

const std::vector<FabricForm>& fabric_forms() {
  static const std::vector<FabricForm> forms{
      {"rail-optimized", FabricKind::RailOptimized, 64, {4, 8, 16}},
      {"rail-optimized, three tiers", FabricKind::RailOptimized, 16, {4, 8}},
      {"fat-tree, two tiers", FabricKind::FatTree, 64, {1, 2, 4}},
      {"fat-tree, three tiers", FabricKind::FatTree, 16, {1}},
      {"leaf-spine", FabricKind::LeafSpine, 64, {1, 2, 4}},
      {"multi-plane", FabricKind::MultiPlane, 64, {0}},
      {"rail-only", FabricKind::RailOnly, 64, {0}},
      {"dragonfly", FabricKind::Dragonfly, 64, {0}},
      {"torus", FabricKind::Torus, 64, {0}},
      {"single-switch", FabricKind::SingleSwitch, 512, {0}},
  };
  return forms;
}

class ClusterDrawing {
 public:
  ClusterDrawing(Dice& dice, std::vector<std::string>& traits) : dice_(dice), traits_(traits) {}

  Topology draw(const FabricForm& form) {
    draw_node(form);
    draw_size(form);
    draw_fabric(form);
    draw_nodes();
    Topology topology = build_topology(spec_);
    draw_faults(topology);
    return topology;
  }

  // The same with trunks, where they may be.
  [[nodiscard]] std::optional<Topology> with_trunks() const {
    if (spec_.fabric.routing != RoutingPolicy::Adaptive) return std::nullopt;
    if (!std::ranges::all_of(applied_, fits_trunks)) return std::nullopt;
    ClusterSpec spec = spec_;
    spec.fabric.trunks = true;
    for (NodeGroup& group : spec.nodes) group.spec.trunks = true;
    Topology topology = build_topology(spec);
    for (const Override& fault : applied_) apply_override(topology, fault);
    return topology;
  }

 private:
  void draw_node(const FabricForm& form) {
    switch (dice_.below(8)) {
      case 0:
        node_ = mesh_node();
        break;
      case 1:
        node_ = pcie_node();
        break;
      case 2:
        node_ = bare_node(4);
        break;
      case 3:
        node_ = form.kind == FabricKind::Torus ? bare_node(1) : nvl72_node();
        break;
      default:
        node_ = switched_node();
    }
    const std::string scale_up = node_.gpu.scale_up;
    node_.gpu = plain_gpu();
    node_.gpu.scale_up = scale_up;
    node_.in_switch_reduction = node_.scale_up == ScaleUp::Switched && dice_.one_in(2);
    traits_.push_back(node_.name);
  }

  void draw_size(const FabricForm& form) {
    if (form.kind == FabricKind::Torus) {
      spec_.fabric.torus = dice_.of<std::vector<std::uint32_t>>(
          {{4, 4}, {2, 4, 4}, {4, 4, 4}, {3, 4}, {8, 4}, {4, 6}});
      nodes_ = 1;
      for (const std::uint32_t extent : spec_.fabric.torus) nodes_ *= extent;
      return;
    }
    // A few odd ones; most fill their units.
    const std::uint32_t gpus = dice_.of<std::uint32_t>({32, 64, 64, 128, 128, 192, 256, 256, 512});
    nodes_ = std::max(1U, gpus / node_.gpus);
    if (nodes_ > 3 && dice_.one_in(6)) nodes_ -= 1;
  }

  void draw_fabric(const FabricForm& form) {
    FabricSpec& fabric = spec_.fabric;
    fabric.kind = nodes_ == 1 ? FabricKind::None : form.kind;
    fabric.link_bandwidth = node_.nic_bandwidth;
    fabric.link_latency = 500ns;
    fabric.radix = form.radix;
    fabric.nodes_per_unit = dice_.of(form.units);
    if (form.kind == FabricKind::Torus) {
      fabric.routing = RoutingPolicy::DimensionOrder;
    } else if (dice_.one_in(4)) {
      fabric.routing = RoutingPolicy::Ecmp;
      fabric.seed = dice_.below(1000);
    }
    if (form.kind == FabricKind::LeafSpine && dice_.one_in(2)) fabric.oversubscription = 2;
    traits_.push_back(nodes_ == 1 ? "one node" : form.name);
    traits_.emplace_back(to_string(fabric.routing));
  }

  void draw_nodes() {
    spec_.name = "regular";
    spec_.nodes = {{node_, nodes_}};
    if (nodes_ < 4 || !dice_.one_in(8)) return;
    // A later purchase with slower ports.
    NodeSpec other = node_;
    other.name += ", older";
    other.nic_bandwidth = node_.nic_bandwidth * 0.5;
    const std::uint32_t count = nodes_ / 4;
    spec_.nodes = {{node_, nodes_ - count}, {other, count}};
    traits_.emplace_back("two node types");
  }

  void draw_faults(Topology& topology) {
    for (std::uint32_t faults = dice_.of<std::uint32_t>({0, 0, 1, 1, 1, 2}); faults > 0;) {
      std::string trait;
      const Override fault = draw_fault(trait);
      try {
        apply_override(topology, fault);
      } catch (const InputError&) {  // There is no such part in this cluster.
        continue;
      }
      traits_.push_back(trait);
      applied_.push_back(fault);
      faults_ += fmt::format("; {} ({})", trait, fault.selector);
      --faults;
    }
    if (faults_.empty()) traits_.emplace_back("no fault");
  }

  Override draw_fault(std::string& trait) {
    Override fault;
    const std::uint32_t node = dice_.below(nodes_);
    const std::uint32_t gpu = dice_.below(node_.gpus);
    switch (dice_.below(6)) {
      case 0:
        trait = "NIC down";
        fault.selector = fmt::format("nic[node={},index={}]", node, gpu);
        fault.up = false;
        break;
      case 1:
        trait = "NVLink degraded";
        fault.selector = fmt::format("link[kind=nvlink|xgmi,node={},index={}]", node, gpu);
        fault.factor = 0.5;
        break;
      case 2:
        trait = "leaf-spine cable down";
        fault.selector = fmt::format("link[kind=leaf-spine,index={}]", dice_.below(16));
        fault.up = false;
        break;
      case 3:
        trait = "spine degraded";
        fault.selector = fmt::format("spine[index={}]", dice_.below(2));
        fault.factor = 0.6;
        break;
      case 4:
        trait = "slow GPU";
        fault.selector = fmt::format("gpu[node={},index={}]", node, gpu);
        fault.compute_factor = 0.8;
        if (dice_.one_in(2)) fault.memory_factor = 0.7;
        break;
      default:
        trait = "slow node";
        fault.selector = fmt::format("node[index={}]", node);
        fault.compute_factor = 0.9;
    }
    return fault;
  }

  Dice& dice_;
  std::vector<std::string>& traits_;
  NodeSpec node_;
  ClusterSpec spec_;
  std::uint32_t nodes_ = 0;
  std::vector<Override> applied_;

 public:
  std::string faults_;
};

// --- training steps ------------------------------------------------------------------------------

// Sizes that 2, 4 and 8 divide.
Model even_model(bool experts) {
  Model model = experts ? small_expert_model(4) : small_model(4);
  model.hidden = 512;
  model.attention.heads = 16;
  model.attention.kv_heads = 8;
  model.vocabulary = 4096;
  if (experts) model.experts->count = 8;
  return model;
}

std::optional<Layout> draw_layout(Dice& dice, const Model& model, std::uint32_t gpus) {
  Layout layout;
  layout.tensor = dice.of<std::uint32_t>({1, 2, 4, 8, 8});
  layout.sequence_parallel = layout.tensor > 1 && dice.one_in(2);
  layout.context = dice.of<std::uint32_t>({1, 1, 2});
  layout.pipeline = dice.of<std::uint32_t>({1, 1, 2, 4});
  layout.schedule =
      dice.of<PipelineSchedule>({PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                                 PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubbleH1,
                                 PipelineSchedule::ZeroBubbleV});
  if (layout.pipeline == 1) layout.schedule = PipelineSchedule::OneForwardOneBackward;
  const bool chunked = layout.schedule == PipelineSchedule::Interleaved ||
                       layout.schedule == PipelineSchedule::ZeroBubbleV;
  layout.virtual_stages = chunked ? 2 : 1;
  layout.sharding = dice.of<Sharding>(
      {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters});
  layout.exchange = dice.of<ContextExchange>(
      {ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll});
  if (model.experts) layout.expert = dice.of<std::uint32_t>({2, 4, 8});
  const std::uint32_t inner = layout.tensor * layout.context * layout.pipeline;
  if (gpus % inner != 0) return std::nullopt;
  layout.data = gpus / inner;
  layout = with_batch(layout, layout.pipeline == 1 ? 1 : layout.pipeline);
  if (!problems(layout, model, small_sequence, gpus).empty()) return std::nullopt;
  return layout;
}

Workload training(Dice& dice, const Cluster& cluster, std::vector<std::string>& traits) {
  const bool experts = dice.one_in(3);
  const TrainingJob job = small_job(even_model(experts));
  const auto gpus = static_cast<std::uint32_t>(cluster.topology.gpus.size());
  std::optional<Layout> layout;
  for (int tries = 0; !layout; ++tries) {
    if (tries == 100) throw InputError("no layout was found");
    layout = draw_layout(dice, job.model, gpus);
  }
  traits.emplace_back("training");
  traits.emplace_back(to_string(layout->sharding));
  if (layout->pipeline > 1) traits.emplace_back(to_string(layout->schedule));
  if (experts) traits.emplace_back("experts");
  traits.push_back(fmt::format("t{} c{} p{} d{} e{}", layout->tensor, layout->context,
                               layout->pipeline, layout->data, layout->expert));
  return expand(parts_of(job), *layout, MessageTimes(cluster.topology, cluster.cost));
}

// --- programs of native operations ---------------------------------------------------------------

class Native {
 public:
  // `more`: for what was added later, so that older draws stay.
  Native(Dice& dice, Dice more, const Topology& topology, std::vector<std::string>& traits)
      : dice_(dice),
        more_(std::move(more)),
        traits_(traits),
        node_gpus_(topology.nodes[NodeId{0}].gpus) {
    workload_.name = "regular";
    workload_.ranks = static_cast<std::uint32_t>(topology.gpus.size());
    // All ranks, or the first nodes of them.
    ranks_ = workload_.ranks;
    if (topology.nodes.size() > 2 && dice_.one_in(5)) {
      ranks_ = node_gpus_ * static_cast<std::uint32_t>(topology.nodes.size() / 2);
      traits_.emplace_back("subset of ranks");
    }
    // A ring joins every rank to every other: one that differs makes all differ.
    rings_ = dice_.one_in(3);
    program_.name = "all";
    for (std::uint32_t r = 0; r < ranks_; ++r) program_.ranks.push_back(r);
  }

  Workload write() {
    const std::uint32_t families = 1 + dice_.below(2);
    for (std::uint32_t f = 0; f < families; ++f) add_family();
    const std::uint32_t steps = 3 + dice_.below(5);
    for (std::uint32_t step = 0; step < steps; ++step) {
      switch (dice_.below(5)) {
        case 0:
          kernel(step);
          break;
        case 1:
          ring(step);
          break;
        default:
          collective(step);
      }
    }
    kernel(steps);
    if (more_.one_in(2)) exchange(steps);
    workload_.programs.push_back(std::move(program_));
    return std::move(workload_);
  }

 private:
  // Nodes, rails, everybody, or blocks of an odd size with a smaller one at the end.
  void add_family() {
    GroupFamily family;
    family.name = fmt::format("f{}", workload_.groups.size());
    const std::uint32_t kind = dice_.below(5);
    const std::uint32_t nodes = std::max(1U, ranks_ / node_gpus_);
    std::uint32_t size = node_gpus_;
    if (kind == 0) size = ranks_;
    if (kind == 1) {
      size = dice_.of<std::uint32_t>({3, 5, 6});
      traits_.emplace_back("odd groups");
    }
    if (kind == 2) {
      family.groups.resize(node_gpus_);
      for (std::uint32_t r = 0; r < node_gpus_ * nodes; ++r) {
        family.groups[r % node_gpus_].push_back(r);
      }
      for (std::uint32_t r = node_gpus_ * nodes; r < ranks_; ++r) family.groups.push_back({r});
    } else {
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        if (r % size == 0) family.groups.emplace_back();
        family.groups.back().push_back(r);
      }
    }
    workload_.groups.push_back(std::move(family));
  }

  Operation& add(std::string id, OpKind kind, std::string stream) {
    Operation op;
    op.id = op.name = std::move(id);
    op.kind = kind;
    op.stream = std::move(stream);
    const auto count = static_cast<std::uint32_t>(program_.ops.size());
    const std::uint32_t back = 1 + dice_.below(3);
    if (back <= count && kind != OpKind::Recv) op.after = {count - back};
    program_.ops.push_back(std::move(op));
    return program_.ops.back();
  }

  void kernel(std::uint32_t step) {
    Operation& op = add(fmt::format("k{}", step), OpKind::Compute, "compute");
    switch (dice_.below(3)) {
      case 0:
        op.duration = Duration{1'000'003 * (1 + dice_.below(900))};
        break;
      case 1:
        op.bytes = Bytes{1 + dice_.below(100'000'000)};
        [[fallthrough]];
      default:
        op.dtype = "bf16";
        op.flops = Flops{1e9 * (1 + dice_.below(100))};
    }
  }

  void collective(std::uint32_t step) {
    const std::uint32_t family = dice_.below(static_cast<std::uint32_t>(workload_.groups.size()));
    Operation& op = add(fmt::format("c{}", step), OpKind::Collective, fmt::format("s{}", family));
    op.collective = dice_.of<CollectiveOp>({CollectiveOp::AllReduce, CollectiveOp::AllReduce,
                                            CollectiveOp::AllGather, CollectiveOp::ReduceScatter,
                                            CollectiveOp::AllToAll});
    op.bytes = Bytes{std::int64_t{1} << (14 + dice_.below(14))};
    op.group = family;
  }

  // Experts there and back with a kernel between, and one beside that keeps most SMs busy.
  void exchange(std::uint32_t step) {
    const std::uint32_t family = more_.below(static_cast<std::uint32_t>(workload_.groups.size()));
    std::uint32_t experts = 1;
    for (const auto& group : workload_.groups[family].groups) {
      experts = std::lcm(experts, static_cast<std::uint32_t>(group.size()));
    }
    if (experts > 1024) return;
    ExpertExchange exchange;
    exchange.name = "drawn";
    exchange.mode = more_.of<ExpertMode>(
        {ExpertMode::Nccl, ExpertMode::Normal, ExpertMode::Direct, ExpertMode::LowLatency});
    io::take_kernels(exchange, io::default_expert_library(exchange.mode));
    exchange.routing.experts = 8 * experts;
    exchange.routing.chosen = 1 + more_.below(8);
    exchange.tokens = 1 + more_.below(5000);
    exchange.hidden = 2048;
    exchange.dispatch_bytes = io::payload_bytes("fp8", exchange.hidden);
    exchange.combine_bytes = io::payload_bytes("bf16", exchange.hidden);
    if (exchange.mode == ExpertMode::LowLatency) exchange.hook = more_.one_in(2);
    traits_.push_back(fmt::format("experts, {}", to_string(exchange.mode)));
    workload_.exchanges.push_back(exchange);
    const auto call = [&](const char* name, CollectiveOp op) {
      Operation& own = add(fmt::format("{}{}", name, step), OpKind::Collective, "experts");
      own.collective = op;
      own.group = family;
      own.exchange = 0;
      own.bytes = pair_bytes(exchange, op);
    };
    call("dispatch", CollectiveOp::MoeDispatch);
    Operation& beside = add(fmt::format("beside{}", step), OpKind::Compute, "compute");
    beside.after.clear();
    beside.duration = Duration{1'000'003 * (1 + more_.below(9000))};
    beside.sms = 1 + more_.below(64);
    call("combine", CollectiveOp::MoeCombine);
  }

  // Everybody to the same GPU of the next node, or to the next GPU.
  void ring(std::uint32_t step) {
    if (!rings_ || ranks_ < workload_.ranks || ranks_ == node_gpus_) return kernel(step);
    const std::uint32_t distance = dice_.one_in(3) ? 1 : node_gpus_;
    const Bytes bytes{std::int64_t{1} << (14 + dice_.below(12))};
    Operation& send = add(fmt::format("s{}", step), OpKind::Send, "send");
    send.peer = distance;
    send.peer_relative = true;
    send.bytes = bytes;
    Operation& receive = add(fmt::format("r{}", step), OpKind::Recv, "receive");
    receive.peer = -std::int64_t{distance};
    receive.peer_relative = true;
    receive.bytes = bytes;
    traits_.emplace_back("ring of messages");
  }

  Dice& dice_;
  Dice more_;
  std::vector<std::string>& traits_;
  std::uint32_t node_gpus_ = 0;
  std::uint32_t ranks_ = 0;
  bool rings_ = false;
  Workload workload_;
  Program program_;
};

}  // namespace

RegularJob regular_job(std::uint64_t seed) {
  Dice dice(seed);
  RegularJob job;
  // In turn, so that every form comes equally often.
  const FabricForm& form = fabric_forms()[seed % fabric_forms().size()];
  ClusterDrawing drawing(dice, job.traits);
  Topology topology = drawing.draw(form);
  const std::string which = dice.of<std::string>({"ideal", "nccl"});
  job.traits.push_back(which);
  job.cluster = std::make_unique<Cluster>(std::move(topology), library(which));
  if (auto few = drawing.with_trunks()) {
    job.with_trunks = std::make_unique<Cluster>(std::move(*few), library(which));
    job.traits.emplace_back("trunks");
  }
  if (dice.one_in(2)) {
    job.workload = training(dice, *job.cluster, job.traits);
  } else {
    job.traits.emplace_back("native");
    job.workload = Native(dice, Dice(seed + 1'000'000), job.cluster->topology, job.traits).write();
  }
  job.description =
      fmt::format("regular_job({}): {} GPUs", seed, job.cluster->topology.gpus.size());
  for (const std::string& trait : job.traits) job.description += ", " + trait;
  job.description += drawing.faults_;
  return job;
}

}  // namespace flyover::test
