#include "flyover/cost/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/base/error.hpp"
#include "flyover/base/quantity.hpp"
#include "group.hpp"
#include "link_classes.hpp"
#include "pattern.hpp"

namespace flyover {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// The first rule of a list that covers a candidate, or none.
template <class Rule>
const Rule* first_rule(const std::vector<Rule>& rules, const RuleQuery& query) {
  const auto found =
      std::ranges::find_if(rules, [&](const Rule& rule) { return covers(rule.where, query); });
  return found == rules.end() ? nullptr : &*found;
}

// An algorithm on a group.
struct TracedAlgorithm {
  AlgorithmId algorithm{};
  std::uint32_t rotations = 1;
  std::unique_ptr<const Pattern> pattern;  // Filled when first weighed.
};

// One algorithm and protocol on one group: all but the size.
struct Candidate {
  AlgorithmId algorithm{};
  Protocol protocol{};
  std::size_t traced = 0;            // Index into the group's algorithms.
  const Pattern* pattern = nullptr;  // With all that depends on it, filled when first weighed.
  const LatencyRule* latency = nullptr;
  double issue = 0;              // Seconds that the host needs to start all GPUs of a process.
  std::uint32_t channels = 1;    // That the library opens.
  double wire_rate = unlimited;  // Bytes of the call per second that the slowest link allows.
  double cap = unlimited;        // That the kernels allow.
  // Where messages get a share of the channels: the rate of one,
  double channel_rate = unlimited;
  std::uint32_t peers = 0;           // the messages that a rank sends at once, 0 elsewhere,
  std::uint32_t members = 1;         // and among how many members the call's bytes are divided.
  std::string slowest;               // The slowest link, in words,
  std::string capped_by;             // and the cap.
  double efficiency = 1;             // Of the slowest link.
  std::vector<double> efficiencies;  // As the rules have them, by link class,
  double kernel_cap = unlimited;     // and the cap.
  std::vector<double> per_payload;   // Wire bytes per payload byte, by link class.
  std::shared_ptr<const std::vector<Hop>> loads;  // Filled when first chosen.
};

// One collective on one group.
struct Group {
  GroupFacts facts;
  TunerGraphs graphs;
  std::vector<TracedAlgorithm> algorithms;
  std::vector<Candidate> candidates;
  std::vector<std::string> refusals;  // "nvls: NCCL_NVLS_ENABLE=0"
};

// A candidate for one call.
struct Contender {
  Candidate* candidate = nullptr;
  double dtype_rate = 1;
  double nccl_time = unlimited;  // By the library's own estimate, where it decides.
};

RuleQuery query_of(const CollectiveCall& call, const GroupFacts& facts,
                   const Candidate& candidate) {
  return {call.op,   candidate.algorithm, candidate.protocol, facts.architecture,
          facts.gpu, &facts.link,         facts.domains,      facts.members};
}

// Ways that the channels lie on the group. Inside one domain all load the same links. Across, with
// a whole multiple of the rails on which they enter domains, no NIC carries more than the others.
std::uint32_t rotations_of(const GroupFacts& facts, std::uint32_t channels) {
  if (facts.domains == 1) return 1;
  const std::uint32_t most = std::min(channels, facts.members);
  return most < facts.rails ? most : most - most % facts.rails;
}

CollectiveShape collective_shape(const CollectiveCall& call, const GroupFacts& facts,
                                 std::uint32_t channels) {
  return {.op = call.op,
          .group = facts.shape,
          .channels = channels,
          .root = call.root,
          .in_switch_reduction = facts.in_switch_reduction,
          .in_network_reduction = facts.in_network_reduction};
}

// The model of a library leaves nothing where there is no network; then this is the reason to give.
void require_paths(const Router& router, std::span<const std::uint32_t> ranks) {
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    static_cast<void>(router.route(ranks[i - 1], ranks[i]));
  }
}

