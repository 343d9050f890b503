#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/blocks.hpp"

namespace flyover {

// Carries what calls on one list of ranks load over to another that lies alike: the n-th node of
// one is of the n-th's kind of the other and shares switches with the same others. Borrows the
// blocks.
class Likeness {
 public:
  Likeness(const Blocks& blocks, std::span<const std::uint32_t> from,
           std::span<const std::uint32_t> to);

  [[nodiscard]] ResourceId operator()(ResourceId resource) const;

 private:
  const Blocks& blocks_;
  bool same_ = false;
  static constexpr std::uint32_t none = 0xffffffffU;
  std::vector<std::uint32_t> block_;  // By block and by list, that of the other.
  std::vector<std::uint32_t> list_;
};

}  // namespace flyover
