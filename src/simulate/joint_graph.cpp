#include "simulate/joint_graph.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "flyover/base/error.hpp"
#include "simulate/digest.hpp"
#include "simulate/folded_group.hpp"
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

enum NodeKind : std::uint8_t { BlockNode, LinkNode, LoaderNode, GroupPart, PairPart, BundlePart };

// Where a touch lands: on the n-th block of a loader, on a link of the tree above it, or on a node
// that only this very loader touches.
struct Spot {
  enum class Kind : std::uint8_t { Block, Tree, Node };
  Kind kind = Kind::Node;
  bool up = false;
  std::uint32_t number = 0;  // Of the loader's blocks, or the node.
  std::uint32_t level = 0;
  std::uint32_t index = 0;  // In the list of the level.

  friend auto operator<=>(const Spot&, const Spot&) = default;
};

using Touches = std::vector<std::pair<Spot, Touch>>;
using Edges = std::vector<std::pair<Spot, std::uint32_t>>;  // With the label.

// The blocks of a loader, numbered, and the lists of switches above them.
class Footing {
 public:
  explicit Footing(const Blocks& blocks)
      : blocks_(blocks),
        number_(blocks.size(), absent),
        owner_(blocks.lists(), Owner{absent, 0}) {}

  void clear() {
    for (const std::uint32_t block : order_) number_[block] = absent;
    for (const std::uint32_t list : lists_) owner_[list].number = absent;
    order_.clear();
    lists_.clear();
  }
  // Returns the block's number; of a new one adds to `lie` what it is and how it lies to the
  // others.
  std::uint32_t add(std::uint32_t block, Digest& lie) {
    if (number_[block] != absent) return number_[block];
    const auto fresh = static_cast<std::uint32_t>(order_.size());
    number_[block] = fresh;
    order_.push_back(block);
    lie.add(blocks_.kind(block));
    if (blocks_.levels() == 0) return fresh;
    std::uint32_t list = blocks_.list(block);
    for (std::uint32_t level = 0; level < blocks_.levels(); ++level) {
      if (owner_[list].number != absent) {
        // All above it are known, too.
        lie.add(std::uint64_t{owner_[list].number} << 8 | level);
        return fresh;
      }
      owner_[list] = {fresh, level};
      lists_.push_back(list);
      list = blocks_.above(list);
    }
    lie.add(absent);
    return fresh;
  }

  [[nodiscard]] const std::vector<std::uint32_t>& blocks() const { return order_; }
  [[nodiscard]] std::uint32_t number(std::uint32_t block) const { return number_[block]; }
  // The spot of a link of the tree, if it is above one of the blocks.
  [[nodiscard]] std::optional<Spot> spot(const TreePlace& place) const {
    const Owner& owner = owner_[place.list];
    if (owner.number == absent) return std::nullopt;
    return Spot{Spot::Kind::Tree, place.up, owner.number, owner.level, place.index};
  }

 private:
  struct Owner {
    std::uint32_t number;
    std::uint32_t level;
  };
  const Blocks& blocks_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> number_;  // By block.
  std::vector<Owner> owner_;           // By list: the first block below it.
  std::vector<std::uint32_t> lists_;   // That have an owner.
};

class Builder {
 public:
  Builder(const Topology& topology, const CostModel& cost, const ClusterResources& resources,
          const Blocks& blocks, const Workload& workload, const Ranks& ranks,
          const MessagePairs& messages, LoadMap& scratch)
      : topology_(topology),
        cost_(cost),
        resources_(resources),
        blocks_(blocks),
        workload_(workload),
        ranks_(ranks),
        messages_(messages),
        scratch_(scratch),
        footing_(blocks) {}

  JointGraph build() {
    add_blocks();
    add_fabric();
    out_.first_loader = static_cast<std::uint32_t>(out_.colours.size());
    for (std::uint32_t f = 0; f < workload_.groups.size(); ++f) add_groups(f);
    add_pairs();
    return std::move(out_);
  }