double root_sum(double a, double b, double power) {
  if (power == 1) return a + b;
  const double large = std::max(a, b);
  if (large <= 0) return 0;
  return large * std::pow(std::pow(a / large, power) + std::pow(b / large, power), 1 / power);
}

void check_call(const Topology& topology, const CollectiveCall& call) {
  const std::string_view op = to_string(call.op);
  if (call.ranks.empty()) throw InputError(fmt::format("{}: the group has no ranks", op));
  if (call.bytes.count() < 0) throw InputError(fmt::format("{}: a size below zero", op));
  for (const std::uint32_t rank : call.ranks) {
    if (rank >= topology.gpus.size()) {
      throw InputError(fmt::format("{}: rank {} is not there, the topology has {} GPUs", op, rank,
                                   topology.gpus.size()));
    }
  }
  std::vector<char> seen(topology.gpus.size(), 0);
  for (const std::uint32_t rank : call.ranks) {
    if (seen[rank]) throw InputError(fmt::format("{}: rank {} is in the group twice", op, rank));
    seen[rank] = 1;
  }
  if (call.root >= call.ranks.size()) {
    throw InputError(fmt::format("{}: root {} is outside the group of {} ranks", op, call.root,
                                 call.ranks.size()));
  }
}

}  // namespace

std::string default_library(const Topology& topology) {
  const auto any = [&](std::string_view architecture) {
    return std::ranges::any_of(topology.gpu_models, [&](const GpuModel& gpu) {
      return gpu.architecture.starts_with(architecture);
    });
  };
  if (any("cdna")) return "rccl";
  return any("tpu") ? "ideal" : "nccl";
}

struct CostModel::Impl {
  // With whether a tracer lays it out.
  using GroupKey = std::tuple<CollectiveOp, std::uint32_t, std::vector<std::uint32_t>, bool>;

  Impl(const Topology& t, const Router& r, const Library& l)
      : topology(t),
        router(r),
        library(l),
        stack(stack_in_use(l)),
        network(network_rule(l, t.fabric_preset)),
        site(l.site),
        links(t),
        scratch(t.links.size()) {}

  const Topology& topology;
  const Router& router;
  const Library& library;
  const StackRule* stack;      // Null: launches cost nothing.
  const NetworkRule* network;  // Null: as the latency rules have it.
  SiteParameters site;
  LinkClasses links;
  LoadMap scratch;
  std::map<GroupKey, std::unique_ptr<Group>> groups;
  const GroupKey* last_key = nullptr;
  Group* last_group = nullptr;
  struct Pair {
    Pattern pattern;
    Candidate candidate;
  };
  std::unordered_map<std::uint64_t, std::unique_ptr<Pair>> pairs;
  std::size_t hops_of_pairs = 0;

