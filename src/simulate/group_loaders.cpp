#include "simulate/group_loaders.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "simulate/folded_group.hpp"
#include "simulate/plans.hpp"

namespace flyover {

namespace {

class GroupLoaders {
 public:
  GroupLoaders(const JointContext& context, LoaderWriter& writer, JointGraph& out)
      : context_(context),
        writer_(writer),
        out_(out) {}

  // The groups of a family.
  void add(std::uint32_t f) {
    std::vector<std::uint32_t> most_calls(context_.workload.programs.size());
    std::vector<Kinds> kinds(context_.workload.programs.size());
    for (std::size_t p = 0; p < kinds.size(); ++p) {
      for (const Operation& op : context_.workload.programs[p].ops) {
        if (op.kind != OpKind::Collective || op.group != f) continue;
        ++most_calls[p];
        const bool known = std::ranges::any_of(kinds[p], [&](const Operation* other) {
          return other->collective == op.collective && other->bytes == op.bytes &&
                 other->dtype == op.dtype && other->root == op.root &&
                 other->exchange == op.exchange;
        });
        if (!known) kinds[p].push_back(&op);
      }
    }
    group_shapes_.clear();
    std::vector<std::uint32_t>& loaders = out_.groups.emplace_back();
    std::vector<std::uint32_t>& geometries = out_.geometry_of.emplace_back();
    for (const auto& group : context_.workload.groups[f].groups) {
      std::uint32_t calls = 0;
      std::uint32_t caller = absent;  // The first program with the most.
      for (const std::uint32_t rank : group) {
        const std::uint32_t p = context_.ranks.program(rank);
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
      const auto [shape, fresh] = group_shapes_.try_emplace(
          {geometries.back(), caller, context_.ranks.program(group.front())});
      if (fresh) {
        shape->second = group_shape(f, shape->first, kinds[caller]);
        writer_.footing().stand_on(group);
      }
      loaders.push_back(writer_.add_loader(shape->second.parts, *shape->second.edges,
                                           writer_.footing().blocks()));
    }
  }

 private:
  // The different calls of a program on a family.
  using Kinds = std::vector<const Operation*>;
  // Geometry, the program with the most calls, the first member's program.
  using GroupKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  // What a plan loads, on a geometry.
  struct PlannedSet {
    CollectivePlan plan;
    double local_copies = 0;
    std::vector<std::tuple<Spot, std::uint32_t, std::uint32_t>> loads;  // With item and weight.
  };
  // Groups that lie alike.
  struct Geometry {
    bool shared = true;
    PatternTracer tracer;  // None where all edges are followed.
    std::vector<PlannedSet> sets;
    std::map<std::vector<std::uint32_t>, std::shared_ptr<const Edges>> edges;  // By sets.
  };

  // Leaves the group's blocks as footing.
  std::uint32_t geometry_of(const std::vector<std::uint32_t>& group) {
    Digest lie = writer_.footing().stand_on(group);
    const bool may_share = context_.blocks.levels() > 0 || writer_.footing().blocks().size() == 1;
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
      std::vector<std::uint32_t>& ranks = out_.geometries[number];
      ranks = group;
      if (folds(context_.blocks, ranks)) {
        geometries_[number].tracer =
            folding_tracer(context_.cost.router(), context_.blocks, context_.scratch, ranks);
      }
    }
    return number;
  }

