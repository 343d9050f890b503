#include <algorithm>

#include "domain_tree.hpp"
#include "fold_writer.hpp"
#include "pipeline.hpp"
#include "placement.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// Blocks that follow one another in a tree.
constexpr std::uint32_t chunks_per_tree = 16;

std::uint32_t chunks(const CollectiveShape& shape) {
  return shape.op == CollectiveOp::Barrier ? 1 : chunks_per_tree;
}

Flow flow(const CollectiveShape& shape) {
  switch (shape.op) {
    case CollectiveOp::Broadcast:
      return Flow::Down;
    case CollectiveOp::Reduce:
      return Flow::Up;
    default:
      return Flow::UpDown;
  }
}

bool is_rooted(const CollectiveShape& shape) {
  return shape.op == CollectiveOp::Broadcast || shape.op == CollectiveOp::Reduce;
}

// Domains in a binary tree; in each a chain of its members from the one where the channel enters.
// The chain of the root's domain starts at the root.
RankTree rank_tree(const CollectiveShape& shape, const Placement& placement,
                   const DomainTree& domains, std::uint32_t channel) {
  RankTree tree;
  tree.parent.assign(shape.group.ranks(), none);
  tree.order.reserve(shape.group.ranks());
  std::vector<std::uint32_t> head(placement.domains());
  for (const std::uint32_t domain : domains.order) {
    const std::size_t begin = tree.order.size();
    placement.append_from_entry(domain, channel, tree.order);
    const auto chain = std::span(tree.order).subspan(begin);
    if (is_rooted(shape) && domains.parent[domain] == none) {
      std::rotate(chain.begin(), std::ranges::find(chain, shape.root), chain.end());
    }
    head[domain] = chain.front();
    if (domains.parent[domain] != none) tree.parent[chain[0]] = head[domains.parent[domain]];
    for (std::size_t i = 1; i < chain.size(); ++i) tree.parent[chain[i]] = chain[i - 1];
  }
  return tree;
}

std::vector<RankTree> trees(const CollectiveShape& shape) {
  const Placement placement(shape.group);
  const bool is_barrier = shape.op == CollectiveOp::Barrier;
  const std::uint32_t pair = placement.domains() > 1 && !is_barrier ? 2 : 1;
  std::vector<DomainTree> domains;
  for (std::uint32_t tree = 0; tree < pair; ++tree) {
    domains.push_back(is_rooted(shape) ? double_binary_tree_below(placement.domain_of(shape.root),
                                                                  placement.domains(), tree)
                                       : double_binary_tree(placement.domains(), tree));
  }
  std::vector<RankTree> all;
  for (std::uint32_t channel = 0; channel < (is_barrier ? 1 : shape.channels); ++channel) {
    for (const DomainTree& tree : domains) {
      all.push_back(rank_tree(shape, placement, tree, channel));
    }
  }
  return all;
}

}  // namespace

Schedule tree_schedule(const CollectiveShape& shape, Bytes bytes) {
  return pipeline_schedule(shape, bytes, trees(shape), flow(shape), chunks(shape));
}

Summary tree_summary(const CollectiveShape& shape) {
  return pipeline_summary(shape, trees(shape), flow(shape), chunks(shape));
}

std::optional<FoldedSummary> tree_fold(const CollectiveShape& shape, std::uint32_t domains) {
  constexpr std::uint32_t pair = 2;
  const Placement placement(shape.group);
  const auto members = static_cast<std::uint32_t>(placement.members(0).size());
  const double fraction = 1.0 / (pair * shape.channels);

  FoldedSummary summary;
  FoldWriter inside(members);
  FoldWriter between(members);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::uint32_t entry = placement.entry_member(0, channel);
    for (std::uint32_t i = 1; i < members; ++i) {
      const std::uint32_t above = (entry + i - 1) % members;
      const std::uint32_t below = (entry + i) % members;
      inside.add(below, above, pair * fraction, pair);
      inside.add(above, below, pair * fraction, pair);
    }
    between.add(entry, entry, fraction, 1);
  }
  std::uint32_t depth = 0;
  for (std::uint32_t t = 0; t < pair; ++t) {
    const DomainTree tree = double_binary_tree(domains, t);
    depth = std::max(depth, std::ranges::max(tree.depth));
    for (std::uint32_t d = 0; d < domains; ++d) {
      if (tree.parent[d] == none) continue;
      summary.edges.push_back({d, tree.parent[d], 0});
      summary.edges.push_back({tree.parent[d], d, 0});
    }
  }
  // Up and down again: of the deepest domains to the end of the chain.
  summary.inter_hops = 2 * depth;
  summary.intra_hops = 2 * (members - 1);
  summary.steps = summary.inter_hops + summary.intra_hops + chunks(shape) - 1;
  summary.inside = inside.take();
  summary.between.push_back(between.take());
  return summary;
}

}  // namespace flyover
