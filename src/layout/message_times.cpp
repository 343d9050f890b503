#include "flyover/layout/message_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "flyover/base/error.hpp"
#include "flyover/layout/group_kind.hpp"
#include "flyover/moe/planner.hpp"
#include "layout/place.hpp"

namespace flyover {

namespace {

using Ranks = std::vector<std::uint32_t>;

// What a family of groups looks like: layouts with equal keys have the same groups around the first
// node.
using GeometryKey = std::array<std::uint32_t, 12>;

GeometryKey geometry_key(const Layout& layout, GroupKind kind) {
  GeometryKey key{};
  const auto dense = dense_sizes(layout);
  const auto experts = expert_sizes(layout);
  std::size_t at = 0;
  const auto line = [&](const Sizes& sizes, Dimension dimension) {
    key[at++] = stride(layout, sizes, dimension);
    key[at++] = size_of(sizes, dimension);
  };
  switch (kind) {
    case GroupKind::Tensor:
      line(dense, Dimension::Tensor);
      break;
    case GroupKind::Context:
      line(dense, Dimension::Context);
      break;
    case GroupKind::Expert:
      line(experts, Dimension::Expert);
      break;
    case GroupKind::ExpertTensor:
      line(experts, Dimension::Tensor);
      break;
    case GroupKind::Pipeline:
      line(dense, Dimension::Pipeline);
      break;
    case GroupKind::Shard:
    case GroupKind::Replica:
      line(dense, Dimension::Data);
      line(dense, Dimension::Context);
      key[at++] = group_size(layout, kind);
      key[at++] = kind == GroupKind::Replica ? 1 : 0;
      if (goes_both_ways(layout.schedule)) line(dense, Dimension::Pipeline);
      break;
    case GroupKind::ExpertShard:
    case GroupKind::ExpertReplica:
      line(experts, Dimension::Data);
      key[at++] = group_size(layout, kind);
      key[at++] = kind == GroupKind::ExpertReplica ? 1 : 0;
      if (goes_both_ways(layout.schedule)) line(experts, Dimension::Pipeline);
      break;
    case GroupKind::Embedding:
    case GroupKind::Model:
      line(dense, Dimension::Tensor);
      line(dense, Dimension::Context);
      line(dense, Dimension::Pipeline);
      line(dense, Dimension::Data);
      key[at++] = static_cast<std::uint32_t>(kind);
      key[at++] = group_size(layout, kind);
      key[at++] = static_cast<std::uint32_t>(layout.schedule);
      break;
  }
  key.back() = ranks(layout);
  return key;
}

// Seconds per byte that plans take of links. Empty again after clear().
class Busy {
 public:
  explicit Busy(const Topology& topology)
      : topology_(&topology),
        seconds_(topology.links.size(), 0.0) {}

  void add(const std::vector<Hop>& loads) {
    for (const Hop& load : loads) {
      double& seconds = seconds_[index(load.link)];
      if (seconds == 0) touched_.push_back(load.link);
      seconds += load.share / topology_->links[load.link].bandwidth.per_second();
    }
  }
  // The most that any of these links has to do.
  [[nodiscard]] double most(const std::vector<Hop>& loads) const {
    double result = 0;
    for (const Hop& load : loads) result = std::max(result, seconds_[index(load.link)]);
    return result;
  }
  void clear() {
    for (const LinkId link : touched_) seconds_[index(link)] = 0;
    touched_.clear();
  }

 private:
  const Topology* topology_;
  std::vector<double> seconds_;
  std::vector<LinkId> touched_;
};

}  // namespace

struct MessageTimes::Impl {
  const Topology* topology;
  const CostModel* cost;
  ExpertPlanner planner;
  std::uint32_t node_gpus;  // Of the first node.
  Busy busy;

  Impl(const Topology& the_topology, const CostModel& the_cost)
      : topology(&the_topology),
        cost(&the_cost),
        planner(the_topology, the_cost),
        node_gpus(the_topology.nodes[NodeId{0}].gpus),
        busy(the_topology) {}

