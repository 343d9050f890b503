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
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint32_t source = blocks.of_rank(from[i]);
    const std::uint32_t target = blocks.of_rank(to[i]);
    if (!block_.try_emplace(source, target).second || blocks.levels() == 0) continue;
    std::uint32_t a = blocks.list(source);
    std::uint32_t b = blocks.list(target);
    for (std::uint32_t level = 0; level < blocks.levels(); ++level) {
      if (!list_.try_emplace(a, b).second) break;
      a = blocks.above(a);
      b = blocks.above(b);
    }
  }
}

ResourceId Likeness::operator()(ResourceId resource) const {
  if (same_) return resource;
  if (const auto place = blocks_.place(resource)) {
    return *blocks_.resource({block_.at(place->block), place->index});
  }
  TreePlace place = blocks_.tree_place(ClusterResources::link_of(resource));
  place.list = list_.at(place.list);
  return ClusterResources::of(blocks_.tree_link(place));
}

}  // namespace flyover
