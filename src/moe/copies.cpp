#include "flyover/moe/copies.hpp"

#include <algorithm>

namespace flyover {

ExpertGroup expert_group(std::span<const std::uint32_t> domain) {
  ExpertGroup group;
  std::vector<std::uint32_t> seen;  // Domains, in order.
  for (std::uint32_t rank = 0; rank < domain.size(); ++rank) {
    const auto found = std::ranges::find(seen, domain[rank]);
    const auto node = static_cast<std::uint32_t>(found - seen.begin());
    if (found == seen.end()) {
      seen.push_back(domain[rank]);
      group.members.emplace_back();
    }
    group.node.push_back(node);
    group.index.push_back(static_cast<std::uint32_t>(group.members[node].size()));
    group.members[node].push_back(rank);
  }
  return group;
}

}  // namespace flyover
