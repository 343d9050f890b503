#include "simulate/folded_group.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulate/digest.hpp"

namespace flyover {

namespace {

GroupShape first_domain(const GroupShape& all) {
  GroupShape first;
  for (std::uint32_t i = 0; i < all.ranks() && all.domain[i] == all.domain.front(); ++i) {
    first.domain.push_back(all.domain[i]);
    first.rail.push_back(all.rail[i]);
  }
  return first;
}

// What ranks send to other domains: how many messages, and how far.
class Messages {
 public:
  Messages(const FoldedSummary& summary, std::size_t domains, std::size_t members)
      : summary_(summary),
        members_(members),
        sent_(domains * members) {}

  // `latency`: the sum over the edge's loads and channels, in picoseconds.
  void add(const FoldedSummary::Edge& edge, double latency) {
    for (const MemberLoad& load : summary_.between[edge.kind]) {
      sent_[edge.from * members_ + load.from] += load.channels;
      edges_ += load.channels;
    }
    latency_ += latency;
  }
  [[nodiscard]] std::uint32_t most() const { return std::ranges::max(sent_); }
  [[nodiscard]] Duration mean_latency() const {
    return Duration{static_cast<Duration::rep>(latency_ / static_cast<double>(edges_))};
  }

 private:
  const FoldedSummary& summary_;
  std::size_t members_;
  std::vector<std::uint32_t> sent_;  // By domain and member.
  std::uint64_t edges_ = 0;
  double latency_ = 0;
};

// A group of domains that are alike.
class FoldedGroup {
 public:
  // None unless the group has members at the same places of two or more blocks of one kind, in a
  // tree. Borrows all that it is given.
  [[nodiscard]] static std::optional<FoldedGroup> of(const Router& router, const Blocks& blocks,
                                                     LoadMap& scratch,
                                                     std::span<const std::uint32_t> ranks);

  // A PatternTracer.
  [[nodiscard]] std::optional<Pattern> operator()(const CollectiveShape& shape,
                                                  const Algorithm& algorithm,
                                                  const PatternOptions& options);

 private:
  struct PlaceLoad {
    std::uint32_t place = 0;
    double share = 0;

    friend auto operator<=>(const PlaceLoad&, const PlaceLoad&) = default;
  };
  struct TreeLoad {
    bool at_sender = false;  // Whose list it is above, else the receiver's.
    std::uint32_t level = 0;
    std::uint32_t index = 0;
    bool up = false;
    double share = 0;
  };
  using PlaceLoads = std::vector<PlaceLoad>;
  // What edges of one kind load on their way from one domain to another, by how these lie. What
  // they load inside the domains is numbered.
  struct Way {
    std::uint32_t out = 0;
    std::uint32_t in = 0;
    std::vector<TreeLoad> tree;
    Duration longest{};
    double latency = 0;  // Sum over edges and channels, in picoseconds.
  };

  FoldedGroup(const Router& router, const Blocks& blocks, LoadMap& scratch)
      : router_(router),
        blocks_(blocks),
        scratch_(scratch) {}

  [[nodiscard]] std::uint32_t rank(std::uint32_t domain, std::uint32_t member) const {
    return blocks_.first_rank(domains_[domain]) + members_[member];
  }
  [[nodiscard]] std::uint32_t list(std::uint32_t domain, std::uint32_t level) const;
  // The lowest level of switches above both; as many as there are levels: none.
  [[nodiscard]] std::uint32_t meeting(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] PlaceLoads follow_inside(const FoldedSummary& summary, Pattern& pattern);
  [[nodiscard]] std::optional<Way> follow_between(const std::vector<MemberLoad>& loads,
                                                  std::uint32_t from, std::uint32_t to,
                                                  bool exit_by_rail);

  [[nodiscard]] std::uint32_t number_of(PlaceLoads loads);

