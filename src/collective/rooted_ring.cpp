#include <algorithm>

#include "pipeline.hpp"
#include "placement.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

// As many chunks as ranks, as around a whole ring: the pipeline is full half of the time or more.
constexpr std::uint32_t fewest_chunks = 16;

std::uint32_t chunks(const CollectiveShape& shape) {
  return std::max(fewest_chunks, shape.group.ranks());
}

Flow flow(const CollectiveShape& shape) {
  return shape.op == CollectiveOp::Broadcast ? Flow::Down : Flow::Up;
}

// The rings, cut open where data would come back to the root (reduce: where it would leave the
// root).
std::vector<RankTree> chains(const CollectiveShape& shape) {
  const std::uint32_t n = shape.group.ranks();
  const Placement placement(shape.group);
  std::vector<RankTree> trees(shape.channels);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    RankTree& chain = trees[channel];
    chain.order = placement.ring(channel);
    if (shape.op == CollectiveOp::Reduce) std::ranges::reverse(chain.order);
    std::rotate(chain.order.begin(), std::ranges::find(chain.order, shape.root), chain.order.end());
    chain.parent.assign(n, none);
    for (std::uint32_t i = 1; i < n; ++i) chain.parent[chain.order[i]] = chain.order[i - 1];
  }
  return trees;
}

}  // namespace

Schedule rooted_ring_schedule(const CollectiveShape& shape, Bytes bytes) {
  return pipeline_schedule(shape, bytes, chains(shape), flow(shape), chunks(shape));
}

Summary rooted_ring_summary(const CollectiveShape& shape) {
  return pipeline_summary(shape, chains(shape), flow(shape), chunks(shape));
}

}  // namespace flyover