  Group& group(const CollectiveCall& call, bool traced = false);
  std::unique_ptr<Group> build(const CollectiveCall& call);
  void weigh(Group& group, Candidate& candidate, const CollectiveCall& call,
             const PatternTracer& tracer);
  std::vector<Contender> contenders(Group& group, const CollectiveCall& call);
  CollectivePlan weighed_plan(Group& group, const Contender& contender, const CollectiveCall& call,
                              const PatternTracer& tracer) {
    weigh(group, *contender.candidate, call, tracer);
    return plan(*contender.candidate, call, contender.dtype_rate);
  }
  std::string refusal(const CollectiveCall& call, const GroupFacts& facts, AlgorithmId algorithm,
                      std::uint32_t channels) const;
  std::uint32_t channels(const GroupFacts& facts, const TunerGraphs& graphs,
                         const RuleQuery& query) const;
  bool carries(Protocol protocol) const {
    return network == nullptr || network->protocols.empty() ||
           std::ranges::find(network->protocols, protocol) != network->protocols.end();
  }
  // Seconds that the host of a process with `gpus` GPUs, or as many as it can have, is busy per
  // call.
  double issue_time(std::uint32_t gpus) const {
    return stack == nullptr ? 0 : to_seconds(stack->issue) * std::min(gpus, stack->most_gpus);
  }
  void rate(Candidate& candidate, const RuleQuery& query, const GroupFacts& facts,
            double bus_per_byte) const;
  void apply_site(Candidate& candidate) const;
  double startup_time(const Candidate& candidate, double size, double transfer) const;
  CollectivePlan plan(const Candidate& candidate, const CollectiveCall& call,
                      double dtype_rate) const;
  void attach_loads(Candidate& candidate, CollectivePlan& plan) const;
  bool tuned(CollectiveOp op) const {
    return std::ranges::find(library.tuned, op) != library.tuned.end();
  }
  // Whether the library would consider it here; one that takes the fastest would all that it can.
  bool offers(const CollectiveCall& call, const TunerGroup& tuner, const TunerGraphs& graphs,
              AlgorithmId algorithm, Protocol protocol) const {
    if (!library.tuning || !tuned(call.op)) return true;
    if (library.choice == ChoiceRule::Fastest) {
      return tuner_can(call.op, algorithm, protocol, tuner);
    }
    return tuner_time(*library.tuning, tuner, graphs, call.op, algorithm, protocol, call.bytes)
        .has_value();
  }
};

Group& CostModel::Impl::group(const CollectiveCall& call, bool traced) {
  // Bench asks for one group at many sizes: its ranks are compared once, not searched for.
  if (last_key && std::get<0>(*last_key) == call.op && std::get<1>(*last_key) == call.root &&
      std::get<3>(*last_key) == traced && std::get<2>(*last_key) == call.ranks) {
    return *last_group;
  }
  GroupKey key{call.op, call.root, call.ranks, traced};
  auto found = groups.find(key);
  if (found == groups.end()) {
    check_call(topology, call);
    found = groups.emplace(std::move(key), build(call)).first;
  }
  last_key = &found->first;
  last_group = found->second.get();
  return *last_group;
}

std::uint32_t CostModel::Impl::channels(const GroupFacts& facts, const TunerGraphs& graphs,
                                        const RuleQuery& query) const {
  std::uint32_t count = 1;
  if (const ChannelRule* rule = first_rule(library.channels, query)) {
    count = rule->count;
  } else if (library.tuning && tuned(query.op) && facts.tuner.ranks > 1) {
    count = open_channels(*library.tuning, graphs.ring);
  }
  if (library.settings.min_channels) count = std::max(count, *library.settings.min_channels);
  if (library.settings.max_channels) count = std::min(count, *library.settings.max_channels);
  return count;
}

std::string CostModel::Impl::refusal(const CollectiveCall& call, const GroupFacts& facts,
                                     AlgorithmId algorithm, std::uint32_t channels) const {
  if (tuned(call.op) && !library.settings.allows(algorithm)) return "NCCL_ALGO leaves it out";
  const bool nvls = algorithm == AlgorithmId::Nvls || algorithm == AlgorithmId::NvlsTree;
  if (nvls && !library.settings.nvls) return "NCCL_NVLS_ENABLE=0";
  const Algorithm* known = find_algorithm(call.op, algorithm);
  require(known != nullptr, "a library lists algorithms that exist");
  const bool sharp = algorithm == AlgorithmId::CollnetDirect ||
                     algorithm == AlgorithmId::CollnetChain ||
                     (algorithm == AlgorithmId::Nvls && call.op == CollectiveOp::AllReduce);
  if (sharp && facts.domains > 1) {
    if (!topology.in_network_reduction) {
      return fmt::format("{} switches do not reduce",
                         topology.fabric_preset.empty() ? "the network's" : topology.fabric_preset);
    }
    if (!library.settings.collnet) return "NCCL_COLLNET_ENABLE is not set";
  }
  const CollectiveShape shape = collective_shape(call, facts, channels);
  return known->unsupported(shape);
}