  // Leaves the blocks of the geometry's first group as footing.
  LoaderShape group_shape(std::uint32_t f, const GroupKey& key, const Kinds& kinds) {
    const auto [number, caller, first_program] = key;
    Geometry& geometry = geometries_[number];
    writer_.footing().stand_on(out_.geometries[number]);
    const std::vector<std::uint32_t>& ranks = out_.geometries[number];
    Digest facts;
    for (const std::uint64_t fact :
         {std::uint64_t{GroupPart}, std::uint64_t{f}, std::uint64_t{caller},
          std::uint64_t{first_program}, std::uint64_t{ranks.size()}}) {
      facts.add(fact);
    }
    std::vector<std::uint32_t> sets;
    if (ranks.size() > 1) {
      for (const Operation* op : kinds) {
        const PlannedCall planned = context_.planner.plan(*op, ranks, geometry.tracer);
        const CollectivePlan& plan = planned.plan;
        const std::uint32_t set = planned_set(number, planned, ranks);
        const auto place = std::ranges::find(sets, set);
        writer_.add_plan(facts, plan, static_cast<std::uint64_t>(place - sets.begin()));
        if (place == sets.end()) sets.push_back(set);
      }
    }
    std::shared_ptr<const Edges>& edges = geometry.edges[sets];
    if (!edges) edges = std::make_shared<const Edges>(group_edges(ranks, geometry, sets));
    return {writer_.parts_of({writer_.colour(facts)}), edges};
  }

  std::uint32_t planned_set(std::uint32_t number, const PlannedCall& planned,
                            std::span<const std::uint32_t> ranks) {
    const CollectivePlan& plan = planned.plan;
    const double copies = local_copies(planned.experts);
    std::vector<PlannedSet>& sets = geometries_[number].sets;
    const auto known = std::ranges::find_if(sets, [&](const PlannedSet& other) {
      return same_loads(other.plan, plan) && other.local_copies == copies;
    });
    const auto place = static_cast<std::uint32_t>(known - sets.begin());
    if (known != sets.end()) return place;
    PlannedSet set{plan, copies, {}};
    bundle_.clear();
    for (const Load& load : loads_of(context_.topology, context_.resources, plan,
                                     named_ranks(context_.blocks, plan, ranks), copies)) {
      const std::uint32_t weight = writer_.weight(load.weight);
      const auto [spot, item] = writer_.spot_of(load.resource);
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
    if (!bundle_.empty()) set.loads.emplace_back(Spot{.number = writer_.bundle(bundle_)}, 0, 0);
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
      const std::uint32_t block = context_.blocks.of_rank(rank);
      const std::uint32_t number = writer_.footing().number(block);
      if (folded && number > 0) break;
      touches.push_back({{.kind = Spot::Kind::Block, .number = number},
                         {0, Member, rank - context_.blocks.first_rank(block)}});
    }
    if (folded) return folded_edges(touches, geometry, sets);
    for (std::uint32_t s = 0; s < sets.size(); ++s) {
      const PlannedSet& set = geometry.sets[sets[s]];
      const DomainFold* fold = set.plan.fold.get();
      std::vector<std::vector<Touch>> of_kind(fold == nullptr ? 0 : fold->first.size());
      for (const auto& [spot, item, weight] : set.loads) {
        const Touch touch{0, writer_.load_label(s, weight), item};
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
    return writer_.edges_of(touches);
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
        const Touch touch{0, writer_.load_label(s, weight), item};
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
    for (std::uint32_t d = 0; d < writer_.footing().blocks().size(); ++d) {
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
        label->second = writer_.label_of(own);
      }
      edges.push_back({{.kind = Spot::Kind::Block, .number = d}, label->second});
    }
    const Edges rest = writer_.edges_of(above);
    edges.insert(edges.end(), rest.begin(), rest.end());
    return edges;
  }

  const JointContext& context_;
  LoaderWriter& writer_;
  JointGraph& out_;
  Numbers<Digest> geometry_numbers_;
  std::vector<Geometry> geometries_;
  std::map<GroupKey, LoaderShape> group_shapes_;  // Of one family.
  // The fabric's links of a plan, with the numbers of weights.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundle_;
};

}  // namespace

void add_group_loaders(const JointContext& context, LoaderWriter& writer, JointGraph& out) {
  GroupLoaders loaders(context, writer, out);
  for (std::uint32_t f = 0; f < context.workload.groups.size(); ++f) loaders.add(f);
}

}  // namespace flyover
