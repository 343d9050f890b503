#include "flyover/moe/planner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cost/link_classes.hpp"
#include "flyover/base/error.hpp"
#include "moe/exchange_flows.hpp"
#include "moe/fused.hpp"
#include "moe/kernel_limits.hpp"
#include "moe/link_shares.hpp"

namespace flyover {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

AlgorithmId algorithm_of(ExpertMode mode) {
  switch (mode) {
    case ExpertMode::Nccl:
      break;
    case ExpertMode::Normal:
      return AlgorithmId::MoeNormal;
    case ExpertMode::Direct:
      return AlgorithmId::MoeDirect;
    case ExpertMode::LowLatency:
      return AlgorithmId::MoeLowLatency;
    case ExpertMode::Fused:
      return AlgorithmId::MoeFused;
  }
  return AlgorithmId::Direct;
}

double overlap_factor(const ExpertExchange& exchange, CollectiveOp op) {
  if (!exchange.overlapped) return 1;
  const ExpertKernels& kernels = *exchange.kernels;
  if (op == CollectiveOp::MoeCombine) return kernels.overlapped_combine;
  return exchange.cached ? kernels.overlapped_cached_dispatch : kernels.overlapped_dispatch;
}

}  // namespace

double bottleneck_bandwidth(const ExpertTraffic& traffic, Duration kernel, bool spans_nodes) {
  require(kernel.count() > 0, "a kernel that takes time");
  const PortBytes& bytes = spans_nodes ? traffic.logical_network : traffic.logical_nvlink;
  return bytes.mean / to_seconds(kernel) / 1e9;
}

struct ExpertPlanner::Impl {
  using Key = std::tuple<const ExpertExchange*, CollectiveOp, std::vector<std::uint32_t>>;

  Impl(const Topology& t, const CostModel& c)
      : topology(t),
        cost(c),
        classes(t),
        scratch(t.links.size()) {}

  const Topology& topology;
  const CostModel& cost;
  LinkClasses classes;
  LoadMap scratch;
  std::map<Key, ExpertPlan> plans;
  std::map<std::pair<const ExpertExchange*, std::vector<std::uint32_t>>, ExpertCopies> known_copies;

  // One call, while its plan is made.
  struct Call {
    const ExpertExchange& exchange;
    CollectiveOp op;
    std::span<const std::uint32_t> ranks;
    ExpertGroup group;
    ExpertCopies copies;
    double size = 0;  // pair_bytes()
  };
  // Seconds of a kind of link that is loaded most, alone.
  struct LinkTimes {
    double nvlink = 0;
    double network = 0;
    double most = 0;
    LinkId slowest{};
    bool other = false;  // PCIe or what lies between carries bytes too.
  };
  // The wires of the longest paths.
  struct Latencies {
    Duration nvlink{};
    Duration network{};
  };

  void check(const Call& call) const;
  ExpertPlan make(const ExpertExchange& exchange, CollectiveOp op,
                  std::span<const std::uint32_t> ranks);
  void nccl(const Call& call, ExpertPlan& plan);
  void kernels(const Call& call, ExpertPlan& plan);
  void fused(const Call& call, ExpertPlan& plan);

  Latencies add_flows(const Call& call, const ExchangeFlows& flows);
  void add_through_ports(std::uint32_t from, std::uint32_t to, double bytes, Latencies& latencies);
  std::uint32_t elsewhere(std::uint32_t rank) const;
  std::shared_ptr<const std::vector<Hop>> take_loads(const Call& call);
  LinkTimes link_times(const std::vector<Hop>& loads, double size) const;
  double rule_seconds(const Call& call, const std::vector<Hop>& loads) const;
  double message_seconds(const Call& call, const ExchangeFlows& flows, const KernelUse& use) const;
  double epilogue_seconds(const Call& call, double copies, double message) const;
  void finish(const Call& call, const LinkTimes& times, const KernelLimit& limit,
              ExpertPlan& plan) const;
};

