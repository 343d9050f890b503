#include "flyover/collective/algorithms.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "flyover/base/error.hpp"
#include "variants.hpp"

namespace flyover {

namespace {

void require_sound(const CollectiveShape& shape, CollectiveOp op) {
  require(shape.op == op, "a shape of the algorithm's own collective");
  require(shape.group.ranks() > 0, "a group of one rank or more");
  require(shape.group.rail.size() == shape.group.domain.size(), "a rail for every rank");
  require(shape.root < shape.group.ranks(), "a root inside the group");
  // Trees number two channels for each.
  require(shape.channels > 0 && shape.channels <= std::numeric_limits<std::uint16_t>::max() / 2,
          "between 1 and 32767 channels");
}

std::string always(const CollectiveShape&) {
  return {};
}

// Puts what all algorithms have in common around one of them.
template <CollectiveOp op, auto reason, auto plan, auto sum_up>
constexpr Algorithm entry(AlgorithmId id, std::string_view summary,
                          std::optional<FoldedSummary> (*fold)(const CollectiveShape&,
                                                               std::uint32_t) = nullptr) {
  return {.id = id,
          .op = op,
          .summary = summary,
          .unsupported =
              [](const CollectiveShape& shape) {
                require_sound(shape, op);
                return reason(shape);
              },
          .schedule =
              [](const CollectiveShape& shape, Bytes bytes) {
                require_sound(shape, op);
                require(reason(shape).empty(), "a shape that the algorithm supports");
                if (shape.group.ranks() > 1) return plan(shape, bytes);
                Schedule alone;
                alone.op = op;
                alone.ranks = 1;
                alone.dependency_begin = {0};
                return alone;
              },
          .summarise =
              [](const CollectiveShape& shape) {
                require_sound(shape, op);
                require(reason(shape).empty(), "a shape that the algorithm supports");
                if (shape.group.ranks() > 1) return sum_up(shape);
                Summary alone;
                alone.ranks = 1;
                return alone;
              },
          .fold = fold};
}

using enum CollectiveOp;

constexpr std::array table = {
    entry<AllReduce, always, ring_schedule, ring_summary>(
        AlgorithmId::Ring, "reduce-scatter, then all-gather around rings: 2(n-1) steps of S/n",
        ring_fold),
    entry<AllReduce, always, tree_schedule, tree_summary>(
        AlgorithmId::Tree, "two complementary binary trees of domains, a chain in each domain",
        tree_fold),
    entry<AllReduce, nvls_unsupported, nvls_schedule, nvls_summary>(
        AlgorithmId::Nvls,
        "reduced and multicast by the switches of one domain, or of the network too"),
    entry<AllReduce, nvls_tree_unsupported, nvls_tree_schedule, nvls_tree_summary>(
        AlgorithmId::NvlsTree, "NVLS in every domain, double binary trees between the domains",
        nvls_tree_fold),
    entry<AllReduce, collnet_unsupported, collnet_direct_schedule, collnet_direct_summary>(
        AlgorithmId::CollnetDirect,
        "gathered by a GPU per NIC, added up by the network's switches (SHARP)"),
    entry<AllReduce, collnet_unsupported, collnet_chain_schedule, collnet_chain_summary>(
        AlgorithmId::CollnetChain,
        "gathered along a chain in each domain, added up by the network's switches (SHARP)"),
    entry<AllReduce, recursive_unsupported, recursive_schedule, recursive_summary>(
        AlgorithmId::RecursiveDoubling, "recursive halving, then doubling: 2 log2(n) steps"),
    entry<AllReduce, all_pairs_unsupported, all_pairs_schedule, all_pairs_summary>(
        AlgorithmId::AllPairs,
        "every rank sends each its shard at once, and each its sum to all: 2 steps in a domain"),
    entry<AllReduce, always, one_shot_schedule, one_shot_summary>(
        AlgorithmId::OneShot, "every rank sends everything to every other: 1 step"),
    entry<AllGather, always, ring_schedule, ring_summary>(
        AlgorithmId::Ring, "every block once around rings: n-1 steps of S/n", ring_fold),
    entry<AllGather, nvls_unsupported, nvls_schedule, nvls_summary>(
        AlgorithmId::Nvls, "multicast by the switches of one domain"),
    entry<AllGather, always, pat_schedule, pat_summary>(
        AlgorithmId::Pat, "a binomial tree from every rank, all at once, far hops first", pat_fold),
    entry<AllGather, recursive_unsupported, recursive_schedule, recursive_summary>(
        AlgorithmId::RecursiveDoubling, "twice the data in each of log2(n) steps"),
    entry<AllGather, all_pairs_unsupported, all_pairs_schedule, all_pairs_summary>(
        AlgorithmId::AllPairs, "every rank sends its block to all at once, over counterparts"),
    entry<ReduceScatter, always, ring_schedule, ring_summary>(
        AlgorithmId::Ring, "every block once around rings: n-1 steps of S/n", ring_fold),
    entry<ReduceScatter, nvls_unsupported, nvls_schedule, nvls_summary>(
        AlgorithmId::Nvls, "reduced by the switches of one domain"),
    entry<ReduceScatter, always, pat_schedule, pat_summary>(
        AlgorithmId::Pat, "a binomial tree to every rank, all at once, near hops first", pat_fold),
    entry<ReduceScatter, recursive_unsupported, recursive_schedule, recursive_summary>(
        AlgorithmId::RecursiveDoubling, "half the data in each of log2(n) steps"),
    entry<ReduceScatter, all_pairs_unsupported, all_pairs_schedule, all_pairs_summary>(
        AlgorithmId::AllPairs, "every rank sends each its shard at once, over counterparts"),
    entry<AllToAll, always, direct_schedule, direct_summary>(AlgorithmId::Direct,
                                                             "every pair at once"),
    entry<AllToAll, always, pairwise_schedule, pairwise_summary>(
        AlgorithmId::Pairwise, "n-1 steps, in step k to the k-th next rank"),
    entry<AllToAll, always, hierarchical_schedule, hierarchical_summary>(
        AlgorithmId::Hierarchical,
        "over the member of the own domain on the receiver's rail (PXN)"),
    entry<Broadcast, always, rooted_ring_schedule, rooted_ring_summary>(
        AlgorithmId::Ring, "a pipeline along rings from the root"),
    entry<Broadcast, always, tree_schedule, tree_summary>(
        AlgorithmId::Tree, "two complementary binary trees below the root's domain"),
    entry<Reduce, always, rooted_ring_schedule, rooted_ring_summary>(
        AlgorithmId::Ring, "a pipeline along rings to the root"),
    entry<Reduce, always, tree_schedule, tree_summary>(
        AlgorithmId::Tree, "two complementary binary trees below the root's domain"),
    entry<Scatter, always, direct_schedule, direct_summary>(AlgorithmId::Direct,
                                                            "from the root to every rank at once"),
    entry<Gather, always, direct_schedule, direct_summary>(AlgorithmId::Direct,
                                                           "from every rank to the root at once"),
    entry<SendRecv, always, direct_schedule, direct_summary>(AlgorithmId::Direct,
                                                             "from every rank to the next at once"),
    entry<Barrier, always, tree_schedule, tree_summary>(
        AlgorithmId::Tree, "an all-reduce of one block up and down one tree"),
};

}  // namespace

std::span<const Algorithm> algorithms() {
  return table;
}

std::vector<const Algorithm*> algorithms(CollectiveOp op) {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : table) {
    if (algorithm.op == op) found.push_back(&algorithm);
  }
  return found;
}

const Algorithm* find_algorithm(CollectiveOp op, AlgorithmId id) {
  const auto* const found = std::ranges::find_if(
      table, [&](const Algorithm& algorithm) { return algorithm.op == op && algorithm.id == id; });
  return found == table.end() ? nullptr : found;
}

}  // namespace flyover
