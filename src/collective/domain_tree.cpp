#include "domain_tree.hpp"

#include <algorithm>
#include <numeric>

#include "flyover/collective/schedule.hpp"

namespace flyover {

namespace {

// The tree in which a vertex sits as high as its number divides by two: odd numbers are leaves, 2
// mod 4 sit above them, and 0 on top with one child.
std::uint32_t parent_by_lowest_bit(std::uint32_t vertex, std::uint32_t n) {
  if (vertex == 0) return none;
  const std::uint32_t bit = vertex & (~vertex + 1);
  const std::uint32_t below = vertex - bit;
  const std::uint32_t above = below | (bit << 1);
  return above < n ? above : below;
}

// Renames the vertices of that tree by a permutation.
template <class Rename>
DomainTree renamed(std::uint32_t n, Rename rename) {
  DomainTree tree;
  tree.parent.assign(n, none);
  for (std::uint32_t vertex = 1; vertex < n; ++vertex) {
    tree.parent[rename(vertex)] = rename(parent_by_lowest_bit(vertex, n));
  }
  tree.depth.assign(n, 0);
  for (std::uint32_t vertex = 0; vertex < n; ++vertex) {
    for (std::uint32_t v = tree.parent[vertex]; v != none; v = tree.parent[v]) ++tree.depth[vertex];
  }
  tree.order.resize(n);
  std::iota(tree.order.begin(), tree.order.end(), 0U);
  std::ranges::stable_sort(tree.order, {},
                           [&](std::uint32_t vertex) { return tree.depth[vertex]; });
  return tree;
}

}  // namespace

DomainTree double_binary_tree(std::uint32_t domains, std::uint32_t tree) {
  const std::uint32_t n = domains;
  // Both renamings make leaves of the inner vertices; the mirror needs an even count.
  return renamed(n, [&](std::uint32_t v) {
    if (tree == 0) return v;
    return n % 2 == 0 ? n - 1 - v : (v + 1) % n;
  });
}

DomainTree double_binary_tree_below(std::uint32_t root, std::uint32_t domains, std::uint32_t tree) {
  const std::uint32_t n = domains;
  // As above, among the vertices 1 to n-1.
  return renamed(n, [&](std::uint32_t v) {
    if (tree == 1 && v > 0) v = n % 2 == 1 ? n - v : v % (n - 1) + 1;
    return (v + root) % n;
  });
}

}  // namespace flyover