void ExpertPlanner::Impl::check(const Call& call) const {
  const std::string_view op = to_string(call.op);
  if (call.ranks.empty()) throw InputError(fmt::format("{}: the group has no ranks", op));
  std::vector<char> seen(topology.gpus.size(), 0);
  for (const std::uint32_t rank : call.ranks) {
    if (rank >= topology.gpus.size()) {
      throw InputError(fmt::format("{}: rank {} is not there, the topology has {} GPUs", op, rank,
                                   topology.gpus.size()));
    }
    if (seen[rank] != 0) {
      throw InputError(fmt::format("{}: rank {} is in the group twice", op, rank));
    }
    seen[rank] = 1;
  }
  const ExpertExchange& exchange = call.exchange;
  const bool whole = call.op == CollectiveOp::MoeFused;
  if (whole != (exchange.mode == ExpertMode::Fused)) {
    throw InputError(fmt::format("{}: mode {} has {}", op, to_string(exchange.mode),
                                 whole ? "a dispatch and a combine, not one kernel for both"
                                       : "one kernel for dispatch and combine, moe_fused"));
  }
  if (!exchange.rank_tokens.empty() && exchange.rank_tokens.size() != call.ranks.size()) {
    throw InputError(fmt::format("{}: tokens of {} ranks for a group of {}", op,
                                 exchange.rank_tokens.size(), call.ranks.size()));
  }
  if (exchange.mode == ExpertMode::Nccl) return;
  const ExpertKernels& kernels = *exchange.kernels;
  if (kernels.most_ranks > 0 && call.ranks.size() > kernels.most_ranks) {
    throw InputError(fmt::format("{}: {} kernels of {} serve up to {} ranks, the group has {}", op,
                                 to_string(exchange.mode), kernels.name, kernels.most_ranks,
                                 call.ranks.size()));
  }
}

// Any GPU of another node on the same index, for the way to the network's ports.
std::uint32_t ExpertPlanner::Impl::elsewhere(std::uint32_t rank) const {
  const NodeId own = topology.node_of_rank(rank);
  const std::uint32_t place = rank - topology.nodes[own].first_gpu;
  for (const Node& node : topology.nodes) {
    if (node.first_gpu == topology.nodes[own].first_gpu || node.gpus <= place) continue;
    return node.first_gpu + place;
  }
  throw InputError(
      "writes through NICs inside a node need a network, and the topology has one node");
}

// From a NIC to another one of the same node: its ports are loaded, the switches between are not.
void ExpertPlanner::Impl::add_through_ports(std::uint32_t from, std::uint32_t to, double bytes,
                                            Latencies& latencies) {
  const Router& router = cost.router();
  const NodeId node = topology.node_of_rank(from);
  const RouteOutline out = router.outline(from, elsewhere(from));
  const RouteOutline in = router.outline(elsewhere(to), to);
  for (const Hop& hop : out.hops) {
    if (topology.vertices[topology.links[hop.link].from].node != node) continue;
    scratch.add(hop.link, bytes * hop.share);
  }
  for (const Hop& hop : in.hops) {
    if (topology.vertices[topology.links[hop.link].to].node != node) continue;
    scratch.add(hop.link, bytes * hop.share);
  }
  latencies.network = std::max({latencies.network, out.latency, in.latency});
}

ExpertPlanner::Impl::Latencies ExpertPlanner::Impl::add_flows(const Call& call,
                                                              const ExchangeFlows& flows) {
  const Router& router = cost.router();
  Latencies latencies;
  for (std::uint32_t i = 0; i < flows.ranks; ++i) {
    for (std::uint32_t j = 0; j < flows.ranks; ++j) {
      const double bytes = flows.at(i, j);
      if (bytes == 0) continue;
      const bool inside = call.group.node[i] == call.group.node[j];
      if (inside && !call.exchange.nvlink) {
        add_through_ports(call.ranks[i], call.ranks[j], bytes, latencies);
        continue;
      }
      const PathInfo path = router.add_route(scratch, call.ranks[i], call.ranks[j], bytes);
      Duration& longest = inside ? latencies.nvlink : latencies.network;
      longest = std::max(longest, path.latency);
    }
  }
  return latencies;
}

