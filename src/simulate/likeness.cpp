#include "simulate/likeness.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"

namespace flyover {

Likeness::Likeness(const Blocks& blocks, std::span<const std::uint32_t> from,
                   std::span<const std::uint32_t> to)
    : blocks_(blocks),
      same_(std::ranges::equal(from, to)) {
  if (same_) return;
  require(from.size() == to.size(), "groups that lie alike are of one size");
  block_.assign(blocks.size(), none);
  list_.assign(blocks.lists(), none);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint32_t source = blocks.of_rank(from[i]);
    if (block_[source] != none) continue;
    const std::uint32_t target = block_[source] = blocks.of_rank(to[i]);
    if (blocks.levels() == 0) continue;
    std::uint32_t a = blocks.list(source);
    std::uint32_t b = blocks.list(target);
    for (std::uint32_t level = 0; level < blocks.levels() && list_[a] == none; ++level) {
      list_[a] = b;
      a = blocks.above(a);
      b = blocks.above(b);
    }
  }
}

ResourceId Likeness::operator()(ResourceId resource) const {
  if (same_) return resource;
  if (const auto place = blocks_.place(resource)) {
    return *blocks_.resource({block_[place->block], place->index});
  }
  TreePlace place = blocks_.tree_place(ClusterResources::link_of(resource));
  place.list = list_[place.list];
  return ClusterResources::of(blocks_.tree_link(place));
}

}  // namespace flyover