  // Groups around the first node, one of each shape being asked in detail.
  struct Family {
    std::vector<Ranks> groups;
    std::vector<std::size_t> shapes;  // Indices into groups.
    // By operation, algorithm, protocol and channels: how much slower bytes flow than alone.
    std::map<std::array<std::uint32_t, 5>, double> crowding;
    std::map<std::pair<std::uint32_t, std::int64_t>, Duration> times;  // By operation and bytes.
    // By exchange, which is kept, since the planner knows it by its address.
    std::map<std::pair<std::shared_ptr<const ExpertExchange>, CollectiveOp>, Duration> exchanges;
  };
  std::map<GeometryKey, Family> families;
  std::map<std::pair<GeometryKey, std::int64_t>, StageHop> hops;

  // Where a group's ranks lie, nodes numbered as they come.
  [[nodiscard]] Ranks signature(const Ranks& group) const {
    Ranks result;
    std::map<NodeId, std::uint32_t> seen;
    for (const std::uint32_t rank : group) {
      const NodeId node = topology->node_of_rank(rank);
      const auto number =
          seen.try_emplace(node, static_cast<std::uint32_t>(seen.size())).first->second;
      result.push_back(number);
    }
    return result;
  }

  Family& family(const Layout& layout, GroupKind kind) {
    const GeometryKey key = geometry_key(layout, kind);
    const auto found = families.find(key);
    if (found != families.end()) return found->second;
    Family& made = families[key];
    const std::uint32_t near = std::min(node_gpus, ranks(layout));
    std::vector<bool> taken(near, false);
    const auto take = [&](std::uint32_t rank) {
      Ranks group = group_of(layout, kind, rank);
      for (const std::uint32_t member : group) {
        if (member < near) taken[member] = true;
      }
      if (group.size() > 1) made.groups.push_back(std::move(group));
    };
    for (std::uint32_t rank = 0; rank < near; ++rank) {
      if (!taken[rank]) take(rank);
    }
    // Where group sizes do not divide the node's, the last ranks may lie otherwise.
    if (ranks(layout) > near && node_gpus % layout.tensor != 0) {
      take(ranks(layout) - 1);
    }
    std::map<Ranks, std::size_t> shapes;
    for (std::size_t i = 0; i < made.groups.size(); ++i) {
      if (shapes.try_emplace(signature(made.groups[i]), i).second) made.shapes.push_back(i);
    }
    return made;
  }

  // Groups that share links with this one at the same time: by how much bytes flow slower.
  double crowding(Family& family, std::size_t which, CollectiveOp op, Bytes bytes,
                  const CollectivePlan& plan) {
    if (family.groups.size() == 1 || !plan.loads || plan.loads->empty()) return 1;
    const std::array<std::uint32_t, 5> key = {
        static_cast<std::uint32_t>(which), static_cast<std::uint32_t>(op),
        static_cast<std::uint32_t>(plan.algorithm), static_cast<std::uint32_t>(plan.protocol),
        plan.channels};
    const auto found = family.crowding.find(key);
    if (found != family.crowding.end()) return found->second;
    busy.add(*plan.loads);
    for (std::size_t i = 0; i < family.groups.size(); ++i) {
      if (i == which) continue;
      const CollectivePlan other =
          cost->plan({.op = op, .bytes = bytes, .dtype = {}, .ranks = family.groups[i]});
      if (other.loads) busy.add(*other.loads);
    }
    const double shared = busy.most(*plan.loads);
    busy.clear();
    // What limits it alone may be no link.
    const double flowing = to_seconds(plan.alone - plan.startup);
    const double alone = flowing / static_cast<double>(bytes.count());
    const double factor = alone > 0 ? std::max(1.0, shared / alone) : 1;
    family.crowding.emplace(key, factor);
    return factor;
  }

  Duration time(Family& family, CollectiveOp op, Bytes bytes) {
    if (family.groups.empty() || bytes <= Bytes{}) return {};
    const std::pair<std::uint32_t, std::int64_t> key{static_cast<std::uint32_t>(op), bytes.count()};
    const auto found = family.times.find(key);
    if (found != family.times.end()) return found->second;
    Duration slowest{};
    for (const std::size_t which : family.shapes) {
      const CollectivePlan plan =
          cost->plan({.op = op, .bytes = bytes, .dtype = {}, .ranks = family.groups[which]});
      const double factor = crowding(family, which, op, bytes, plan);
      const double flowing = to_seconds(plan.alone - plan.startup);
      slowest = std::max(slowest, plan.startup + from_seconds(flowing * factor));
    }
    family.times.emplace(key, slowest);
    return slowest;
  }