// What was added, per byte of the call and as the kernels' shares make it.
std::shared_ptr<const std::vector<Hop>> ExpertPlanner::Impl::take_loads(const Call& call) {
  auto loads = std::make_shared<std::vector<Hop>>(scratch.take());
  const LinkShares shares(classes, *call.exchange.kernels, call.op == CollectiveOp::MoeCombine);
  const double factor = 1 / (call.size * overlap_factor(call.exchange, call.op));
  for (Hop& hop : *loads) hop.share = hop.share / shares.of(hop.link) * factor;
  return loads;
}

ExpertPlanner::Impl::LinkTimes ExpertPlanner::Impl::link_times(const std::vector<Hop>& loads,
                                                               double size) const {
  LinkTimes times;
  for (const Hop& hop : loads) {
    const double seconds = hop.share * size / topology.links[hop.link].bandwidth.per_second();
    if (seconds > times.most) {
      times.most = seconds;
      times.slowest = hop.link;
    }
    switch (family_of(classes.all()[classes.of(hop.link)])) {
      case LinkFamily::Network:
        times.network = std::max(times.network, seconds);
        break;
      case LinkFamily::Nvlink:
        times.nvlink = std::max(times.nvlink, seconds);
        break;
      case LinkFamily::Other:
        times.other = true;
    }
  }
  return times;
}

// What the slowest link would need if all of the network's bandwidth could be used, and 0.9 of
// NVLink's.
double ExpertPlanner::Impl::rule_seconds(const Call& call, const std::vector<Hop>& loads) const {
  constexpr double nvlink_share = 0.9;
  const LinkShares shares(classes, *call.exchange.kernels, call.op == CollectiveOp::MoeCombine);
  double slowest = 0;
  for (const Hop& hop : loads) {
    const double own = shares.of(hop.link) * overlap_factor(call.exchange, call.op);
    const bool nvlink = family_of(classes.all()[classes.of(hop.link)]) == LinkFamily::Nvlink;
    const double rate =
        topology.links[hop.link].bandwidth.per_second() * (nvlink ? nvlink_share : 1);
    slowest = std::max(slowest, hop.share * own * call.size / rate);
  }
  return slowest;
}

// Of the NIC with most writes. Copies in chunks cost a write and an update of the tail each.
double ExpertPlanner::Impl::message_seconds(const Call& call, const ExchangeFlows& flows,
                                            const KernelUse& use) const {
  const double rate = call.exchange.kernels->messages_per_second;
  if (rate == 0) return 0;
  std::map<VertexId, double> writes;
  double most = 0;
  for (std::uint32_t r = 0; r < flows.ranks; ++r) {
    const double own =
        (use.chunk > 0 ? 2 * flows.remote_copies[r] / use.chunk : flows.remote_copies[r]) +
        flows.signals[r];
    if (own == 0) continue;
    const auto nics = cost.router().nics(call.ranks[r]);
    for (const VertexId nic : nics) {
      double& sum = writes[nic];
      sum += own / static_cast<double>(nics.size());
      most = std::max(most, sum);
    }
  }
  return most / rate;
}

// Copies or sums what arrived, reading and writing it once, at the pace of the slowest GPU.
double ExpertPlanner::Impl::epilogue_seconds(const Call& call, double copies,
                                             double message) const {
  const double share = call.exchange.kernels->epilogue;
  if (share == 0) return 0;
  double slowest = unlimited;
  for (const std::uint32_t rank : call.ranks) {
    slowest = std::min(slowest, topology.gpu_model(rank).memory_bandwidth.per_second());
  }
  return copies * message / (share * slowest);
}