// Efficiencies and caps: the rate without contention.
void CostModel::Impl::rate(Candidate& candidate, const RuleQuery& query, const GroupFacts& facts,
                           double bus_per_byte) const {
  candidate.efficiencies.assign(links.all().size(), 1.0);
  for (std::size_t c = 0; c < links.all().size(); ++c) {
    RuleQuery link_query = query;
    link_query.link = &links.all()[c];
    if (const EfficiencyRule* rule = first_rule(library.efficiencies, link_query)) {
      candidate.efficiencies[c] = share_at(*rule, facts.members);
    }
  }
  if (const CapRule* rule = first_rule(library.caps, query); rule && bus_per_byte > 0) {
    const double by_channels = rule->per_channel * candidate.channels;
    candidate.kernel_cap = std::min(rule->total, by_channels) / bus_per_byte;
    candidate.capped_by = rule->total <= by_channels
                              ? fmt::format("protocol ({})", to_string(candidate.protocol))
                              : fmt::format("channels ({})", candidate.channels);
    if (library.point_to_point && candidate.algorithm == AlgorithmId::Direct &&
        facts.domains == 1) {
      candidate.channel_rate = rule->per_channel / bus_per_byte;
      candidate.members = std::max(facts.members, 2U);
      candidate.peers = query.op == CollectiveOp::SendRecv ? 1 : candidate.members - 1;
    }
  }
  apply_site(candidate);
}

// What a site's bandwidths make of the rules' rates.
void CostModel::Impl::apply_site(Candidate& candidate) const {
  const double wire = library.wire_bytes.at(candidate.protocol);
  const auto efficiency = [&](std::size_t c) {
    const bool network_link = links.all()[c].family == "network";
    const SiteParameter& factor = network_link ? site.network_bandwidth : site.domain_bandwidth;
    return candidate.efficiencies[c] * factor.value;
  };
  candidate.per_payload.resize(links.all().size());
  for (std::size_t c = 0; c < links.all().size(); ++c) {
    candidate.per_payload[c] = wire / efficiency(c);
  }
  candidate.cap = candidate.kernel_cap;
  if (candidate.protocol != Protocol::Simple) candidate.cap *= site.protocol_bandwidth.value;
  candidate.loads.reset();

  candidate.wire_rate = unlimited;
  LinkId slowest{};
  for (const Hop& hop : candidate.pattern->payload) {
    const double weight = hop.share * candidate.per_payload[links.of(hop.link)];
    const double allowed = topology.links[hop.link].bandwidth.per_second() / weight;
    if (allowed < candidate.wire_rate) {
      candidate.wire_rate = allowed;
      slowest = hop.link;
    }
  }
  if (candidate.wire_rate < unlimited) {
    candidate.slowest = describe_link(topology, slowest);
    candidate.efficiency = efficiency(links.of(slowest));
  }
}

