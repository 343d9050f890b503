#include "simulate/pair_loaders.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "flyover/base/error.hpp"
#include "simulate/plans.hpp"

namespace flyover {

namespace {

class PairLoaders {
 public:
  PairLoaders(const JointContext& context, LoaderWriter& writer, JointGraph& out)
      : context_(context),
        writer_(writer),
        out_(out) {}

  void add() {
    for (const auto& pattern : context_.messages.patterns) {
      std::vector<Bytes>& all = sizes_.emplace_back();
      for (const MessagePattern& message : pattern) {
        if (std::ranges::find(all, message.bytes) == all.end()) all.push_back(message.bytes);
      }
    }
    out_.pairs.resize(context_.messages.pairs.size());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> own;  // Receiver block, pair.
    for (std::uint32_t p = 0; p < context_.messages.pairs.size();) {
      own.clear();
      const std::uint32_t from = context_.blocks.of_rank(context_.messages.pairs[p].from);
      for (; p < context_.messages.pairs.size() &&
             context_.blocks.of_rank(context_.messages.pairs[p].from) == from;
           ++p) {
        own.emplace_back(context_.blocks.of_rank(context_.messages.pairs[p].to), p);
      }
      std::ranges::sort(own);
      for (auto first = own.begin(); first != own.end();) {
        auto last = first;
        while (last != own.end() && last->first == first->first) ++last;
        add_pairs_between(from, first->first, {first, last});
        first = last;
      }
    }
  }

 private:
  // What pairs have in common whose messages differ in their places only, where routes are sprayed.
  struct RouteShape {
    std::uint32_t colour = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> loads;    // Place (places_of) and label.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> bundles;  // Node and label.
  };

  void add_pairs_between(std::uint32_t from, std::uint32_t to,
                         std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
    writer_.footing().clear();
    Digest lie;
    writer_.footing().add(from, lie);
    writer_.footing().add(to, lie);
    for (const auto& [unused, p] : pairs) {
      const RankPair& pair = context_.messages.pairs[p];
      lie.add(pair.pattern);
      lie.add(std::uint64_t{pair.from - context_.blocks.first_rank(from)} << 32 |
              (pair.to - context_.blocks.first_rank(to)));
    }
    std::uint32_t loader = 0;
    if (context_.blocks.levels() > 0) {
      const auto [shape, fresh] = pair_shapes_.try_emplace(lie);
      if (fresh) shape->second = planned_pairs(pairs);
      loader =
          writer_.add_loader(shape->second.parts, *shape->second.edges, writer_.footing().blocks());
    } else {
      const LoaderShape shape = routed_pairs(pairs);
      loader = writer_.add_loader(shape.parts, *shape.edges, writer_.footing().blocks());
    }
    for (std::uint32_t j = 0; j < pairs.size(); ++j) out_.pairs[pairs[j].second] = {loader, j};
  }

  void touch_ends(Touches& touches, std::uint32_t part, const RankPair& pair) const {
    for (const auto& [rank, label] : {std::pair(pair.from, From), std::pair(pair.to, To)}) {
      const std::uint32_t block = context_.blocks.of_rank(rank);
      touches.push_back({{.kind = Spot::Kind::Block, .number = writer_.footing().number(block)},
                         {part, label, rank - context_.blocks.first_rank(block)}});
    }
  }

  LoaderShape planned_pairs(std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
    Touches touches;
    std::vector<std::uint32_t> colours;
    for (std::uint32_t j = 0; j < pairs.size(); ++j) {
      const RankPair& pair = context_.messages.pairs[pairs[j].second];
      touch_ends(touches, j, pair);
      colours.push_back(plan_messages(pair));
      for (std::uint32_t s = 0; s < plans_.size(); ++s) {
        const std::array<std::uint32_t, 2> ends{pair.from, pair.to};
        for (const Load& load : loads_of(context_.topology, context_.resources, plans_[s], ends)) {
          const auto [spot, item] = writer_.spot_of(load.resource);
          require(spot.kind != Spot::Kind::Node, "a message in a tree loads what is at its ends");
          touches.push_back({spot, {j, writer_.load_label(s, writer_.weight(load.weight)), item}});
        }
      }
    }
    return {writer_.parts_of(colours), std::make_shared<const Edges>(writer_.edges_of(touches))};
  }

  // The plans of a pair's messages by different loads, in plans_. Returns the part's colour.
  std::uint32_t plan_messages(const RankPair& pair) {
    Digest facts;
    facts.add(PairPart);
    facts.add(pair.pattern);
    plans_.clear();
    for (const Bytes bytes : sizes_[pair.pattern]) {
      CollectivePlan plan = context_.cost.point_to_point(pair.from, pair.to, bytes);
      const auto set = std::ranges::find_if(
          plans_, [&](const CollectivePlan& other) { return same_loads(other, plan); });
      writer_.add_plan(facts, plan, static_cast<std::uint64_t>(set - plans_.begin()));
      if (set == plans_.end()) plans_.push_back(std::move(plan));
    }
    return writer_.colour(facts);
  }