void ExpertPlanner::Impl::finish(const Call& call, const LinkTimes& times, const KernelLimit& limit,
                                 ExpertPlan& plan) const {
  CollectivePlan& out = plan.plan;
  out.algorithm = algorithm_of(call.exchange.mode);
  const double seconds = std::max(times.most, limit.seconds);
  if (limit.seconds > 0) out.rate_cap = call.size / limit.seconds;
  out.alone = out.startup + from_seconds(seconds);
  if (seconds == 0) {
    out.bottleneck = "nothing to send";
    return;
  }
  if (times.most > 0) {
    const LinkShares shares(classes, *call.exchange.kernels, call.op == CollectiveOp::MoeCombine);
    out.wire_share =
        shares.of(times.slowest) * overlap_factor(call.exchange, call.op) * times.most / seconds;
  }
  if (to_seconds(out.startup) >= seconds) {
    out.bottleneck = "latency";
  } else {
    out.bottleneck =
        times.most >= limit.seconds ? describe_link(topology, times.slowest) : limit.binding;
  }
}

// As the library's all-to-all of payload; where pairs are uneven, with the loads that they make and
// the pace of the rank with most.
void ExpertPlanner::Impl::nccl(const Call& call, ExpertPlan& plan) {
  const ExchangeFlows flows = exchange_flows(call.exchange, call.op, call.group, call.copies);
  plan.traffic = traffic_of(call.exchange, call.op, call.group, call.copies, flows);
  CollectivePlan out = cost.plan({CollectiveOp::AllToAll,
                                  Bytes{std::llround(call.size)},
                                  "",
                                  {call.ranks.begin(), call.ranks.end()},
                                  0});
  if (!call.copies.balanced && call.ranks.size() > 1) {
    // What the library makes of a payload byte, by class of link.
    const double share = 1.0 / static_cast<double>(call.ranks.size());
    ExchangeFlows even = flows;
    for (std::uint32_t i = 0; i < flows.ranks; ++i) {
      for (std::uint32_t j = 0; j < flows.ranks; ++j) {
        even.bytes[std::size_t{i} * flows.ranks + j] = i == j ? 0 : share;
      }
    }
    add_flows(call, even);
    std::vector<double> per_payload(classes.all().size(), 0);
    for (const Hop& hop : scratch.take()) {
      const auto found = std::ranges::lower_bound(*out.loads, hop.link, {}, &Hop::link);
      if (found == out.loads->end() || found->link != hop.link) continue;
      double& factor = per_payload[classes.of(hop.link)];
      factor = std::max(factor, found->share / hop.share);
    }
    add_flows(call, flows);
    auto loads = std::make_shared<std::vector<Hop>>(scratch.take());
    for (Hop& hop : *loads) {
      const double factor = per_payload[classes.of(hop.link)];
      hop.share *= (factor > 0 ? factor : 1) / call.size;
    }
    const double most = std::max({plan.traffic.logical_nvlink.most, 1.0});
    out.rate_cap *= call.size / most;
    out.loads = std::move(loads);
    const LinkTimes times = link_times(*out.loads, call.size);
    const double seconds = std::max(times.most, call.size / out.rate_cap);
    out.alone = out.startup + from_seconds(seconds);
    if (to_seconds(out.startup) < seconds && times.most >= seconds) {
      out.bottleneck = describe_link(topology, times.slowest);
    }
  }
  plan.plan = std::move(out);
}

