#include "simulate/joint_graph.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "simulate/plans.hpp"

namespace flyover {

namespace {

// Numbers for doubles, one for all that differ by rounding only.
class Weights {
 public:
  std::uint32_t operator()(double weight) {
    if (weight == last_weight_) return last_;
    last_weight_ = weight;
    return last_ = find(weight);
  }

 private:
  // Steps of 2^-40, about 1e-12, of which the neighbours are tried as well.
  std::uint32_t find(double weight) {
    constexpr unsigned dropped = 12;
    const std::uint64_t step =
        (std::bit_cast<std::uint64_t>(weight) + (std::uint64_t{1} << (dropped - 1))) >> dropped;
    for (const std::uint64_t near : {step, step - 1, step + 1}) {
      if (const auto known = known_.find(near); known != known_.end()) return known->second;
    }
    const auto fresh = static_cast<std::uint32_t>(known_.size());
    known_.emplace(step, fresh);
    return fresh;
  }

  std::unordered_map<std::uint64_t, std::uint32_t> known_;
  double last_weight_ = -1;
  std::uint32_t last_ = 0;
};

// Numbers for whatever compares.
template <class Key>
class Numbers {
 public:
  std::uint32_t operator()(const Key& key) {
    return known_.try_emplace(key, static_cast<std::uint32_t>(known_.size())).first->second;
  }

 private:
  std::map<Key, std::uint32_t> known_;
};

// Two lists of pairs with one digest are taken to be equal: see refine_colours.
using Digest = std::pair<std::uint64_t, std::uint64_t>;
Digest digest(std::span<const std::pair<std::uint32_t, std::uint32_t>> list) {
  Digest sum{0, list.size()};
  for (const auto& [a, b] : list) {
    const std::uint64_t item = std::uint64_t{a} << 32 | b;
    sum.first = mix_bits(sum.first ^ item ^ 0x9e3779b97f4a7c15U);
    sum.second = mix_bits(sum.second ^ item ^ 0xd1b54a32d192ed03U);
  }
  return sum;
}

using Facts = std::vector<std::uint64_t>;  // What is known of a node alone.
enum NodeKind : std::uint8_t { RankNode, ResourceNode, GroupNode, PairNode, BundleNode };

// Labels of edges that are no loads.
enum Label : std::uint32_t { Member, From, To, OwnSms, OwnHbm, first_load_label };

class Builder {
 public:
  Builder(const Topology& topology, const CostModel& cost, const ClusterResources& resources,
          const Workload& workload, const Ranks& ranks, const MessagePairs& messages)
      : topology_(topology),
        cost_(cost),
        resources_(resources),
        workload_(workload),
        ranks_(ranks),
        messages_(messages) {}

  JointGraph build() {
    out_.rank_count = ranks_.size();
    add_ranks();
    add_resources();
    for (std::uint32_t f = 0; f < workload_.groups.size(); ++f) add_groups(f);
    add_pairs();
    return std::move(out_);
  }

 private:
  // What pairs have in common whose messages differ in their places only.
  struct PairShape {
    Facts facts;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> loads;    // Place (places_of) and label.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> bundles;  // Node and label.
  };
  // The different calls of a program on a family.
  using Kinds = std::vector<const Operation*>;

  std::uint32_t add_node(const Facts& facts) {
    out_.colours.push_back(numbers_(facts));
    return static_cast<std::uint32_t>(out_.colours.size()) - 1;
  }
  void connect(std::uint32_t a, std::uint32_t b, std::uint32_t label) {
    out_.edges.push_back({a, b, label});
  }

  void add_ranks() {
    for (std::size_t m = 0; m < topology_.gpu_models.size(); ++m) {
      const auto first = std::ranges::find(topology_.gpu_models, topology_.gpu_models[m]);
      models_.push_back(static_cast<std::uint64_t>(first - topology_.gpu_models.begin()));
    }
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      add_node({RankNode, ranks_.program(r), model_of(r)});
      connect(r, out_.resource(resources_.sms(r)), OwnSms);
      connect(r, out_.resource(resources_.hbm(r)), OwnHbm);
    }
  }

  [[nodiscard]] std::uint64_t model_of(std::uint32_t rank) const {
    return models_[static_cast<std::size_t>(&topology_.gpu_model(rank) -
                                            topology_.gpu_models.data())];
  }

  void add_resources() {
    for (std::uint32_t i = 0; i < resources_.size(); ++i) {
      const ResourceId r{i};
      add_node({ResourceNode, resources_.class_of(r),
                std::bit_cast<std::uint64_t>(resources_.capacity(r))});
    }
  }