  // Where the fabric is no tree: by the outlines of their routes.
  LoaderShape routed_pairs(std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
    Touches touches;
    std::vector<std::uint32_t> colours;
    for (std::uint32_t j = 0; j < pairs.size(); ++j) {
      const RankPair& pair = context_.messages.pairs[pairs[j].second];
      touch_ends(touches, j, pair);
      const RouteOutline route = context_.cost.router().outline(pair.from, pair.to);
      const auto [shape, fresh] = route_shapes_.try_emplace(facts_of(pair, route));
      if (fresh) shape->second = route_shape(pair, route);
      colours.push_back(shape->second.colour);
      const std::vector<ResourceId> places = places_of(pair, route);
      for (const auto& [place, label] : shape->second.loads) {
        const auto [spot, item] = writer_.spot_of(places[place]);
        touches.push_back({spot, {j, label, item}});
      }
      for (const auto& [node, label] : shape->second.bundles) {
        touches.push_back({{.number = node}, {j, label, 0}});
      }
    }
    return {writer_.parts_of(colours), std::make_shared<const Edges>(writer_.edges_of(touches))};
  }

  // What the plans of a pair's messages depend on besides the pattern: all but which links they
  // are.
  Digest facts_of(const RankPair& pair, const RouteOutline& route) {
    Digest facts;
    facts.add(pair.pattern);
    facts.add(std::uint64_t{context_.resources.gpu_kind(pair.from)} << 32 |
              context_.resources.gpu_kind(pair.to));
    facts.add(context_.blocks.of_rank(pair.from) == context_.blocks.of_rank(pair.to) ? 1U : 0U);
    facts.add(static_cast<std::uint64_t>(route.latency.count()));
    facts.add(std::uint64_t{route.switch_hops} << 32 | static_cast<std::uint64_t>(route.kind) << 1 |
              (route.relayed ? 1U : 0U));
    facts.add(route.sprayed);
    for (const Hop& hop : route.hops) {
      const Link& link = context_.topology.links[hop.link];
      const auto place = context_.blocks.place(ClusterResources::of(hop.link));
      facts.add(static_cast<std::uint64_t>(link.kind));
      facts.add(std::bit_cast<std::uint64_t>(link.bandwidth.per_second()));
      facts.add(writer_.weight(hop.share));
      facts.add(place ? context_.blocks.kind(place->block) : absent);
    }
    return facts;
  }

  // The resources that a message loads, but for links that it is sprayed over.
  [[nodiscard]] std::vector<ResourceId> places_of(const RankPair& pair,
                                                  const RouteOutline& route) const {
    std::vector<ResourceId> places{
        context_.resources.sms(pair.from), context_.resources.hbm(pair.from),
        context_.resources.sms(pair.to), context_.resources.hbm(pair.to)};
    for (const Hop& hop : route.hops) places.push_back(ClusterResources::of(hop.link));
    return places;
  }

  // Routes of one shape differ in their places only, one by one, and share what they are sprayed
  // over: the plans of one of them tell those of all.
  RouteShape route_shape(const RankPair& pair, const RouteOutline& route) {
    RouteShape shape;
    shape.colour = plan_messages(pair);
    const std::vector<ResourceId> places = places_of(pair, route);
    const std::array<std::uint32_t, 2> ends{pair.from, pair.to};
    for (std::uint32_t s = 0; s < plans_.size(); ++s) {
      bundle_.clear();
      for (const Load& load : loads_of(context_.topology, context_.resources, plans_[s], ends)) {
        const std::uint32_t weight = writer_.weight(load.weight);
        const auto place = std::ranges::find(places, load.resource) - places.begin();
        if (place == std::ssize(places)) {
          bundle_.emplace_back(writer_.fabric_node(ClusterResources::link_of(load.resource)),
                               weight);
        } else {
          shape.loads.emplace_back(static_cast<std::uint32_t>(place),
                                   writer_.load_label(s, weight));
        }
      }
      if (!bundle_.empty())
        shape.bundles.emplace_back(writer_.bundle(bundle_), writer_.load_label(s, 0));
    }
    return shape;
  }

  const JointContext& context_;
  LoaderWriter& writer_;
  JointGraph& out_;
  std::vector<std::vector<Bytes>> sizes_;  // Of messages, by pattern.
  std::map<Digest, LoaderShape> pair_shapes_;
  std::map<Digest, RouteShape> route_shapes_;
  std::vector<CollectivePlan> plans_;  // Of a pair's messages.
  // The fabric's links of a plan, with the numbers of weights.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundle_;
};

}  // namespace

void add_pair_loaders(const JointContext& context, LoaderWriter& writer, JointGraph& out) {
  PairLoaders(context, writer, out).add();
}

}  // namespace flyover
