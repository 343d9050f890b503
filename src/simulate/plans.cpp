#include "simulate/plans.hpp"

#include <algorithm>
#include <array>

namespace flyover {

const PreparedCall& PlanCache::collective(std::uint64_t group, const CollectiveCall& call) {
  const auto [entry, fresh] =
      calls_.try_emplace(Key{group, call.op, call.bytes.count(), call.dtype, call.root});
  if (fresh) {
    entry->second.choice = cost_.choose(call);
    entry->second.set = loads(entry->second.choice.plan, call.ranks);
  }
  return entry->second;
}

const PreparedCall& PlanCache::message(std::uint32_t from, std::uint32_t to, Bytes bytes) {
  const auto [entry, fresh] = messages_.try_emplace({from, to, bytes.count()});
  if (fresh) {
    entry->second.choice.plan = cost_.point_to_point(from, to, bytes);
    const std::array<std::uint32_t, 2> ends{from, to};
    entry->second.set = loads(entry->second.choice.plan, ends);
  }
  return entry->second;
}

std::shared_ptr<const LoadSet> PlanCache::loads(const CollectivePlan& plan,
                                                std::span<const std::uint32_t> ranks) {
  const auto [entry, fresh] = sets_.try_emplace({plan.loads, plan.channels, plan.rate_cap});
  if (!fresh) return entry->second;

  auto set = std::make_shared<LoadSet>();
  std::array<double, link_classes> by_class{};
  double rate = plan.rate_cap;
  for (const Hop& hop : *plan.loads) {
    const ResourceId r = ClusterResources::of(hop.link);
    set->loads.push_back({r, hop.share});
    by_class[resources_.class_of(r)] += hop.share;
    rate = std::min(rate, fluid_.capacity(r) / hop.share);
  }
  for (std::uint32_t c = 0; c < link_classes; ++c) {
    if (by_class[c] > 0) set->classes.push_back({c, by_class[c]});
  }
  const auto load_of = [&](LinkId link) {
    const auto found = std::ranges::lower_bound(*plan.loads, link, {}, &Hop::link);
    return found != plan.loads->end() && found->link == link ? found->share : 0.0;
  };
  for (const std::uint32_t rank : ranks) {
    const VertexId gpu = topology_.gpus[rank];
    double traffic = 0;
    for (const LinkId link : topology_.out(gpu)) traffic += load_of(link);
    for (const LinkId link : topology_.in(gpu)) traffic += load_of(link);
    if (traffic == 0) continue;
    const double sms = std::min<double>(plan.channels, topology_.gpu_model(rank).sms);
    if (rate < std::numeric_limits<double>::infinity()) {
      set->loads.push_back({resources_.sms(rank), sms / rate});
    }
    set->loads.push_back({resources_.hbm(rank), traffic});
  }
  entry->second = std::move(set);
  return entry->second;
}

}  // namespace flyover
