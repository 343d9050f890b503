#pragma once

// Every algorithm, one file each. They are reached through the table in algorithms.cpp, which sees
// to it that the shape is sound, of the right collective, supported, and of two ranks or more.

#include <optional>
#include <string>

#include "flyover/collective/algorithms.hpp"

namespace flyover {

// All-reduce, all-gather, reduce-scatter.
[[nodiscard]] Schedule ring_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary ring_summary(const CollectiveShape& shape);
[[nodiscard]] std::optional<FoldedSummary> ring_fold(const CollectiveShape& shape,
                                                     std::uint32_t domains);

// Broadcast, reduce.
[[nodiscard]] Schedule rooted_ring_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary rooted_ring_summary(const CollectiveShape& shape);

// All-reduce, broadcast, reduce, barrier.
[[nodiscard]] Schedule tree_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary tree_summary(const CollectiveShape& shape);
// Of its all-reduce.
[[nodiscard]] std::optional<FoldedSummary> tree_fold(const CollectiveShape& shape,
                                                     std::uint32_t domains);

// All-reduce, all-gather, reduce-scatter.
[[nodiscard]] std::string nvls_unsupported(const CollectiveShape& shape);
[[nodiscard]] Schedule nvls_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary nvls_summary(const CollectiveShape& shape);
// Its all-reduce over several domains, added up by the network's switches.
[[nodiscard]] Schedule nvls_network_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary nvls_network_summary(const CollectiveShape& shape);

// All-reduce.
[[nodiscard]] std::string collnet_unsupported(const CollectiveShape& shape);
[[nodiscard]] Schedule collnet_direct_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary collnet_direct_summary(const CollectiveShape& shape);
[[nodiscard]] Schedule collnet_chain_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary collnet_chain_summary(const CollectiveShape& shape);

// All-reduce.
[[nodiscard]] std::string nvls_tree_unsupported(const CollectiveShape& shape);
[[nodiscard]] Schedule nvls_tree_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary nvls_tree_summary(const CollectiveShape& shape);
[[nodiscard]] std::optional<FoldedSummary> nvls_tree_fold(const CollectiveShape& shape,
                                                          std::uint32_t domains);

// All-gather, reduce-scatter.
[[nodiscard]] Schedule pat_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary pat_summary(const CollectiveShape& shape);
// None for domains of more than one member.
[[nodiscard]] std::optional<FoldedSummary> pat_fold(const CollectiveShape& shape,
                                                    std::uint32_t domains);

// All-reduce (any number of ranks), all-gather, reduce-scatter (powers of two).
[[nodiscard]] std::string recursive_unsupported(const CollectiveShape& shape);
[[nodiscard]] Schedule recursive_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary recursive_summary(const CollectiveShape& shape);

// All-reduce, all-gather, reduce-scatter.
[[nodiscard]] std::string all_pairs_unsupported(const CollectiveShape& shape);
[[nodiscard]] Schedule all_pairs_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary all_pairs_summary(const CollectiveShape& shape);

// All-reduce.
[[nodiscard]] Schedule one_shot_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary one_shot_summary(const CollectiveShape& shape);

// All-to-all, scatter, gather, send/recv.
[[nodiscard]] Schedule direct_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary direct_summary(const CollectiveShape& shape);

// All-to-all.
[[nodiscard]] Schedule pairwise_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary pairwise_summary(const CollectiveShape& shape);
[[nodiscard]] Schedule hierarchical_schedule(const CollectiveShape& shape, Bytes bytes);
[[nodiscard]] Summary hierarchical_summary(const CollectiveShape& shape);

// The n x n blocks of an all-to-all: block s n + t goes from rank s to rank t.
void add_all_to_all_blocks(Schedule& schedule, Bytes bytes);

}  // namespace flyover