  void add_groups(std::uint32_t f) {
    std::vector<std::uint32_t> most_calls(workload_.programs.size());
    std::vector<Kinds> kinds(workload_.programs.size());
    for (std::size_t p = 0; p < kinds.size(); ++p) {
      for (const Operation& op : workload_.programs[p].ops) {
        if (op.kind != OpKind::Collective || op.group != f) continue;
        ++most_calls[p];
        const bool known = std::ranges::any_of(kinds[p], [&](const Operation* other) {
          return other->collective == op.collective && other->bytes == op.bytes &&
                 other->dtype == op.dtype && other->root == op.root;
        });
        if (!known) kinds[p].push_back(&op);
      }
    }
    std::vector<std::uint32_t>& nodes = out_.groups.emplace_back();
    for (const auto& group : workload_.groups[f].groups) {
      std::uint32_t calls = 0;
      std::uint32_t caller = absent;  // The first program with the most.
      for (const std::uint32_t rank : group) {
        const std::uint32_t p = ranks_.program(rank);
        if (p == absent || most_calls[p] <= calls) continue;
        calls = most_calls[p];
        caller = p;
      }
      nodes.push_back(caller == absent ? absent : add_group(f, group, caller, kinds[caller]));
    }
  }

  std::uint32_t add_group(std::uint32_t f, const std::vector<std::uint32_t>& group,
                          std::uint32_t caller, const Kinds& kinds) {
    // The first member's program says how slow the calls are.
    Facts facts{GroupNode, f, caller, ranks_.program(group.front()), group.size()};
    sets_.clear();
    if (group.size() > 1) {
      CollectiveCall call;
      call.ranks = group;
      for (const Operation* op : kinds) {
        call.op = op->collective;
        call.bytes = op->bytes;
        call.dtype = op->dtype;
        call.root = op->root;
        add_plan(cost_.choose(call).plan, facts);
      }
    }
    const std::uint32_t node = add_node(facts);
    for (const std::uint32_t rank : group) connect(node, rank, Member);
    add_loads(node, group);
    return node;
  }

  void add_pairs() {
    std::vector<std::vector<Bytes>> sizes;
    for (const auto& pattern : messages_.patterns) {
      std::vector<Bytes>& all = sizes.emplace_back();
      for (const MessagePattern& message : pattern) {
        if (std::ranges::find(all, message.bytes) == all.end()) all.push_back(message.bytes);
      }
    }
    for (const RankPair& pair : messages_.pairs) {
      const RouteOutline route = cost_.router().outline(pair.from, pair.to);
      const auto [shape, fresh] = shapes_.try_emplace(shape_of(pair, route));
      if (fresh) shape->second = add_shape(pair, route, sizes[pair.pattern]);
      const std::uint32_t node = add_node(shape->second.facts);
      out_.pairs.push_back(node);
      connect(node, pair.from, From);
      connect(node, pair.to, To);
      const std::vector<ResourceId> places = places_of(pair, route);
      for (const auto& [place, label] : shape->second.loads) {
        connect(node, out_.resource(places[place]), label);
      }
      for (const auto& [bundle, label] : shape->second.bundles) connect(node, bundle, label);
    }
  }

  // What the plans of a pair's messages depend on besides the pattern: all but which links they
  // are.
  Facts shape_of(const RankPair& pair, const RouteOutline& route) {
    const NodeId from = topology_.node_of_rank(pair.from);
    const NodeId to = topology_.node_of_rank(pair.to);
    Facts shape{pair.pattern,
                model_of(pair.from),
                model_of(pair.to),
                from == to ? 1U : 0U,
                static_cast<std::uint64_t>(route.latency.count()),
                route.switch_hops,
                static_cast<std::uint64_t>(route.kind),
                route.relayed ? 1U : 0U,
                route.sprayed};
    for (const Hop& hop : route.hops) {
      const Link& link = topology_.links[hop.link];
      const NodeId node = topology_.vertices[link.from].node;
      shape.insert(shape.end(),
                   {static_cast<std::uint64_t>(link.kind),
                    std::bit_cast<std::uint64_t>(link.bandwidth.per_second()), weights_(hop.share),
                    node == no_node ? absent : topology_.nodes[node].gpu_model});
    }
    return shape;
  }

  // The resources that a message loads, but for links that it is sprayed over.
  [[nodiscard]] std::vector<ResourceId> places_of(const RankPair& pair,
                                                  const RouteOutline& route) const {
    std::vector<ResourceId> places{resources_.sms(pair.from), resources_.hbm(pair.from),
                                   resources_.sms(pair.to), resources_.hbm(pair.to)};
    for (const Hop& hop : route.hops) places.push_back(ClusterResources::of(hop.link));
    return places;
  }