void ExpertPlanner::Impl::kernels(const Call& call, ExpertPlan& plan) {
  const ExpertExchange& exchange = call.exchange;
  const ExpertKernels& kernels = *exchange.kernels;
  const bool combine = call.op == CollectiveOp::MoeCombine;
  KernelUse use = kernel_use(exchange, call.op, static_cast<std::uint32_t>(call.ranks.size()));
  const ExchangeFlows flows = exchange_flows(exchange, call.op, call.group, call.copies);
  const std::vector<CopyWork> work = copy_work(exchange, call.group, call.copies);
  plan.traffic = traffic_of(exchange, call.op, call.group, call.copies, flows);
  plan.local_copies = local_copy_bytes(exchange, call.op, call.group, work) / call.size;

  const Latencies latencies = add_flows(call, flows);
  const auto loads = take_loads(call);
  const LinkTimes times = link_times(*loads, call.size);
  plan.plan.loads = loads;

  if (use.sms == 0) {
    use.sms = sms_for(exchange, call.op, call.group, work, rule_seconds(call, *loads));
    use.channels = use.sms;
  }
  plan.sms = exchange.hook ? 0 : use.sms;
  plan.plan.channels = use.channels;

  const bool spans = call.group.nodes() > 1;
  KernelLimit limit = kernel_limit(exchange, call.op, call.group, call.copies, flows, work, use,
                                   2 * latencies.network);
  limit.seconds /= overlap_factor(exchange, call.op);
  if (const double messages = message_seconds(call, flows, use); messages > limit.seconds) {
    limit = {messages, "message rate"};
  }

  double startup = to_seconds(combine ? kernels.combine_start : kernels.dispatch_start);
  if (exchange.mode == ExpertMode::Normal) {
    startup += to_seconds(latencies.network + latencies.nvlink);
    // The last chunk takes the shorter hop after the longer one has finished, or the first one has
    // taken it before: a pipeline of two stages.
    double sent = 0;
    for (const double copies : flows.remote_copies) sent = std::max(sent, copies);
    if (use.chunk > 0 && sent > 0) {
      const double turns = std::max(1.0, sent / use.channels / use.chunk);
      startup += std::min(times.network, times.nvlink) / turns;
    }
  } else {
    startup += to_seconds(std::max(latencies.network, latencies.nvlink));
    if (latencies.network.count() > 0 && latencies.nvlink.count() > 0) {
      startup += to_seconds(kernels.mixed_start);
    }
  }
  if (!combine && !exchange.cached) plan.notify = kernels.notify;
  double finished = 0;
  for (const CopyWork& own : work) {
    finished = std::max(
        finished, combine ? (spans ? own.to_nodes : own.to_ranks) + own.tokens : 2 * own.received);
  }
  plan.epilogue = from_seconds(epilogue_seconds(call, finished, message_bytes(exchange, call.op)));
  plan.plan.startup = from_seconds(startup) + plan.notify + plan.epilogue;
  finish(call, times, limit, plan);
}

// Counting, then waves of experts, then the sum of what came back: only the first wave's dispatch
// and the last one's combine are not hidden behind the tiles (MOE.md 5.3).
void ExpertPlanner::Impl::fused(const Call& call, ExpertPlan& plan) {
  const ExpertExchange& exchange = call.exchange;
  const ExpertKernels& kernels = *exchange.kernels;
  if (call.group.nodes() > 1) {
    throw InputError(fmt::format("{}: the kernel works over NVLink, and the group spans {} nodes",
                                 kernels.name, call.group.nodes()));
  }
  const GpuModel& gpu = topology.gpu_model(call.ranks.front());
  const FusedMachine machine = fused_machine(exchange, gpu);

  // Dispatch there and combine back.
  ExchangeFlows flows =
      exchange_flows(exchange, CollectiveOp::MoeDispatch, call.group, call.copies);
  const ExchangeFlows back =
      exchange_flows(exchange, CollectiveOp::MoeCombine, call.group, call.copies);
  for (std::size_t i = 0; i < flows.bytes.size(); ++i) flows.bytes[i] += back.bytes[i];
  plan.traffic = traffic_of(exchange, call.op, call.group, call.copies, flows);
  const Latencies latencies = add_flows(call, flows);
  plan.plan.loads = take_loads(call);
  const LinkTimes times = link_times(*plan.plan.loads, call.size);
  if (times.other) {
    throw InputError(fmt::format("{}: the kernel works over NVLink, which does not join all of {}",
                                 kernels.name, fmt::join(call.ranks, ", ")));
  }

  const FusedShape shape = fused_shape(exchange, call.copies);
  const FusedWork work = fused_work(shape, machine);

  double most_tokens = 0;
  for (std::uint32_t r = 0; r < call.group.ranks(); ++r) {
    most_tokens = std::max(most_tokens, static_cast<double>(tokens_of(exchange, r)));
  }
  const double summed = (1.0 + exchange.routing.chosen) * most_tokens;  // Rows read and written.

  plan.sms = machine.sms;
  plan.plan.channels = machine.sms;
  // Weights once, activations written and read, what came home read and summed.
  plan.local_copies =
      (shape.active * 3.0 * shape.hidden * shape.expert_hidden * shape.weight_bytes +
       2.0 * shape.pairs * shape.expert_hidden + summed * exchange.combine_bytes) /
      call.size;
  const double exposed = work.waves.count > 0 ? times.most / work.waves.count : 0;
  const double sums = epilogue_seconds(call, summed, exchange.combine_bytes);
  plan.plan.startup = kernels.dispatch_start + kernels.combine_start + latencies.nvlink +
                      from_seconds(exposed + sums);
  finish(call, times, {work.seconds, work.memory > work.compute ? "hbm" : "compute"}, plan);
}

