#include "simulate/folded_group.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulate/digest.hpp"

namespace flyover {

namespace {

constexpr std::uint32_t most_levels = 3;

// Edges of a domain, out and in, by the level at which they turn.
using Degrees = std::array<std::uint32_t, 2 * (most_levels + 1)>;

GroupShape first_domain(const GroupShape& all) {
  GroupShape first;
  for (std::uint32_t i = 0; i < all.ranks() && all.domain[i] == all.domain.front(); ++i) {
    first.domain.push_back(all.domain[i]);
    first.rail.push_back(all.rail[i]);
  }
  return first;
}

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
  };
  struct TreeLoad {
    bool at_sender = false;  // Whose list it is above, else the receiver's.
    std::uint32_t level = 0;
    std::uint32_t index = 0;
    bool up = false;
    double share = 0;
  };
  // What a member's bytes load on their way from one domain to another, by how these lie.
  struct Way {
    std::vector<PlaceLoad> out;
    std::vector<PlaceLoad> in;
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
  [[nodiscard]] std::vector<PlaceLoad> follow_inside(const FoldedSummary& summary,
                                                     Pattern& pattern);
  [[nodiscard]] std::optional<Way> follow_between(const FoldedSummary& summary, std::uint32_t from,
                                                  std::uint32_t to, bool exit_by_rail);

  const Router& router_;
  const Blocks& blocks_;
  LoadMap& scratch_;
  std::vector<std::uint32_t> domains_;  // Blocks, in order of first rank.
  std::vector<std::uint32_t> members_;  // Of every domain, GPUs in order of rails.
};

std::optional<FoldedGroup> FoldedGroup::of(const Router& router, const Blocks& blocks,
                                           LoadMap& scratch, std::span<const std::uint32_t> ranks) {
  if (blocks.levels() == 0 || blocks.levels() > most_levels) return std::nullopt;
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
std::vector<FoldedGroup::PlaceLoad> FoldedGroup::follow_inside(const FoldedSummary& summary,
                                                               Pattern& pattern) {
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
  std::vector<PlaceLoad> loads;
  for (const Hop& hop : scratch_.take()) {
    loads.push_back({blocks_.place(ClusterResources::of(hop.link))->index, hop.share});
  }
  return loads;
}

std::optional<FoldedGroup::Way> FoldedGroup::follow_between(const FoldedSummary& summary,
                                                            std::uint32_t from, std::uint32_t to,
                                                            bool exit_by_rail) {
  const auto rail = [&](std::uint32_t member) { return router_.rail(rank(from, member)); };
  Way way;
  for (const MemberLoad& load : summary.between) {
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
        way.out.push_back({place->index, hop.share});
      } else if (place->block == domains_[to]) {
        way.in.push_back({place->index, hop.share});
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
  return way;
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
  const FoldedSummary summary = algorithm.fold(domain, static_cast<std::uint32_t>(domains_.size()));

  Pattern pattern;
  pattern.steps = summary.steps;
  pattern.domain_hops = summary.intra_hops;
  pattern.network_hops = summary.inter_hops;
  const std::vector<PlaceLoad> inside = follow_inside(summary, pattern);

  std::array<std::optional<Way>, most_levels + 1> ways;
  std::vector<Degrees> degrees(domains_.size());
  std::vector<std::uint32_t> out_degree(domains_.size());
  double latency = 0;
  for (const auto& [from, to] : summary.edges) {
    const std::uint32_t turn = meeting(from, to);
    std::optional<Way>& way = ways[turn];
    if (!way) {
      way = follow_between(summary, from, to, options.rail_rings && ring);
      if (!way) return std::nullopt;
      pattern.longest_latency = std::max(pattern.longest_latency, way->longest);
    }
    ++degrees[from][turn];
    ++degrees[to][most_levels + 1 + turn];
    ++out_degree[from];
    latency += way->latency;
  }
  for (const auto& [from, to] : summary.edges) {
    for (const TreeLoad& load : ways[meeting(from, to)]->tree) {
      const TreePlace place{list(load.at_sender ? from : to, load.level), load.index, load.up};
      scratch_.add(blocks_.tree_link(place), load.share);
    }
  }
  pattern.payload = scratch_.take();

  auto fold = std::make_shared<DomainFold>();
  Numbers<Degrees> kinds;
  std::map<std::uint32_t, double> shares;
  for (std::uint32_t d = 0; d < domains_.size(); ++d) {
    const auto [kind, fresh] = kinds.find(degrees[d]);
    fold->kind.push_back(kind);
    if (!fresh) continue;
    fold->first.push_back(d);
    shares.clear();
    for (const PlaceLoad& load : inside) shares[load.place] += load.share;
    for (std::uint32_t turn = 0; turn <= most_levels; ++turn) {
      if (!ways[turn]) continue;
      for (const PlaceLoad& load : ways[turn]->out) {
        shares[load.place] += degrees[d][turn] * load.share;
      }
      for (const PlaceLoad& load : ways[turn]->in) {
        shares[load.place] += degrees[d][most_levels + 1 + turn] * load.share;
      }
    }
    for (const auto& [place, share] : shares) {
      if (share <= 0) continue;
      const ResourceId link = *blocks_.resource({domains_[d], place});
      pattern.payload.push_back({ClusterResources::link_of(link), share});
    }
  }
  std::ranges::sort(pattern.payload, {}, &Hop::link);
  pattern.fold = std::move(fold);

  std::vector<std::uint32_t> sent(members_.size());
  std::uint32_t edges = 0;
  for (const MemberLoad& load : summary.between) {
    sent[load.from] += load.channels;
    edges += load.channels;
  }
  pattern.network_messages = std::ranges::max(sent) * std::ranges::max(out_degree);
  pattern.mean_network_latency = Duration{static_cast<Duration::rep>(
      latency / (static_cast<double>(edges) * static_cast<double>(summary.edges.size())))};
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