 private:
  // The different calls of a program on a family.
  using Kinds = std::vector<const Operation*>;
  // What a plan loads, on a geometry.
  struct PlannedSet {
    CollectivePlan plan;
    std::vector<std::tuple<Spot, std::uint32_t, std::uint32_t>> loads;  // With item and weight.
  };
  // Groups that lie alike.
  struct Geometry {
    bool shared = true;
    PatternTracer tracer;  // None where all edges are followed.
    std::vector<PlannedSet> sets;
    std::map<std::vector<std::uint32_t>, std::shared_ptr<const Edges>> edges;  // By sets.
  };
  struct Shape {
    std::uint32_t parts = 0;  // JointGraph::part_colours.
    std::shared_ptr<const Edges> edges;
  };
  // What pairs have in common whose messages differ in their places only, where routes are sprayed.
  struct RouteShape {
    std::uint32_t colour = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> loads;    // Place (places_of) and label.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> bundles;  // Node and label.
  };

  std::uint32_t add_node(const Digest& facts) {
    out_.colours.push_back(numbers_(facts));
    return static_cast<std::uint32_t>(out_.colours.size()) - 1;
  }

  void add_blocks() {
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      Digest facts;
      facts.add(BlockNode);
      facts.add(blocks_.kind(b));
      for (std::uint32_t g = 0; g < blocks_.gpus(b); ++g) {
        const std::uint32_t rank = blocks_.first_rank(b) + g;
        facts.add(rank < ranks_.size() ? ranks_.program(rank) : absent - 1);
      }
      add_node(facts);
    }
  }

  void add_fabric() {
    out_.first_fabric = static_cast<std::uint32_t>(out_.colours.size());
    for (const LinkId link : blocks_.fabric_links()) {
      const ResourceId r = ClusterResources::of(link);
      Digest facts;
      facts.add(LinkNode);
      facts.add(resources_.class_of(r));
      facts.add(std::bit_cast<std::uint64_t>(resources_.capacity(r)));
      facts.add(resources_.cables(r));
      facts.add(resources_.in_service(r) ? 1U : 0U);
      add_node(facts);
    }
  }
  [[nodiscard]] std::uint32_t fabric_node(LinkId link) const {
    const auto found = std::ranges::lower_bound(blocks_.fabric_links(), link);
    return out_.first_fabric + static_cast<std::uint32_t>(found - blocks_.fabric_links().begin());
  }

  // --- Loaders ---

  std::uint32_t parts_of(const std::vector<std::uint32_t>& colours) {
    const auto [number, fresh] = shapes_.find(colours);
    if (fresh) out_.part_colours.push_back(colours);
    return number;
  }

  std::uint32_t add_loader(std::uint32_t parts, const Edges& edges,
                           std::span<const std::uint32_t> blocks) {
    Digest facts;
    facts.add(LoaderNode);
    facts.add(parts);
    const std::uint32_t node = add_node(facts);
    Loader loader{parts, out_.edges.size(), 0};
    for (const auto& [spot, label] : edges) {
      out_.edges.push_back({.a = node, .b = node_of(spot, blocks), .label = label});
    }
    loader.edges_end = out_.edges.size();
    out_.loaders.push_back(loader);
    return node - out_.first_loader;
  }

  [[nodiscard]] std::uint32_t node_of(const Spot& spot,
                                      std::span<const std::uint32_t> blocks) const {
    switch (spot.kind) {
      case Spot::Kind::Block:
        return blocks[spot.number];
      case Spot::Kind::Tree: {
        std::uint32_t list = blocks_.list(blocks[spot.number]);
        for (std::uint32_t level = 0; level < spot.level; ++level) list = blocks_.above(list);
        return fabric_node(blocks_.tree_link({list, spot.index, spot.up}));
      }
      case Spot::Kind::Node:
        break;
    }
    return spot.number;
  }

  // Where a resource is that the loader loads whose blocks are in footing_.
  std::pair<Spot, std::uint32_t> spot_of(ResourceId resource) const {
    if (const auto place = blocks_.place(resource)) {
      const std::uint32_t item = blocks_.gpus(place->block) + place->index;
      const std::uint32_t number = footing_.number(place->block);
      if (number == absent) return {Spot{.number = place->block}, item};
      return {Spot{.kind = Spot::Kind::Block, .number = number}, item};
    }
    const LinkId link = ClusterResources::link_of(resource);
    if (blocks_.levels() > 0) {
      if (const auto spot = footing_.spot(blocks_.tree_place(link))) return {*spot, 0};
    }
    return {Spot{.number = fabric_node(link)}, 0};
  }

  // The number of a list of touches, which is left sorted.
  std::uint32_t label_of(std::vector<Touch>& touches) {
    std::ranges::sort(touches);
    Digest digest;
    for (const Touch& touch : touches) {
      digest.add(std::uint64_t{touch.part} << 32 | touch.label);
      digest.add(touch.item);
    }
    const auto [label, fresh] = touch_numbers_.find(digest);
    if (fresh) out_.touches.push_back(touches);
    return label;
  }

  Edges edges_of(Touches& touches) {
    std::ranges::stable_sort(touches, {}, &std::pair<Spot, Touch>::first);
    Edges edges;
    std::vector<Touch> own;
    for (auto first = touches.begin(); first != touches.end();) {
      own.clear();
      auto last = first;
      for (; last != touches.end() && last->first == first->first; ++last) {
        own.push_back(last->second);
      }
      edges.emplace_back(first->first, label_of(own));
      first = last;
    }
    return edges;
  }

  // --- Groups ---

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
    group_shapes_.clear();
    std::vector<std::uint32_t>& loaders = out_.groups.emplace_back();
    std::vector<std::uint32_t>& geometries = out_.geometry_of.emplace_back();
    for (const auto& group : workload_.groups[f].groups) {
      std::uint32_t calls = 0;
      std::uint32_t caller = absent;  // The first program with the most.
      for (const std::uint32_t rank : group) {
        const std::uint32_t p = ranks_.program(rank);
        if (p == absent || most_calls[p] <= calls) continue;
        calls = most_calls[p];
        caller = p;
      }
      if (caller == absent) {
        loaders.push_back(absent);
        geometries.push_back(absent);
        continue;
      }
      geometries.push_back(geometry_of(group));
      // The first member's program says how slow the calls are.
      const auto [shape, fresh] =
          group_shapes_.try_emplace({geometries.back(), caller, ranks_.program(group.front())});
      if (fresh) {
        shape->second = group_shape(f, shape->first, kinds[caller]);
        stand_on(group);
      }
      loaders.push_back(add_loader(shape->second.parts, *shape->second.edges, footing_.blocks()));
    }
  }

  // How the ranks of a group lie to each other. Leaves its blocks in footing_.
  Digest stand_on(const std::vector<std::uint32_t>& group) {
    footing_.clear();
    Digest lie;
    for (const std::uint32_t rank : group) {
      const std::uint32_t block = blocks_.of_rank(rank);
      const std::uint32_t number = footing_.add(block, lie);
      lie.add(std::uint64_t{number} << 32 | (rank - blocks_.first_rank(block)));
    }
    return lie;
  }

  std::uint32_t geometry_of(const std::vector<std::uint32_t>& group) {
    Digest lie = stand_on(group);
    const bool may_share = blocks_.levels() > 0 || footing_.blocks().size() == 1;
    auto [number, fresh] = geometry_numbers_.find(lie);
    if (!may_share || (!fresh && !geometries_[number].shared)) {
      for (const std::uint32_t rank : group) lie.add(rank);
      std::tie(number, fresh) = geometry_numbers_.find(lie);
    }
    if (number >= geometries_.size()) {
      geometries_.resize(number + 1);
      out_.geometries.resize(number + 1);
    }
    if (fresh) {
      geometries_[number].shared = may_share;
      std::vector<std::uint32_t>& ranks = out_.geometries[number].ranks;
      ranks = group;
      if (folds(blocks_, ranks)) {
        geometries_[number].tracer = folding_tracer(cost_.router(), blocks_, scratch_, ranks);
      }
    }
    return number;
  }

  using GroupKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  // Leaves the blocks of the geometry's first group in footing_.
  Shape group_shape(std::uint32_t f, const GroupKey& key, const Kinds& kinds) {
    const auto [number, caller, first_program] = key;
    Geometry& geometry = geometries_[number];
    stand_on(out_.geometries[number].ranks);
    CollectiveCall call;
    call.ranks = out_.geometries[number].ranks;
    Digest facts;
    for (const std::uint64_t fact :
         {std::uint64_t{GroupPart}, std::uint64_t{f}, std::uint64_t{caller},
          std::uint64_t{first_program}, std::uint64_t{call.ranks.size()}}) {
      facts.add(fact);
    }
    std::vector<std::uint32_t> sets;
    if (call.ranks.size() > 1) {
      for (const Operation* op : kinds) {
        call.op = op->collective;
        call.bytes = op->bytes;
        call.dtype = op->dtype;
        call.root = op->root;
        const CollectivePlan plan = cost_.plan(call, geometry.tracer);
        const std::uint32_t set = planned_set(number, plan, call.ranks);
        const auto place = std::ranges::find(sets, set);
        add_plan(facts, plan, static_cast<std::uint64_t>(place - sets.begin()));
        if (place == sets.end()) sets.push_back(set);
      }
    }
    std::shared_ptr<const Edges>& edges = geometry.edges[sets];
    if (!edges) edges = std::make_shared<const Edges>(group_edges(call.ranks, geometry, sets));
    return {parts_of({numbers_(facts)}), edges};
  }

  void add_plan(Digest& facts, const CollectivePlan& plan, std::uint64_t set) {
    facts.add(static_cast<std::uint64_t>(plan.algorithm));
    facts.add(static_cast<std::uint64_t>(plan.protocol));
    facts.add(plan.channels);
    facts.add(static_cast<std::uint64_t>(plan.startup.count()));
    facts.add(weights_(plan.rate_cap));
    facts.add(set);
  }

  static bool same_loads(const CollectivePlan& a, const CollectivePlan& b) {
    return a.loads == b.loads && a.channels == b.channels && a.rate_cap == b.rate_cap;
  }

  std::uint32_t planned_set(std::uint32_t number, const CollectivePlan& plan,
                            std::span<const std::uint32_t> ranks) {
    std::vector<PlannedSet>& sets = geometries_[number].sets;
    const auto known = std::ranges::find_if(
        sets, [&](const PlannedSet& other) { return same_loads(other.plan, plan); });
    const auto place = static_cast<std::uint32_t>(known - sets.begin());
    if (known != sets.end()) return place;
    PlannedSet set{plan, {}};
    bundle_.clear();
    for (const Load& load :
         loads_of(topology_, resources_, plan, named_ranks(blocks_, plan, ranks))) {
      const std::uint32_t weight = weights_(load.weight);
      const auto [spot, item] = spot_of(load.resource);
      if (spot.kind != Spot::Kind::Node) {
        set.loads.emplace_back(spot, item, weight);
        continue;
      }
      geometries_[number].shared = false;
      if (spot.number < out_.first_fabric) {
        set.loads.emplace_back(spot, item, weight);
      } else {
        bundle_.emplace_back(spot.number, weight);
      }
    }
    if (!bundle_.empty()) set.loads.emplace_back(Spot{.number = bundle()}, 0, 0);
    sets.push_back(std::move(set));
    return place;
  }

  // Loads of different plans must not be taken for each other: their calls run at different times.
  Edges group_edges(std::span<const std::uint32_t> ranks, const Geometry& geometry,
                    const std::vector<std::uint32_t>& sets) {
    const bool folded = !sets.empty() && std::ranges::all_of(sets, [&](std::uint32_t set) {
      return geometry.sets[set].plan.fold != nullptr;
    });
    Touches touches;
    for (const std::uint32_t rank : ranks) {
      const std::uint32_t block = blocks_.of_rank(rank);
      const std::uint32_t number = footing_.number(block);
      if (folded && number > 0) break;
      touches.push_back({{.kind = Spot::Kind::Block, .number = number},
                         {0, Member, rank - blocks_.first_rank(block)}});
    }
    if (folded) return folded_edges(touches, geometry, sets);
    for (std::uint32_t s = 0; s < sets.size(); ++s) {
      const PlannedSet& set = geometry.sets[sets[s]];
      const DomainFold* fold = set.plan.fold.get();
      std::vector<std::vector<Touch>> of_kind(fold == nullptr ? 0 : fold->first.size());
      for (const auto& [spot, item, weight] : set.loads) {
        const Touch touch{0, load_label(s, weight), item};
        if (fold != nullptr && spot.kind == Spot::Kind::Block) {
          of_kind[fold->kind[spot.number]].push_back(touch);
        } else {
          touches.push_back({spot, touch});
        }
      }
      for (std::uint32_t d = 0; fold != nullptr && d < fold->kind.size(); ++d) {
        for (const Touch& touch : of_kind[fold->kind[d]]) {
          touches.push_back({{.kind = Spot::Kind::Block, .number = d}, touch});
        }
      }
    }
    return edges_of(touches);
  }

  // The same where all plans are folded, at the cost of the kinds of domains: `members` of the
  // first are those of all.
  Edges folded_edges(const Touches& members, const Geometry& geometry,
                     const std::vector<std::uint32_t>& sets) {
    std::vector<std::vector<std::vector<Touch>>> of_kind(sets.size());  // By set, by kind.
    Touches above;
    for (std::uint32_t s = 0; s < sets.size(); ++s) {
      const PlannedSet& set = geometry.sets[sets[s]];
      of_kind[s].resize(set.plan.fold->first.size());
      for (const auto& [spot, item, weight] : set.loads) {
        const Touch touch{0, load_label(s, weight), item};
        if (spot.kind == Spot::Kind::Block) {
          of_kind[s][set.plan.fold->kind[spot.number]].push_back(touch);
        } else {
          above.push_back({spot, touch});
        }
      }
    }
    Edges edges;
    std::map<std::vector<std::uint32_t>, std::uint32_t> labels;  // By kind in each set.
    std::vector<std::uint32_t> kinds(sets.size());
    for (std::uint32_t d = 0; d < footing_.blocks().size(); ++d) {
      for (std::uint32_t s = 0; s < sets.size(); ++s) {
        kinds[s] = geometry.sets[sets[s]].plan.fold->kind[d];
      }
      const auto [label, fresh] = labels.try_emplace(kinds, 0);
      if (fresh) {
        std::vector<Touch> own;
        for (const auto& [spot, touch] : members) own.push_back(touch);
        for (std::uint32_t s = 0; s < sets.size(); ++s) {
          own.insert(own.end(), of_kind[s][kinds[s]].begin(), of_kind[s][kinds[s]].end());
        }
        label->second = label_of(own);
      }
      edges.push_back({{.kind = Spot::Kind::Block, .number = d}, label->second});
    }
    const Edges rest = edges_of(above);
    edges.insert(edges.end(), rest.begin(), rest.end());
    return edges;
  }

  // --- Messages ---

  void add_pairs() {
    for (const auto& pattern : messages_.patterns) {
      std::vector<Bytes>& all = sizes_.emplace_back();
      for (const MessagePattern& message : pattern) {
        if (std::ranges::find(all, message.bytes) == all.end()) all.push_back(message.bytes);
      }
    }
    out_.pairs.resize(messages_.pairs.size());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> own;  // Receiver block, pair.
    for (std::uint32_t p = 0; p < messages_.pairs.size();) {
      own.clear();
      const std::uint32_t from = blocks_.of_rank(messages_.pairs[p].from);
      for (; p < messages_.pairs.size() && blocks_.of_rank(messages_.pairs[p].from) == from; ++p) {
        own.emplace_back(blocks_.of_rank(messages_.pairs[p].to), p);
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

  void add_pairs_between(std::uint32_t from, std::uint32_t to,
                         std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
    footing_.clear();
    Digest lie;
    footing_.add(from, lie);
    footing_.add(to, lie);
    for (const auto& [unused, p] : pairs) {
      const RankPair& pair = messages_.pairs[p];
      lie.add(pair.pattern);
      lie.add(std::uint64_t{pair.from - blocks_.first_rank(from)} << 32 |
              (pair.to - blocks_.first_rank(to)));
    }
    std::uint32_t loader = 0;
    if (blocks_.levels() > 0) {
      const auto [shape, fresh] = pair_shapes_.try_emplace(lie);
      if (fresh) shape->second = planned_pairs(pairs);
      loader = add_loader(shape->second.parts, *shape->second.edges, footing_.blocks());
    } else {
      const Shape shape = routed_pairs(pairs);
      loader = add_loader(shape.parts, *shape.edges, footing_.blocks());
    }
    for (std::uint32_t j = 0; j < pairs.size(); ++j) out_.pairs[pairs[j].second] = {loader, j};
  }

  void touch_ends(Touches& touches, std::uint32_t part, const RankPair& pair) const {
    for (const auto& [rank, label] : {std::pair(pair.from, From), std::pair(pair.to, To)}) {
      const std::uint32_t block = blocks_.of_rank(rank);
      touches.push_back({{.kind = Spot::Kind::Block, .number = footing_.number(block)},
                         {part, label, rank - blocks_.first_rank(block)}});
    }
  }

  Shape planned_pairs(std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
    Touches touches;
    std::vector<std::uint32_t> colours;
    for (std::uint32_t j = 0; j < pairs.size(); ++j) {
      const RankPair& pair = messages_.pairs[pairs[j].second];
      touch_ends(touches, j, pair);
      colours.push_back(plan_messages(pair));
      for (std::uint32_t s = 0; s < plans_.size(); ++s) {
        const std::array<std::uint32_t, 2> ends{pair.from, pair.to};
        for (const Load& load : loads_of(topology_, resources_, plans_[s], ends)) {
          const auto [spot, item] = spot_of(load.resource);
          require(spot.kind != Spot::Kind::Node, "a message in a tree loads what is at its ends");
          touches.push_back({spot, {j, load_label(s, weights_(load.weight)), item}});
        }
      }
    }
    return {parts_of(colours), std::make_shared<const Edges>(edges_of(touches))};
  }

  // The plans of a pair's messages by different loads, in plans_. Returns the part's colour.
  std::uint32_t plan_messages(const RankPair& pair) {
    Digest facts;
    facts.add(PairPart);
    facts.add(pair.pattern);
    plans_.clear();
    for (const Bytes bytes : sizes_[pair.pattern]) {
      CollectivePlan plan = cost_.point_to_point(pair.from, pair.to, bytes);
      const auto set = std::ranges::find_if(
          plans_, [&](const CollectivePlan& other) { return same_loads(other, plan); });
      add_plan(facts, plan, static_cast<std::uint64_t>(set - plans_.begin()));
      if (set == plans_.end()) plans_.push_back(std::move(plan));
    }
    return numbers_(facts);
  }

  // Where the fabric is no tree: by the outlines of their routes.
  Shape routed_pairs(std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
    Touches touches;
    std::vector<std::uint32_t> colours;
    for (std::uint32_t j = 0; j < pairs.size(); ++j) {
      const RankPair& pair = messages_.pairs[pairs[j].second];
      touch_ends(touches, j, pair);
      const RouteOutline route = cost_.router().outline(pair.from, pair.to);
      const auto [shape, fresh] = route_shapes_.try_emplace(facts_of(pair, route));
      if (fresh) shape->second = route_shape(pair, route);
      colours.push_back(shape->second.colour);
      const std::vector<ResourceId> places = places_of(pair, route);
      for (const auto& [place, label] : shape->second.loads) {
        const auto [spot, item] = spot_of(places[place]);
        touches.push_back({spot, {j, label, item}});
      }
      for (const auto& [node, label] : shape->second.bundles) {
        touches.push_back({{.number = node}, {j, label, 0}});
      }
    }
    return {parts_of(colours), std::make_shared<const Edges>(edges_of(touches))};
  }

  // What the plans of a pair's messages depend on besides the pattern: all but which links they
  // are.
  Digest facts_of(const RankPair& pair, const RouteOutline& route) {
    Digest facts;
    facts.add(pair.pattern);
    facts.add(std::uint64_t{resources_.gpu_kind(pair.from)} << 32 | resources_.gpu_kind(pair.to));
    facts.add(blocks_.of_rank(pair.from) == blocks_.of_rank(pair.to) ? 1U : 0U);
    facts.add(static_cast<std::uint64_t>(route.latency.count()));
    facts.add(std::uint64_t{route.switch_hops} << 32 | static_cast<std::uint64_t>(route.kind) << 1 |
              (route.relayed ? 1U : 0U));
    facts.add(route.sprayed);
    for (const Hop& hop : route.hops) {
      const Link& link = topology_.links[hop.link];
      const auto place = blocks_.place(ClusterResources::of(hop.link));
      facts.add(static_cast<std::uint64_t>(link.kind));
      facts.add(std::bit_cast<std::uint64_t>(link.bandwidth.per_second()));
      facts.add(weights_(hop.share));
      facts.add(place ? blocks_.kind(place->block) : absent);
    }
    return facts;
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
  RouteShape route_shape(const RankPair& pair, const RouteOutline& route) {
    RouteShape shape;
    shape.colour = plan_messages(pair);
    const std::vector<ResourceId> places = places_of(pair, route);
    const std::array<std::uint32_t, 2> ends{pair.from, pair.to};
    for (std::uint32_t s = 0; s < plans_.size(); ++s) {
      bundle_.clear();
      for (const Load& load : loads_of(topology_, resources_, plans_[s], ends)) {
        const std::uint32_t weight = weights_(load.weight);
        const auto place = std::ranges::find(places, load.resource) - places.begin();
        if (place == std::ssize(places)) {
          bundle_.emplace_back(fabric_node(ClusterResources::link_of(load.resource)), weight);
        } else {
          shape.loads.emplace_back(static_cast<std::uint32_t>(place), load_label(s, weight));
        }
      }
      if (!bundle_.empty()) shape.bundles.emplace_back(bundle(), load_label(s, 0));
    }
    return shape;
  }

  // --- Labels ---

  // A loader between those that load the same links inside the fabric with the same weights and
  // those links: messages that are sprayed from one leaf to another over thousands of paths are
  // many, the paths are listed once. A partition that is equitable with such nodes is so without.
  std::uint32_t bundle() {
    Digest links;
    for (const auto& [node, weight] : bundle_) links.add(std::uint64_t{node} << 32 | weight);
    const auto [entry, fresh] = bundles_.try_emplace(links, 0);
    if (fresh) {
      Touches touches;
      for (const auto& [node, weight] : bundle_) {
        touches.push_back({{.number = node}, {0, load_label(0, weight), 0}});
      }
      Digest facts;
      facts.add(BundlePart);
      facts.add(bundle_.size());
      entry->second =
          out_.first_loader + add_loader(parts_of({numbers_(facts)}), edges_of(touches), {});
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
  const Blocks& blocks_;
  const Workload& workload_;
  const Ranks& ranks_;
  const MessagePairs& messages_;
  LoadMap& scratch_;
  JointGraph out_;
  Footing footing_;  // Of the loader that is being added.
  Numbers<Digest> numbers_;
  Numbers<Digest> touch_numbers_;
  Numbers<std::vector<std::uint32_t>> shapes_;
  Weights weights_;
  std::vector<std::vector<std::uint32_t>> labels_;  // By set of loads, by weight.
  std::uint32_t next_label_ = first_load_label;
  Numbers<Digest> geometry_numbers_;
  std::vector<Geometry> geometries_;
  std::map<GroupKey, Shape> group_shapes_;  // Of one family.
  std::vector<std::vector<Bytes>> sizes_;   // Of messages, by pattern.
  std::map<Digest, Shape> pair_shapes_;
  std::map<Digest, RouteShape> route_shapes_;
  std::map<Digest, std::uint32_t> bundles_;  // Nodes.
  std::vector<CollectivePlan> plans_;        // Of a pair's messages.
  // The fabric's links of a plan, with the numbers of weights.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundle_;
};

}  // namespace

JointGraph joint_graph(const Topology& topology, const CostModel& cost,
                       const ClusterResources& resources, const Blocks& blocks,
                       const Workload& workload, const Ranks& ranks, const MessagePairs& messages,
                       LoadMap& scratch) {
  return Builder(topology, cost, resources, blocks, workload, ranks, messages, scratch).build();
}

}  // namespace flyover