  // Of kernels of their own, all groups at once.
  Duration time(Family& family, const Message& message) {
    if (family.groups.empty()) return {};
    const auto [place, is_new] = family.exchanges.try_emplace({message.exchange, message.op});
    if (!is_new) return place->second;
    const auto plan = [&](std::size_t which) -> const CollectivePlan& {
      return planner.plan(*message.exchange, message.op, family.groups[which]).plan;
    };
    for (std::size_t i = 0; i < family.groups.size(); ++i) {
      if (plan(i).loads) busy.add(*plan(i).loads);
    }
    Duration slowest{};
    for (const std::size_t which : family.shapes) {
      const CollectivePlan& own = plan(which);
      const double shared = own.loads ? busy.most(*own.loads) : 0;
      const double flowing = std::max(to_seconds(own.alone - own.startup),
                                      shared * static_cast<double>(message.bytes.count()));
      slowest = std::max(slowest, own.startup + from_seconds(flowing));
    }
    busy.clear();
    place->second = slowest;
    return slowest;
  }

  // All ranks near the first one of a stage send to the next stage: the slowest of them.
  Duration boundary(const Layout& layout, std::uint32_t stage, Bytes bytes) {
    const std::uint32_t near = std::min(node_gpus, ranks(layout));
    const std::uint32_t first = rank_in_stage(layout, 0, stage);
    std::vector<CollectivePlan> plans;
    for (std::uint32_t i = 0; i < near; ++i) {
      const std::uint32_t from = first - first % near + i;
      if (from >= ranks(layout) || stage_of_rank(layout, from) != stage) continue;
      plans.push_back(cost->point_to_point(from, rank_in_stage(layout, from, stage + 1), bytes));
      if (plans.back().loads) busy.add(*plans.back().loads);
    }
    Duration slowest{};
    for (const CollectivePlan& plan : plans) {
      const double shared = plan.loads ? busy.most(*plan.loads) : 0;
      const double flowing = std::max(to_seconds(plan.alone - plan.startup),
                                      shared * static_cast<double>(bytes.count()));
      slowest = std::max(slowest, plan.startup + from_seconds(flowing));
    }
    busy.clear();
    return slowest;
  }

  StageHop hop(const Layout& layout, Bytes bytes) {
    const std::uint32_t boundaries = layout.pipeline - 1;
    const std::uint32_t near = std::min(node_gpus, ranks(layout));
    // Boundaries at the same place of a node, both within it or both across, are alike.
    std::map<std::pair<std::uint32_t, bool>, Duration> known;
    StageHop result;
    double sum = 0;
    for (std::uint32_t stage = 0; stage < boundaries; ++stage) {
      const std::uint32_t from = rank_in_stage(layout, 0, stage);
      const std::uint32_t to = rank_in_stage(layout, 0, stage + 1);
      const bool within = topology->node_of_rank(from) == topology->node_of_rank(to);
      const auto [place, is_new] = known.try_emplace({from % near, within});
      if (is_new) place->second = boundary(layout, stage, bytes);
      sum += to_seconds(place->second);
      result.slowest = std::max(result.slowest, place->second);
    }
    result.mean = from_seconds(sum / boundaries);
    return result;
  }
};

MessageTimes::MessageTimes(const Topology& topology, const CostModel& cost)
    : impl_(std::make_unique<Impl>(topology, cost)) {}
MessageTimes::~MessageTimes() = default;
MessageTimes::MessageTimes(MessageTimes&&) noexcept = default;

Duration MessageTimes::time(const Layout& layout, const Message& message) const {
  require(ranks(layout) <= impl_->topology->gpus.size(), "a layout that the cluster has GPUs for");
  auto& family = impl_->family(layout, message.group);
  const Duration once = message.exchange ? impl_->time(family, message)
                                         : impl_->time(family, message.op, message.bytes);
  return once * message.count;
}

StageHop MessageTimes::hop(const Layout& layout, Bytes bytes) const {
  if (layout.pipeline == 1 || bytes <= Bytes{}) return {};
  const std::pair<GeometryKey, std::int64_t> key{geometry_key(layout, GroupKind::Pipeline),
                                                 bytes.count()};
  const auto found = impl_->hops.find(key);
  if (found != impl_->hops.end()) return found->second;
  return impl_->hops.emplace(key, impl_->hop(layout, bytes)).first->second;
}

}  // namespace flyover