std::unique_ptr<Group> CostModel::Impl::build(const CollectiveCall& call) {
  auto group = std::make_unique<Group>();
  group->facts = examine_group(topology, router, library, call.ranks);
  const GroupFacts& facts = group->facts;
  const auto listed = library.algorithms.find(call.op);
  if (listed == library.algorithms.end()) {
    throw InputError(
        fmt::format("{} {} has no {}", library.name, library.version, to_string(call.op)));
  }
  if (library.tuning && tuned(call.op) && call.ranks.size() > 1) {
    group->graphs = search_graphs(*library.tuning, facts.tuner);
  }

  for (const AlgorithmId id : listed->second) {
    RuleQuery query{call.op,   id,          Protocol::Simple, facts.architecture,
                    facts.gpu, &facts.link, facts.domains,    facts.members};
    const std::uint32_t count = channels(facts, group->graphs, query);
    const std::uint32_t rotations = rotations_of(facts, count);
    if (std::string reason = refusal(call, facts, id, rotations); !reason.empty()) {
      group->refusals.push_back(fmt::format("{}: {}", to_string(id), reason));
      continue;
    }
    const std::size_t place = group->algorithms.size();
    for (const Protocol protocol : library.protocols) {
      query.protocol = protocol;
      const LatencyRule* latency = first_rule(library.latencies, query);
      if (latency == nullptr) continue;  // The library has no such kernel.
      if (tuned(call.op) && !library.settings.allows(protocol)) {
        group->refusals.push_back(
            fmt::format("{} {}: NCCL_PROTO leaves it out", to_string(id), to_string(protocol)));
        continue;
      }
      if (facts.domains > 1 && !carries(protocol)) {
        group->refusals.push_back(fmt::format("{} {}: not over {}", to_string(id),
                                              to_string(protocol), topology.fabric_preset));
        continue;
      }
      if (!offers(call, facts.tuner, group->graphs, id, protocol)) {
        group->refusals.push_back(
            fmt::format("{} {}: NCCL does not use it here", to_string(id), to_string(protocol)));
        continue;
      }
      if (place == group->algorithms.size()) group->algorithms.push_back({id, rotations, nullptr});
      Candidate candidate;
      candidate.algorithm = id;
      candidate.protocol = protocol;
      candidate.traced = place;
      candidate.latency = latency;
      candidate.issue = issue_time(facts.members);
      candidate.channels = count;
      group->candidates.push_back(std::move(candidate));
    }
  }
  if (group->candidates.empty()) require_paths(router, call.ranks);
  return group;
}

// Lays its algorithm on the group, if nobody has, and finds its rate.
void CostModel::Impl::weigh(Group& group, Candidate& candidate, const CollectiveCall& call,
                            const PatternTracer& tracer) {
  if (candidate.pattern != nullptr) return;
  const GroupFacts& facts = group.facts;
  TracedAlgorithm& traced = group.algorithms[candidate.traced];
  if (!traced.pattern) {
    const CollectiveShape shape = collective_shape(call, facts, traced.rotations);
    const Algorithm& algorithm = *find_algorithm(call.op, traced.algorithm);
    const PatternOptions options{library.mesh_rings, library.rail_rings};
    std::optional<Pattern> pattern = tracer ? tracer(shape, algorithm, options) : std::nullopt;
    if (!pattern) {
      pattern = trace_pattern(topology, router, scratch, call.ranks, shape, algorithm, options);
    }
    traced.pattern = std::make_unique<const Pattern>(std::move(*pattern));
  }
  candidate.pattern = traced.pattern.get();
  rate(candidate, query_of(call, facts, candidate), facts,
       bus_factor(call.op, static_cast<std::uint32_t>(call.ranks.size())));
}

// Seconds before `size` bytes flow at the full rate, at which they take `transfer` (LatencyRule and
// StackRule have the equations).
double CostModel::Impl::startup_time(const Candidate& candidate, double size,
                                     double transfer) const {
  const Pattern& pattern = *candidate.pattern;
  const LatencyRule& rule = *candidate.latency;
  if (library.lockstep) {
    return std::max(0.0, pattern.steps * to_seconds(pattern.longest_latency) + site.launch.value);
  }
  const double beyond =
      std::max(0.0, to_seconds(pattern.mean_network_latency) - to_seconds(rule.network_wire));
  const double hop = network == nullptr ? 0 : to_seconds(network->hop);
  const double message = network == nullptr ? 0 : to_seconds(network->message);
  const double near = site.domain_latency.value;
  const double far = site.network_latency.value;
  const double hops =
      pattern.domain_hops * to_seconds(rule.domain_hop) * near +
      pattern.network_hops * (to_seconds(rule.network_hop) * far + beyond + hop * far);
  double startup = to_seconds(rule.base) +
                   pattern.domain_messages * to_seconds(rule.domain_message) * near +
                   pattern.network_messages * (to_seconds(rule.network_message) + message) * far +
                   root_sum(hops, transfer, rule.overlap) - transfer;
  const auto fill = [&](Duration full, Bytes half) {
    const double half_way = static_cast<double>(half.count()) * site.pipeline_size.value;
    return to_seconds(full) * site.pipeline.value * size / (size + half_way);
  };
  if (size > 0) {
    startup += fill(rule.fill, rule.fill_half);
    const bool crosses = pattern.network_hops + pattern.network_messages > 0;
    if (network != nullptr && crosses) startup += fill(network->fill, network->fill_half);
  }
  if (stack == nullptr) return std::max(0.0, startup + site.launch.value);
  startup = std::max(0.0, startup + to_seconds(stack->launch) + site.launch.value);
  return root_sum(startup + transfer, candidate.issue, stack->overlap) - transfer;
}

