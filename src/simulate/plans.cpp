#include "simulate/plans.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "flyover/base/error.hpp"
#include "simulate/likeness.hpp"

namespace flyover {

std::vector<Load> loads_of(const Topology& topology, const ClusterResources& resources,
                           const CollectivePlan& plan, std::span<const std::uint32_t> ranks,
                           double local_copies) {
  std::vector<Load> loads;
  loads.reserve(plan.loads->size() + 2 * ranks.size());
  double rate = plan.rate_cap;
  for (const Hop& hop : *plan.loads) {
    const ResourceId r = ClusterResources::of(hop.link);
    loads.emplace_back(r, hop.share);
    rate = std::min(rate, resources.capacity(r) / hop.share);
  }
  const auto load_of = [&](LinkId link) {
    const auto found = std::ranges::lower_bound(*plan.loads, link, {}, &Hop::link);
    return found != plan.loads->end() && found->link == link ? found->share : 0.0;
  };
  for (const std::uint32_t rank : ranks) {
    const VertexId gpu = topology.gpus[rank];
    double traffic = local_copies;
    for (const LinkId link : topology.out(gpu)) traffic += load_of(link);
    for (const LinkId link : topology.in(gpu)) traffic += load_of(link);
    if (traffic == 0) continue;
    const double sms = std::min<double>(plan.channels, topology.gpu_model(rank).sms);
    if (rate < std::numeric_limits<double>::infinity() && !holds_sms(plan)) {
      loads.emplace_back(resources.sms(rank), sms / rate);
    }
    loads.emplace_back(resources.hbm(rank), traffic);
  }
  return loads;
}

std::vector<std::uint32_t> named_ranks(const Blocks& blocks, const CollectivePlan& plan,
                                       std::span<const std::uint32_t> ranks) {
  if (!plan.fold) return {ranks.begin(), ranks.end()};
  const std::vector<std::uint32_t> domains = distinct_blocks(blocks, ranks);
  std::set<std::uint32_t> named;
  for (const std::uint32_t domain : plan.fold->first) named.insert(domains[domain]);
  std::vector<std::uint32_t> own;
  for (const std::uint32_t rank : ranks) {
    if (named.contains(blocks.of_rank(rank))) own.push_back(rank);
  }
  return own;
}

PatternTracer PlanCache::tracer(const PlayedGroup& group) const {
  if (!cast_.reduction) return nullptr;
  return cast_.reduction->tracer(group.planned_on);
}

const PreparedCall& PlanCache::collective(const Operation& op, std::uint32_t group) {
  const std::uint64_t id = std::uint64_t{op.group} << 32 | group;
  const auto [entry, fresh] =
      calls_.try_emplace(Key{id, op.collective, op.bytes.count(), op.dtype, op.root, op.exchange});
  if (!fresh) return entry->second;
  const PlayedGroup& played = cast_.groups[op.group][group];
  PreparedCall& prepared = entry->second;
  PlannedCall planned = planner_.plan(op, played.to_plan_on(), tracer(played));
  prepared.plan = std::move(planned.plan);
  prepared.experts = planned.experts;
  auto& set = sets_[{id, prepared.plan.loads, prepared.plan.channels, prepared.plan.rate_cap}];
  if (!set) {
    set = cast_.reduction ? group_loads(prepared, played)
                          : own_loads(prepared, played.ranks, played.count);
  }
  prepared.set = set;
  return prepared;
}

std::vector<CollectivePlan> PlanCache::alternatives(const Operation& op,
                                                    std::uint32_t group) const {
  const PlayedGroup& played = cast_.groups[op.group][group];
  return planner_.alternatives(op, played.to_plan_on(), tracer(played));
}

std::vector<ExpertAlternative> PlanCache::other_modes(const Operation& op,
                                                      std::uint32_t group) const {
  return planner_.other_modes(op, cast_.groups[op.group][group].to_plan_on());
}

const PreparedCall& PlanCache::message(const MatchedMessage& message) {
  const auto [entry, fresh] =
      messages_.try_emplace({message.from_gpu, message.to_gpu, message.bytes.count()});
  if (fresh) {
    entry->second.plan = cost_.point_to_point(message.from_gpu, message.to_gpu, message.bytes);
    const std::array<std::uint32_t, 2> ends{message.from_gpu, message.to_gpu};
    entry->second.set = own_loads(entry->second, ends, message.count);
  }
  return entry->second;
}

// Of ranks on which the plan was made.
std::shared_ptr<const LoadSet> PlanCache::own_loads(const PreparedCall& call,
                                                    std::span<const std::uint32_t> ranks,
                                                    std::uint32_t count) const {
  std::vector<ManyLoads> all;
  for (const Load& load :
       loads_of(topology_, resources_, call.plan, ranks, local_copies(call.experts))) {
    all.push_back({load, 1});
    all.back().load.resource = cast_.stand_in(load.resource);
  }
  return merged(std::move(all), count);
}

// The plan was made on ranks that lie alike.
std::shared_ptr<const LoadSet> PlanCache::group_loads(const PreparedCall& call,
                                                      const PlayedGroup& group) const {
  const CollectivePlan& plan = call.plan;
  const Blocks& blocks = cast_.reduction->blocks();
  const Likeness likeness(blocks, group.planned_on, group.ranks);
  std::vector<ManyLoads> all;
  std::vector<Load> in_domains;
  for (const Load& load :
       loads_of(topology_, resources_, plan, named_ranks(blocks, plan, group.planned_on),
                local_copies(call.experts))) {
    if (plan.fold && blocks.place(load.resource)) {
      in_domains.push_back(load);
      continue;
    }
    all.push_back({load, 1});
    all.back().load.resource = cast_.stand_in(likeness(load.resource));
  }
  if (plan.fold) unfold(*plan.fold, in_domains, group, all);
  return merged(std::move(all), group.count);
}

// What a plan loads in a domain it loads in all domains of its kind, of which those of one class
// are carried over at once.
void PlanCache::unfold(const DomainFold& fold, std::span<const Load> loads,
                       const PlayedGroup& group, std::vector<ManyLoads>& all) const {
  const Blocks& blocks = cast_.reduction->blocks();
  const std::vector<std::uint32_t> planned = distinct_blocks(blocks, group.planned_on);
  std::map<std::uint32_t, std::uint32_t> kind_of_block;
  for (std::uint32_t k = 0; k < fold.first.size(); ++k) kind_of_block[planned[fold.first[k]]] = k;
  std::vector<std::vector<std::pair<std::uint32_t, Load>>> by_kind(fold.first.size());  // By place.
  for (const Load& load : loads) {
    const BlockPlace place = *blocks.place(load.resource);
    by_kind[kind_of_block.at(place.block)].emplace_back(place.index, load);
  }
  struct Alike {
    std::uint32_t block = 0;  // The first of them.
    std::uint64_t times = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Alike> domains;  // By class and kind.
  const std::vector<std::uint32_t> own = distinct_blocks(blocks, group.ranks);
  for (std::uint32_t d = 0; d < own.size(); ++d) {
    const std::uint32_t c = cast_.reduction->quotient().class_of_block(own[d]);
    ++domains.try_emplace({c, fold.kind[d]}, Alike{own[d], 0}).first->second.times;
  }
  for (const auto& [key, alike] : domains) {
    for (const auto& [index, load] : by_kind[key.second]) {
      all.push_back({load, alike.times});
      all.back().load.resource = cast_.stand_in(*blocks.resource({alike.block, index}));
    }
  }
}

// The loads of one of `count` calls that are alike, made those of all of them on stand-ins. Every
// resource that a stand-in stands for carries the same loads (rank_classes.hpp), so that those of
// one are all loads on the class, divided by the size of the class.
std::shared_ptr<const LoadSet> PlanCache::merged(std::vector<ManyLoads> loads,
                                                 std::uint32_t count) const {
  auto set = std::make_shared<LoadSet>();
  std::array<double, link_classes> by_class{};
  for (const ManyLoads& many : loads) {
    const std::size_t c = resources_.class_of(cast_.resources[index(many.load.resource)].first);
    if (c < link_classes) by_class[c] += many.load.weight * static_cast<double>(many.times);
  }
  for (std::uint32_t c = 0; c < link_classes; ++c) {
    if (by_class[c] > 0) set->classes.push_back({c, by_class[c] * count});
  }
  if (!cast_.reduction) {
    for (const ManyLoads& many : loads) set->loads.push_back(many.load);
    return set;
  }
  std::ranges::sort(loads, [](const ManyLoads& a, const ManyLoads& b) {
    return a.load.resource != b.load.resource ? a.load.resource < b.load.resource
                                              : a.load.weight > b.load.weight;
  });
  for (auto first = loads.begin(); first != loads.end();) {
    std::uint64_t streams = 0;
    double sum = 0;
    auto last = first;
    for (; last != loads.end() && last->load.resource == first->load.resource; ++last) {
      const std::uint64_t times = last->times * count;
      streams += times;
      sum += last->load.weight * static_cast<double>(times);
    }
    const std::uint32_t members = cast_.resources[index(first->load.resource)].count;
    require(streams % members == 0, "resources of a class carry equally many streams of a class");
    const auto twins = static_cast<std::uint32_t>(streams / members - 1);
    // The heaviest decides what a stream can be offered there.
    const double twin_weight = twins == 0 ? 0 : sum / members - first->load.weight;
    set->loads.emplace_back(first->load.resource, first->load.weight, twins, twin_weight);
    first = last;
  }
  return set;
}

}  // namespace flyover