  // Routes of one shape differ in their places only, one by one, and share what they are sprayed
  // over: the plans of one of them tell those of all.
  PairShape add_shape(const RankPair& pair, const RouteOutline& route,
                      const std::vector<Bytes>& sizes) {
    PairShape shape;
    shape.facts = {PairNode, pair.pattern};
    sets_.clear();
    for (const Bytes bytes : sizes) {
      add_plan(cost_.point_to_point(pair.from, pair.to, bytes), shape.facts);
    }
    const std::vector<ResourceId> places = places_of(pair, route);
    const std::array<std::uint32_t, 2> ends{pair.from, pair.to};
    for (std::uint32_t s = 0; s < sets_.size(); ++s) {
      bundle_.clear();
      for (const Load& load : loads_of(topology_, resources_, sets_[s], ends)) {
        const std::uint32_t weight = weights_(load.weight);
        const auto place = std::ranges::find(places, load.resource) - places.begin();
        if (place == std::ssize(places)) {
          bundle_.emplace_back(out_.resource(load.resource), weight);
        } else {
          shape.loads.emplace_back(static_cast<std::uint32_t>(place), load_label(s, weight));
        }
      }
      if (!bundle_.empty()) shape.bundles.emplace_back(bundle(), load_label(s, 0));
    }
    return shape;
  }

  void add_plan(const CollectivePlan& plan, Facts& facts) {
    const auto same_loads = [&](const CollectivePlan& other) {
      return other.loads == plan.loads && other.channels == plan.channels &&
             other.rate_cap == plan.rate_cap;
    };
    const auto set = std::ranges::find_if(sets_, same_loads);
    facts.insert(
        facts.end(),
        {static_cast<std::uint64_t>(plan.algorithm), static_cast<std::uint64_t>(plan.protocol),
         plan.channels, static_cast<std::uint64_t>(plan.startup.count()), weights_(plan.rate_cap),
         static_cast<std::uint64_t>(set - sets_.begin())});
    if (set == sets_.end()) sets_.push_back(plan);
  }

  // Loads of different plans must not be taken for each other: their calls run at different times.
  void add_loads(std::uint32_t node, std::span<const std::uint32_t> ranks) {
    for (std::uint32_t s = 0; s < sets_.size(); ++s) {
      bundle_.clear();
      for (const Load& load : loads_of(topology_, resources_, sets_[s], ranks)) {
        const std::uint32_t weight = weights_(load.weight);
        if (inside_fabric(load.resource)) {
          bundle_.emplace_back(out_.resource(load.resource), weight);
        } else {
          connect(node, out_.resource(load.resource), load_label(s, weight));
        }
      }
      if (!bundle_.empty()) connect(node, bundle(), load_label(s, 0));
    }
  }

  [[nodiscard]] bool inside_fabric(ResourceId r) const {
    if (index(r) >= topology_.links.size()) return false;
    const Link& link = topology_.links[LinkId{static_cast<std::uint32_t>(index(r))}];
    return topology_.vertices[link.from].node == no_node &&
           topology_.vertices[link.to].node == no_node;
  }

  // A node between the plans that load the same links inside the fabric with the same weights and
  // those links: messages that are sprayed from one leaf to another over thousands of paths are
  // many, the paths are listed once. A partition that is equitable with such nodes is so without.
  std::uint32_t bundle() {
    const auto [entry, fresh] = bundles_.try_emplace(digest(bundle_), 0);
    if (fresh) {
      entry->second = add_node({BundleNode, bundle_.size()});
      for (const auto& [link, weight] : bundle_) {
        connect(entry->second, link, load_label(0, weight));
      }
    }
    return entry->second;
  }

  std::uint32_t load_label(std::uint32_t set, std::uint32_t weight) {
    if (set >= labels_.size()) labels_.resize(set + 1);
    std::vector<std::uint32_t>& by_weight = labels_[set];
    if (weight >= by_weight.size()) by_weight.resize(weight + 1, absent);
    if (by_weight[weight] == absent) by_weight[weight] = next_label_++;
    return by_weight[weight];
  }

  const Topology& topology_;
  const CostModel& cost_;
  const ClusterResources& resources_;
  const Workload& workload_;
  const Ranks& ranks_;
  const MessagePairs& messages_;
  JointGraph out_;
  Numbers<Facts> numbers_;
  Weights weights_;
  std::vector<std::vector<std::uint32_t>> labels_;  // By set of loads, by weight.
  std::uint32_t next_label_ = first_load_label;
  std::vector<std::uint64_t> models_;  // By index of the topology: the first that is equal.
  std::map<Facts, PairShape> shapes_;
  std::map<Digest, std::uint32_t> bundles_;
  // Of the node that is being added: plans by different loads, and the fabric's links of one of
  // them, with the numbers of weights.
  std::vector<CollectivePlan> sets_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundle_;
};

}  // namespace

JointGraph joint_graph(const Topology& topology, const CostModel& cost,
                       const ClusterResources& resources, const Workload& workload,
                       const Ranks& ranks, const MessagePairs& messages) {
  return Builder(topology, cost, resources, workload, ranks, messages).build();
}

}  // namespace flyover
