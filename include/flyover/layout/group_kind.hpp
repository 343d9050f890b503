#pragma once

// The kinds of groups that exchange messages in a training step, and who is in them.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "flyover/layout/layout.hpp"

namespace flyover {

enum class GroupKind : std::uint8_t {
  Tensor,
  Context,
  Expert,
  ExpertTensor,
  Pipeline,
  Shard,        // Ranks that share one copy of the states of dense parameters; with
                // Sharding::None all that hold the same ones. With dualpipe the mirror stage's
                // ranks are among them, for both copies are reduced together.
  Replica,      // Ranks that hold the same shard (HSDP); of one rank without shard groups.
  ExpertShard,  // The same two of experts.
  ExpertReplica,
  Embedding,  // First and last stage, which share a tied embedding; for the others, and where
              // one stage has both (zb-v, dualpipe), of one rank.
  Model,      // All ranks that hold a part of one copy of the model and its states: norms of
              // gradients. Tensor x pipeline, and as many neighbours of data x context as hold
              // all shards and experts.
};
inline constexpr std::size_t group_kinds = 11;
// "tp", "cp", "ep", "etp", "pp", "dp", "dp-replica", "edp", "edp-replica", "embedding", "model":
// families of groups in workloads, keys of breakdowns.
[[nodiscard]] std::string_view to_string(GroupKind kind);

// Ranks of the group of this kind that `rank` is in, ascending; {rank} where the layout does not
// divide that dimension. Shard groups are runs of neighbours of the data x context group. O(size).
// Requires a layout without problems.
[[nodiscard]] std::vector<std::uint32_t> group_of(const Layout& layout, GroupKind kind,
                                                  std::uint32_t rank);
[[nodiscard]] std::uint32_t group_size(const Layout& layout, GroupKind kind);

// The pipeline stage of a rank, and the rank in the same place of another stage.
[[nodiscard]] std::uint32_t stage_of_rank(const Layout& layout, std::uint32_t rank);
[[nodiscard]] std::uint32_t rank_in_stage(const Layout& layout, std::uint32_t rank,
                                          std::uint32_t stage);

}  // namespace flyover