CollectivePlan CostModel::Impl::plan(const Candidate& candidate, const CollectiveCall& call,
                                     double dtype_rate) const {
  const Pattern& pattern = *candidate.pattern;
  CollectivePlan plan;
  plan.algorithm = candidate.algorithm;
  plan.protocol = candidate.protocol;
  plan.channels = candidate.channels;
  plan.sharp = pattern.sharp;

  plan.rate_cap = candidate.cap;
  std::string capped_by = candidate.capped_by;
  if (candidate.peers > 0) {
    const std::int64_t parts = candidate.peers == 1 ? 1 : candidate.members;
    const std::uint32_t each = channels_per_peer(*library.point_to_point, candidate.members,
                                                 Bytes{call.bytes.count() / parts});
    plan.channels = std::min(candidate.channels, candidate.peers * each);
    if (const double rate = candidate.channel_rate * plan.channels; rate < plan.rate_cap) {
      plan.rate_cap = rate;
      capped_by = fmt::format("channels ({})", plan.channels);
    }
  }
  if (const double reduced = std::min(candidate.wire_rate, candidate.cap) * dtype_rate;
      dtype_rate < 1 && reduced < plan.rate_cap) {
    plan.rate_cap = reduced;
    capped_by = fmt::format("reduction ({})", call.dtype);
  }
  const double rate = std::min(candidate.wire_rate, plan.rate_cap);
  const double size = static_cast<double>(call.bytes.count());
  const double transfer = rate < unlimited ? size / rate : 0;

  const double startup = startup_time(candidate, size, transfer);
  plan.startup = from_seconds(startup);
  plan.alone = plan.startup + from_seconds(transfer);

  const bool wire_limited = candidate.wire_rate <= plan.rate_cap;
  if (rate < unlimited) {
    plan.wire_share = candidate.efficiency * rate / candidate.wire_rate;
  }
  if (startup >= transfer) {
    plan.bottleneck = "latency";
  } else {
    plan.bottleneck = wire_limited ? candidate.slowest : capped_by;
  }
  if (library.tuning && tuned(call.op)) {
    const std::uint32_t least = library.settings.min_channels.value_or(1);
    TunerGroup sizes;
    sizes.ranks = static_cast<std::uint32_t>(call.ranks.size());
    plan.channels = std::max(least, used_channels(*library.tuning, sizes, plan.algorithm,
                                                  plan.protocol, call.bytes, plan.channels));
  }
  return plan;
}

void CostModel::Impl::attach_loads(Candidate& candidate, CollectivePlan& plan) const {
  if (!candidate.loads) {
    auto loads = std::make_shared<std::vector<Hop>>(candidate.pattern->payload);
    for (Hop& hop : *loads) hop.share *= candidate.per_payload[links.of(hop.link)];
    candidate.loads = std::move(loads);
  }
  plan.loads = candidate.loads;
  plan.fold = candidate.pattern->fold;
}

CostModel::CostModel(const Topology& topology, const Router& router, const Library& library)
    : impl_(std::make_unique<Impl>(topology, router, library)) {}
