#include "simulate/footing.hpp"

namespace flyover {

void Footing::clear() {
  for (const std::uint32_t block : order_) number_[block] = absent;
  for (const std::uint32_t list : lists_) owner_[list].number = absent;
  order_.clear();
  lists_.clear();
}

std::uint32_t Footing::add(std::uint32_t block, Digest& lie) {
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

Digest Footing::stand_on(std::span<const std::uint32_t> ranks) {
  clear();
  Digest lie;
  for (const std::uint32_t rank : ranks) {
    const std::uint32_t block = blocks_.of_rank(rank);
    const std::uint32_t number = add(block, lie);
    lie.add(std::uint64_t{number} << 32 | (rank - blocks_.first_rank(block)));
  }
  return lie;
}

}  // namespace flyover
