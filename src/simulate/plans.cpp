#include "simulate/plans.hpp"

#include <algorithm>
#include <array>

#include "flyover/base/error.hpp"

namespace flyover {

std::vector<Load> loads_of(const Topology& topology, const ClusterResources& resources,
                           const CollectivePlan& plan, std::span<const std::uint32_t> ranks) {
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
    double traffic = 0;
    for (const LinkId link : topology.out(gpu)) traffic += load_of(link);
    for (const LinkId link : topology.in(gpu)) traffic += load_of(link);
    if (traffic == 0) continue;
    const double sms = std::min<double>(plan.channels, topology.gpu_model(rank).sms);
    if (rate < std::numeric_limits<double>::infinity()) {
      loads.emplace_back(resources.sms(rank), sms / rate);
    }
    loads.emplace_back(resources.hbm(rank), traffic);
  }
  return loads;
}

const PreparedCall& PlanCache::collective(std::uint64_t group, const CollectiveCall& call,
                                          std::uint32_t count) {
  const auto [entry, fresh] =
      calls_.try_emplace(Key{group, call.op, call.bytes.count(), call.dtype, call.root});
  if (fresh) {
    entry->second.choice = cost_.choose(call);
    entry->second.set = loads(entry->second.choice.plan, call.ranks, count);
  }
  return entry->second;
}

const PreparedCall& PlanCache::message(const MatchedMessage& message) {
  const auto [entry, fresh] =
      messages_.try_emplace({message.from_gpu, message.to_gpu, message.bytes.count()});
  if (fresh) {
    entry->second.choice.plan =
        cost_.point_to_point(message.from_gpu, message.to_gpu, message.bytes);
    const std::array<std::uint32_t, 2> ends{message.from_gpu, message.to_gpu};
    entry->second.set = loads(entry->second.choice.plan, ends, message.count);
  }
  return entry->second;
}

std::shared_ptr<const LoadSet> PlanCache::loads(const CollectivePlan& plan,
                                                std::span<const std::uint32_t> ranks,
                                                std::uint32_t count) {
  const auto [entry, fresh] = sets_.try_emplace({plan.loads, plan.channels, plan.rate_cap, count});
  if (!fresh) return entry->second;

  auto set = std::make_shared<LoadSet>();
  std::array<double, link_classes> by_class{};
  for (const Hop& hop : *plan.loads) {
    by_class[resources_.class_of(ClusterResources::of(hop.link))] += hop.share;
  }
  for (std::uint32_t c = 0; c < link_classes; ++c) {
    if (by_class[c] > 0) set->classes.push_back({c, by_class[c] * count});
  }
  set->loads = on_stand_ins(loads_of(topology_, resources_, plan, ranks), count);
  entry->second = std::move(set);
  return entry->second;
}

// The loads of one of `count` calls that are alike, made those of all of them on stand-ins. Every
// resource that a stand-in stands for carries the same loads (rank_classes.hpp), so that those of
// one are all loads on the class, divided by the size of the class.
std::vector<Load> PlanCache::on_stand_ins(std::vector<Load> loads, std::uint32_t count) const {
  if (cast_.full()) return loads;
  for (Load& load : loads) load.resource = cast_.stand_in[load.resource];
  std::ranges::sort(loads, [](const Load& a, const Load& b) {
    return a.resource != b.resource ? a.resource < b.resource : a.weight > b.weight;
  });
  std::vector<Load> merged;
  for (auto first = loads.begin(); first != loads.end();) {
    std::uint64_t streams = 0;
    double sum = 0;
    auto last = first;
    for (; last != loads.end() && last->resource == first->resource; ++last) {
      streams += count;
      sum += last->weight * count;
    }
    const std::uint32_t members = cast_.stands_for[index(first->resource)];
    require(streams % members == 0, "resources of a class carry equally many streams of a class");
    const auto twins = static_cast<std::uint32_t>(streams / members - 1);
    // The heaviest decides what a stream can be offered there.
    const double twin_weight = twins == 0 ? 0 : sum / members - first->weight;
    merged.emplace_back(first->resource, first->weight, twins, twin_weight);
    first = last;
  }
  return merged;
}

}  // namespace flyover
