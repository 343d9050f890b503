#pragma once

#include <cstdint>
#include <vector>

namespace flyover {

// A binary tree over domains 0 to n-1.
struct DomainTree {
  std::vector<std::uint32_t> parent;  // none at the root.
  std::vector<std::uint32_t> order;   // Parents before their children.
  std::vector<std::uint32_t> depth;   // Hops from the root.
};

// The two trees of a double binary tree (Sanders, Speck & Traeff 2009): hardly a domain has
// children in both, so that each carries about the whole data once, in and out. tree: 0 or 1.
[[nodiscard]] DomainTree double_binary_tree(std::uint32_t domains, std::uint32_t tree);

// The same below a root of choice, which sends half of the data into each tree.
[[nodiscard]] DomainTree double_binary_tree_below(std::uint32_t root, std::uint32_t domains,
                                                  std::uint32_t tree);

}  // namespace flyover