  const Router& router_;
  const Blocks& blocks_;
  LoadMap& scratch_;
  Numbers<PlaceLoads> known_;
  std::vector<PlaceLoads> parts_;       // What edges load at one of their ends.
  std::vector<std::uint32_t> domains_;  // Blocks, in order of first rank.
  std::vector<std::uint32_t> members_;  // Of every domain, GPUs in order of rails.
};

std::optional<FoldedGroup> FoldedGroup::of(const Router& router, const Blocks& blocks,
                                           LoadMap& scratch, std::span<const std::uint32_t> ranks) {
  if (blocks.levels() == 0) return std::nullopt;
  FoldedGroup group(router, blocks, scratch);
  std::vector<std::vector<std::uint32_t>> members;
  std::map<std::uint32_t, std::uint32_t> known;
  for (const std::uint32_t rank : ranks) {
    const std::uint32_t block = blocks.of_rank(rank);
    if (group.domains_.empty() || group.domains_.back() != block) {
      const auto [entry, fresh] =
          known.try_emplace(block, static_cast<std::uint32_t>(group.domains_.size()));
      // Members of one domain in different places of the group are rare: not worth the trouble.
      if (!fresh) return std::nullopt;
      if (blocks.kind(block) != blocks.kind(blocks.of_rank(ranks.front()))) return std::nullopt;
      group.domains_.push_back(block);
      members.emplace_back();
    }
    members.back().push_back(rank - blocks.first_rank(block));
  }
  if (members.size() < 2) return std::nullopt;
  if (std::ranges::any_of(members, [&](const auto& own) { return own != members.front(); })) {
    return std::nullopt;
  }
  group.members_ = members.front();
  std::ranges::stable_sort(group.members_, {}, [&](std::uint32_t gpu) {
    return router.rail(blocks.first_rank(group.domains_.front()) + gpu);
  });
  return group;
}

std::uint32_t FoldedGroup::list(std::uint32_t domain, std::uint32_t level) const {
  std::uint32_t list = blocks_.list(domains_[domain]);
  for (std::uint32_t l = 0; l < level; ++l) list = blocks_.above(list);
  return list;
}

std::uint32_t FoldedGroup::meeting(std::uint32_t a, std::uint32_t b) const {
  std::uint32_t of_a = blocks_.list(domains_[a]);
  std::uint32_t of_b = blocks_.list(domains_[b]);
  std::uint32_t level = 0;
  for (; level < blocks_.levels() && of_a != of_b; ++level) {
    of_a = blocks_.above(of_a);
    of_b = blocks_.above(of_b);
  }
  return level;
}

// In the first domain, as in every other.
FoldedGroup::PlaceLoads FoldedGroup::follow_inside(const FoldedSummary& summary, Pattern& pattern) {
  const auto size = static_cast<std::uint32_t>(members_.size());
  std::vector<std::uint32_t> peers(size);
  for (const MemberLoad& load : summary.inside) {
    Duration latency{};
    if (load.from == size || load.to == size) {
      const Route route = load.to == size ? router_.to_switch(rank(0, load.from))
                                          : router_.from_switch(rank(0, load.to));
      scratch_.add(route, load.fraction);
      latency = route.latency;
    } else {
      latency =
          router_.add_route(scratch_, rank(0, load.from), rank(0, load.to), load.fraction).latency;
      peers[load.from] += load.channels;
    }
    pattern.longest_latency = std::max(pattern.longest_latency, latency);
  }
  pattern.domain_messages = std::ranges::max(peers);
  PlaceLoads loads;
  for (const Hop& hop : scratch_.take()) {
    loads.push_back({blocks_.place(ClusterResources::of(hop.link))->index, hop.share});
  }
  return loads;
}

std::optional<FoldedGroup::Way> FoldedGroup::follow_between(const std::vector<MemberLoad>& loads,
                                                            std::uint32_t from, std::uint32_t to,
                                                            bool exit_by_rail) {
  const auto rail = [&](std::uint32_t member) { return router_.rail(rank(from, member)); };
  Way way;
  PlaceLoads out;
  PlaceLoads in;
  for (const MemberLoad& load : loads) {
    std::uint32_t exit = load.from;
    if (exit_by_rail && rail(load.from) != rail(load.to)) {
      // The first member there in group order; members of one rail are in group order.
      for (std::uint32_t i = 0; i < members_.size(); ++i) {
        if (rail(i) != rail(load.to)) continue;
        exit = i;
        break;
      }
    }
    const PathInfo path =
        router_.add_route(scratch_, rank(from, exit), rank(to, load.to), load.fraction);
    way.longest = std::max(way.longest, path.latency);
    way.latency += static_cast<double>(path.latency.count()) * load.channels;
  }
  for (const Hop& hop : scratch_.take()) {
    if (const auto place = blocks_.place(ClusterResources::of(hop.link))) {
      if (place->block == domains_[from]) {
        out.push_back({place->index, hop.share});
      } else if (place->block == domains_[to]) {
        in.push_back({place->index, hop.share});
      } else {
        return std::nullopt;
      }
      continue;
    }
    const TreePlace tree = blocks_.tree_place(hop.link);
    std::uint32_t level = 0;
    while (level < blocks_.levels() && list(from, level) != tree.list &&
           list(to, level) != tree.list) {
      ++level;
    }
    if (level == blocks_.levels()) return std::nullopt;
    way.tree.push_back({list(from, level) == tree.list, level, tree.index, tree.up, hop.share});
  }
  way.out = number_of(std::move(out));
  way.in = number_of(std::move(in));
  return way;
}

std::uint32_t FoldedGroup::number_of(PlaceLoads loads) {
  const auto [number, fresh] = known_.find(loads);
  if (fresh) parts_.push_back(std::move(loads));
  return number;
}

std::optional<Pattern> FoldedGroup::operator()(const CollectiveShape& shape,
                                               const Algorithm& algorithm,
                                               const PatternOptions& options) {
  const bool ring = algorithm.id == AlgorithmId::Ring;
  // Where they may be spread over all links of a domain edges are followed one by one.
  const bool spread = options.mesh_rings && (ring || algorithm.id == AlgorithmId::Tree);
  if (spread && blocks_.has_direct_links(domains_.front())) return std::nullopt;
  CollectiveShape domain = shape;
  domain.group = first_domain(shape.group);
  const std::optional<FoldedSummary> folded =
      algorithm.fold(domain, static_cast<std::uint32_t>(domains_.size()));
  if (!folded) return std::nullopt;
  const FoldedSummary& summary = *folded;

  Pattern pattern;
  pattern.steps = summary.steps;
  pattern.domain_hops = summary.intra_hops;
  pattern.network_hops = summary.inter_hops;
  const PlaceLoads inside = follow_inside(summary, pattern);

  // By kind of edge and by where its ends meet.
  const std::uint32_t turns = blocks_.levels() + 1;
  std::vector<std::optional<Way>> ways(summary.between.size() * turns);
  const auto way_of = [&](const FoldedSummary::Edge& edge) -> std::optional<Way>& {
    return ways[edge.kind * turns + meeting(edge.from, edge.to)];
  };
  std::vector<std::uint64_t> kinds_of_edges(domains_.size(), 0);
  Messages messages(summary, domains_.size(), members_.size());
  for (const FoldedSummary::Edge& edge : summary.edges) {
    std::optional<Way>& way = way_of(edge);
    if (!way) {
      way = follow_between(summary.between[edge.kind], edge.from, edge.to,
                           options.rail_rings && ring);
      if (!way) return std::nullopt;
      pattern.longest_latency = std::max(pattern.longest_latency, way->longest);
    }
    // A sum does not depend on the order of edges.
    kinds_of_edges[edge.from] += mix_bits(2 * std::uint64_t{way->out} + 1);
    kinds_of_edges[edge.to] += mix_bits(2 * std::uint64_t{way->in} + 2);
    messages.add(edge, way->latency);
  }
  // Ways were followed in `scratch_`, too.
  for (const FoldedSummary::Edge& edge : summary.edges) {
    for (const TreeLoad& load : way_of(edge)->tree) {
      const TreePlace place{list(load.at_sender ? edge.from : edge.to, load.level), load.index,
                            load.up};
      scratch_.add(blocks_.tree_link(place), load.share);
    }
  }
  pattern.payload = scratch_.take();
  pattern.network_messages = messages.most();
  pattern.mean_network_latency = messages.mean_latency();

  auto fold = std::make_shared<DomainFold>();
  Numbers<std::uint64_t> kinds;
  for (const std::uint64_t kind : kinds_of_edges) {
    const auto [number, fresh] = kinds.find(kind);
    if (fresh) fold->first.push_back(static_cast<std::uint32_t>(fold->kind.size()));
    fold->kind.push_back(number);
  }
  // Of the first domain of each kind, the loads by place.
  std::vector<std::map<std::uint32_t, double>> shares(fold->first.size());
  const auto add = [&](std::uint32_t d, const PlaceLoads& loads) {
    if (fold->first[fold->kind[d]] != d) return;
    for (const PlaceLoad& load : loads) shares[fold->kind[d]][load.place] += load.share;
  };
  for (const std::uint32_t d : fold->first) add(d, inside);
  for (const FoldedSummary::Edge& edge : summary.edges) {
    const Way& way = *way_of(edge);
    add(edge.from, parts_[way.out]);
    add(edge.to, parts_[way.in]);
  }
  for (std::uint32_t k = 0; k < shares.size(); ++k) {
    for (const auto& [place, share] : shares[k]) {
      if (share <= 0) continue;
      const ResourceId link = *blocks_.resource({domains_[fold->first[k]], place});
      pattern.payload.push_back({ClusterResources::link_of(link), share});
    }
  }
  std::ranges::sort(pattern.payload, {}, &Hop::link);
  pattern.fold = std::move(fold);
  return pattern;
}

}  // namespace

bool folds(const Blocks& blocks, std::span<const std::uint32_t> ranks) {
  return blocks.levels() > 0 && std::ranges::any_of(ranks, [&](std::uint32_t rank) {
           return blocks.of_rank(rank) != blocks.of_rank(ranks.front());
         });
}

PatternTracer folding_tracer(const Router& router, const Blocks& blocks, LoadMap& scratch,
                             std::span<const std::uint32_t> ranks) {
  struct Looked {
    bool done = false;
    std::optional<FoldedGroup> group;
  };
  return [&router, &blocks, &scratch, ranks, looked = std::make_shared<Looked>()](
             const CollectiveShape& shape, const Algorithm& algorithm,
             const PatternOptions& options) -> std::optional<Pattern> {
    if (algorithm.fold == nullptr) return std::nullopt;
    if (!std::exchange(looked->done, true)) {
      if (auto group = FoldedGroup::of(router, blocks, scratch, ranks)) {
        looked->group.emplace(std::move(*group));
      }
    }
    if (!looked->group) return std::nullopt;
    return (*looked->group)(shape, algorithm, options);
  };
}

}  // namespace flyover