CostModel::~CostModel() = default;
CostModel::CostModel(CostModel&&) noexcept = default;

void CostModel::set_site(const SiteParameters& site) {
  impl_->site = site;
  for (const auto& entry : impl_->groups) {
    for (Candidate& candidate : entry.second->candidates) {
      if (candidate.pattern != nullptr) impl_->apply_site(candidate);
    }
  }
  for (const auto& entry : impl_->pairs) impl_->apply_site(entry.second->candidate);
}

GroupShape CostModel::shape(std::span<const std::uint32_t> ranks) const {
  return group_shape(impl_->topology, impl_->router, ranks);
}

const Router& CostModel::router() const {
  return impl_->router;
}

// Throws when there are none, saying why.
std::vector<Contender> CostModel::Impl::contenders(Group& group, const CollectiveCall& call) {
  const GroupFacts& facts = group.facts;
  std::vector<Contender> found;
  found.reserve(group.candidates.size());
  std::vector<std::string> refusals;
  for (Candidate& candidate : group.candidates) {
    Contender contender{.candidate = &candidate};
    if (!call.dtype.empty()) {
      const RuleQuery query = query_of(call, facts, candidate);
      const auto rule = std::ranges::find_if(library.dtypes, [&](const DtypeRule& dtype) {
        return std::ranges::find(dtype.dtypes, call.dtype) != dtype.dtypes.end() &&
               covers(dtype.where, query);
      });
      if (rule != library.dtypes.end() && !rule->supported) {
        refusals.push_back(
            fmt::format("{}: cannot reduce {}", to_string(candidate.algorithm), call.dtype));
        continue;
      }
      if (rule != library.dtypes.end()) contender.dtype_rate = rule->rate;
    }
    if (library.choice == ChoiceRule::NcclModel && tuned(call.op)) {
      contender.nccl_time = tuner_time(*library.tuning, facts.tuner, group.graphs, call.op,
                                       candidate.algorithm, candidate.protocol, call.bytes)
                                .value_or(unlimited);
    }
    found.push_back(contender);
  }
  if (found.empty()) {
    refusals.insert(refusals.begin(), group.refusals.begin(), group.refusals.end());
    throw InputError(fmt::format("{} over {} GPUs: the settings leave no algorithm ({})",
                                 to_string(call.op), call.ranks.size(), fmt::join(refusals, "; ")));
  }
  return found;
}

Choice CostModel::choose(const CollectiveCall& call, const PatternTracer& tracer) const {
  if (call.ranks.size() == 1) return {.plan = plan(call), .alternatives = {}};
  Group& group = impl_->group(call, tracer != nullptr);
  struct Ranked {
    CollectivePlan plan;
    Contender contender;
  };
  std::vector<Ranked> ranked;
  for (const Contender& contender : impl_->contenders(group, call)) {
    ranked.push_back({impl_->weighed_plan(group, contender, call, tracer), contender});
  }
  std::ranges::stable_sort(
      ranked, [](const Ranked& a, const Ranked& b) { return a.plan.alone < b.plan.alone; });
  // Without estimates of NCCL's the first one stands: the fastest.
  const auto chosen = std::ranges::min_element(
      ranked, {}, [](const Ranked& entry) { return entry.contender.nccl_time; });

  Choice choice;
  for (auto entry = ranked.begin(); entry != ranked.end(); ++entry) {
    if (entry == chosen) continue;
    choice.alternatives.push_back(std::move(entry->plan));
  }
  choice.plan = std::move(chosen->plan);
  impl_->attach_loads(*chosen->contender.candidate, choice.plan);
  return choice;
}