ExpertPlan ExpertPlanner::Impl::make(const ExpertExchange& exchange, CollectiveOp op,
                                     std::span<const std::uint32_t> ranks) {
  require(exchanges_experts(op), "an operation that exchanges experts");
  require(exchange.kernels != nullptr, "an exchange with kernels");
  Call call{exchange, op, ranks, {}, {}, static_cast<double>(pair_bytes(exchange, op).count())};
  check(call);
  std::vector<std::uint32_t> domain;
  for (const std::uint32_t rank : ranks)
    domain.push_back(static_cast<std::uint32_t>(index(topology.node_of_rank(rank))));
  call.group = expert_group(domain);
  // Dispatch and combine move the same tokens.
  const auto [known, fresh] =
      known_copies.try_emplace({&exchange, std::vector<std::uint32_t>(ranks.begin(), ranks.end())});
  if (fresh) known->second = expert_copies(exchange, call.group);
  call.copies = known->second;

  ExpertPlan plan;
  plan.balanced = call.copies.balanced;
  if (call.size == 0) {
    plan.plan.algorithm = algorithm_of(exchange.mode);
    plan.plan.loads = std::make_shared<std::vector<Hop>>();
    plan.plan.bottleneck = "nothing to send";
    plan.traffic.basis = call.copies.basis;
    return plan;
  }
  try {
    if (exchange.mode == ExpertMode::Nccl) {
      nccl(call, plan);
    } else if (exchange.mode == ExpertMode::Fused) {
      fused(call, plan);
    } else {
      kernels(call, plan);
    }
  } catch (...) {
    // What was added before a rank could not be reached must not load the next plan.
    static_cast<void>(scratch.take());
    throw;
  }
  return plan;
}

ExpertPlanner::ExpertPlanner(const Topology& topology, const CostModel& cost)
    : impl_(std::make_unique<Impl>(topology, cost)) {}
ExpertPlanner::~ExpertPlanner() = default;
ExpertPlanner::ExpertPlanner(ExpertPlanner&&) noexcept = default;

const ExpertPlan& ExpertPlanner::plan(const ExpertExchange& exchange, CollectiveOp op,
                                      std::span<const std::uint32_t> ranks) const {
  Impl::Key key{&exchange, op, {ranks.begin(), ranks.end()}};
  auto found = impl_->plans.find(key);
  if (found == impl_->plans.end()) {
    ExpertPlan plan = impl_->make(exchange, op, ranks);
    found = impl_->plans.emplace(std::move(key), std::move(plan)).first;
  }
  return found->second;
}

}  // namespace flyover
