#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "flyover/collective/algorithms.hpp"

namespace flyover::test {

// How the members of the domains follow one another in the group.
enum class Order : std::uint8_t { InOrder, Interleaved, Shuffled };

// How the members of a domain are spread over rails.
enum class Rails : std::uint8_t {
  OneEach,  // 0, 1, 2, ...
  Shared,   // 0, 0, 1, 1, 2, ...
  Apart,    // From another rail in every domain, so that domains have different rails.
  Single,   // All on rail 0.
};

inline GroupShape group(const std::vector<std::uint32_t>& sizes, Order order = Order::InOrder,
                        Rails rails = Rails::OneEach) {
  struct Member {
    std::uint32_t domain;
    std::uint32_t place;
  };
  std::vector<Member> members;
  for (std::uint32_t d = 0; d < sizes.size(); ++d) {
    for (std::uint32_t i = 0; i < sizes[d]; ++i) members.push_back({d, i});
  }
  if (order == Order::Interleaved) std::ranges::stable_sort(members, {}, &Member::place);
  if (order == Order::Shuffled) {
    std::minstd_rand random(static_cast<unsigned>(members.size() * 31 + sizes.size()));
    for (std::size_t i = members.size(); i > 1; --i)
      std::swap(members[i - 1], members[random() % i]);
  }
  GroupShape shape;
  for (const Member& member : members) {
    shape.domain.push_back(100 + 7 * member.domain);  // Any numbers will do.
    switch (rails) {
      case Rails::OneEach:
        shape.rail.push_back(member.place);
        break;
      case Rails::Shared:
        shape.rail.push_back(member.place / 2);
        break;
      case Rails::Apart:
        shape.rail.push_back(member.place + member.domain);
        break;
      case Rails::Single:
        shape.rail.push_back(0);
        break;
    }
  }
  return shape;
}

// Domains of `size`; the last may be smaller.
inline std::vector<std::uint32_t> domains_of(std::uint32_t size, std::uint32_t ranks) {
  std::vector<std::uint32_t> sizes(ranks / size, size);
  if (ranks % size > 0) sizes.push_back(ranks % size);
  return sizes;
}

inline CollectiveShape shape_of(CollectiveOp op, GroupShape group, std::uint32_t channels = 1,
                                std::uint32_t root = 0) {
  return {.op = op,
          .group = std::move(group),
          .channels = channels,
          .root = root,
          .in_switch_reduction = true,
          .in_network_reduction = true};
}

}  // namespace flyover::test