CollectivePlan CostModel::plan(const CollectiveCall& call, const PatternTracer& tracer) const {
  if (call.ranks.size() == 1) {
    check_call(impl_->topology, call);
    CollectivePlan nothing;
    nothing.loads = std::make_shared<std::vector<Hop>>();
    nothing.bottleneck = "nothing to send";
    return nothing;
  }
  Group& group = impl_->group(call, tracer != nullptr);
  const std::vector<Contender> contenders = impl_->contenders(group, call);
  const double least = std::ranges::min(contenders, {}, &Contender::nccl_time).nccl_time;
  CollectivePlan best;
  Candidate* chosen = nullptr;
  for (const Contender& contender : contenders) {
    if (contender.nccl_time > least) continue;
    CollectivePlan plan = impl_->weighed_plan(group, contender, call, tracer);
    if (chosen != nullptr && plan.alone >= best.alone) continue;
    chosen = contender.candidate;
    best = std::move(plan);
  }
  impl_->attach_loads(*chosen, best);
  return best;
}

CollectivePlan CostModel::point_to_point(std::uint32_t from, std::uint32_t to, Bytes bytes) const {
  Impl& impl = *impl_;
  const CollectiveCall call{CollectiveOp::SendRecv, bytes, "", {from, to}, 0};
  if (from == to) {
    check_call(impl.topology, {CollectiveOp::SendRecv, bytes, "", {from}, 0});
    CollectivePlan plan;
    plan.algorithm = AlgorithmId::Direct;
    plan.loads = std::make_shared<std::vector<Hop>>();
    plan.bottleneck = "nothing to send";
    return plan;
  }
  const std::uint32_t domains =
      from < impl.topology.gpus.size() && to < impl.topology.gpus.size() &&
              impl.topology.node_of_rank(from) != impl.topology.node_of_rank(to)
          ? 2
          : 1;
  // Sprayed routes have thousands of hops: those of all pairs of a large cluster do not fit.
  constexpr std::size_t most_hops = 2'000'000;
  if (impl.hops_of_pairs > most_hops) {
    impl.pairs.clear();
    impl.hops_of_pairs = 0;
  }
  std::unique_ptr<Impl::Pair>& pair = impl.pairs[std::uint64_t{from} << 32 | to];
  if (!pair) {
    check_call(impl.topology, call);
    auto made = std::make_unique<Impl::Pair>();
    Route route = impl.router.route(from, to);
    const GpuModel& gpu = impl.topology.gpu_model(from);
    const LinkClass link = route.kind == PathKind::Pcie ? pcie_class() : scale_up_class(gpu);
    const RuleQuery query{CollectiveOp::SendRecv,
                          AlgorithmId::Direct,
                          Protocol::Simple,
                          gpu.architecture,
                          gpu.name,
                          &link,
                          domains};
    impl.hops_of_pairs += route.hops.size();
    made->pattern.payload = std::move(route.hops);
    made->pattern.steps = 1;
    made->pattern.longest_latency = route.latency;
    made->pattern.mean_network_latency = domains > 1 ? route.latency : Duration{};
    (domains > 1 ? made->pattern.network_hops : made->pattern.domain_hops) = 1;
    Candidate& candidate = made->candidate;
    candidate.algorithm = AlgorithmId::Direct;
    candidate.protocol = Protocol::Simple;
    candidate.pattern = &made->pattern;
    candidate.latency = first_rule(impl.library.latencies, query);
    if (candidate.latency == nullptr) {
      throw InputError(fmt::format("{} {} has no latency for a message from GPU {} to GPU {}",
                                   impl.library.name, impl.library.version, from, to));
    }
    candidate.issue = impl.issue_time(domains > 1 ? 1 : 2);
    candidate.channels = impl.channels(GroupFacts{}, TunerGraphs{}, query);
    GroupFacts facts;
    facts.domains = domains;
    impl.rate(candidate, query, facts, 1.0);
    pair = std::move(made);
  }
  CollectivePlan plan = impl.plan(pair->candidate, call, 1.0);
  impl.attach_loads(pair->candidate, plan);
  return plan;
}

}  // namespace flyover
