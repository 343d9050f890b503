#include "flyover/layout/group_kind.hpp"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

using namespace flyover;

namespace {

using Lists = std::vector<std::vector<std::uint32_t>>;
using enum Dimension;

// Sizes that divide each other and sizes that do not.
std::vector<Layout> layouts() {
  std::vector<Layout> result;
  std::array<Dimension, 5> order = {Tensor, Context, Expert, Data, Pipeline};
  std::ranges::sort(order);
  do {
    for (const auto& [t, c, p, d, e, etp] : {std::array<std::uint32_t, 6>{1, 1, 1, 1, 1, 1},
                                             {2, 1, 3, 4, 1, 1},
                                             {2, 3, 2, 4, 4, 2},
                                             {3, 1, 5, 2, 2, 3},
                                             {1, 2, 3, 6, 4, 1},
                                             {4, 1, 1, 6, 3, 2},
                                             {2, 2, 4, 3, 1, 4}}) {
      Layout layout;
      layout.tensor = t;
      layout.context = c;
      layout.pipeline = p;
      layout.data = d;
      layout.expert = e;
      layout.expert_tensor = etp;
      layout.order = order;
      result.push_back(layout);
    }
  } while (std::ranges::next_permutation(order).found);
  return result;
}

// Every rank's group, once each, by first rank.
Lists all_of(const Layout& layout, GroupKind kind) {
  Lists result;
  for (std::uint32_t rank = 0; rank < ranks(layout); ++rank) {
    std::vector<std::uint32_t> group = group_of(layout, kind, rank);
    REQUIRE(std::ranges::is_sorted(group));
    REQUIRE(std::ranges::binary_search(group, rank));
    if (group.front() == rank) {
      result.push_back(std::move(group));
    } else {
      REQUIRE(group_of(layout, kind, group.front()) == group);
    }
  }
  return result;
}

void check_sizes(const Lists& groups, std::uint32_t size) {
  for (const auto& group : groups) REQUIRE(group.size() == size);
}

}  // namespace

TEST_CASE("a rank's group is the one that the list of groups has, in any order of ranks",
          "[group_kind]") {
  for (const Layout& layout : layouts()) {
    const Groups all = groups(layout);
    REQUIRE(all_of(layout, GroupKind::Tensor) == all.tensor);
    REQUIRE(all_of(layout, GroupKind::Context) == all.context);
    REQUIRE(all_of(layout, GroupKind::Expert) == all.expert);
    REQUIRE(all_of(layout, GroupKind::ExpertTensor) == all.expert_tensor);
    REQUIRE(all_of(layout, GroupKind::Pipeline) == all.pipeline);
    // All of them share a copy of the states.
    REQUIRE(all_of(layout, GroupKind::Shard) == all.data_context);
    REQUIRE(all_of(layout, GroupKind::ExpertShard) == all.expert_data);
    REQUIRE(group_size(layout, GroupKind::Replica) == 1);
    REQUIRE(group_size(layout, GroupKind::ExpertReplica) == 1);
  }
}

TEST_CASE("without sharding the groups of gradients are the same", "[group_kind]") {
  for (Layout layout : layouts()) {
    layout.sharding = Sharding::None;
    const Groups all = groups(layout);
    REQUIRE(all_of(layout, GroupKind::Shard) == all.data_context);
    REQUIRE(all_of(layout, GroupKind::ExpertShard) == all.expert_data);
    check_sizes(all_of(layout, GroupKind::Replica), 1);
    check_sizes(all_of(layout, GroupKind::ExpertReplica), 1);
  }
}

TEST_CASE("every rank of a group of any kind finds the same group, of the size said",
          "[group_kind]") {
  for (Layout layout : layouts()) {
    for (const Sharding sharding : {Sharding::None, Sharding::Parameters}) {
      layout.sharding = sharding;
      for (std::size_t k = 0; k < group_kinds; ++k) {
        const auto kind = static_cast<GroupKind>(k);
        if (kind == GroupKind::Embedding) continue;
        check_sizes(all_of(layout, kind), group_size(layout, kind));
      }
    }
  }
}

TEST_CASE("shard groups are neighbours, and their replicas lie across", "[group_kind]") {
  Layout layout;
  layout.tensor = 2;
  layout.context = 2;
  layout.data = 4;
  layout.sharding = Sharding::Parameters;
  layout.shard_group = 4;
  CHECK(group_of(layout, GroupKind::Shard, 0) == std::vector<std::uint32_t>{0, 2, 4, 6});
  CHECK(group_of(layout, GroupKind::Shard, 13) == std::vector<std::uint32_t>{9, 11, 13, 15});
  CHECK(group_of(layout, GroupKind::Replica, 0) == std::vector<std::uint32_t>{0, 8});
  CHECK(group_of(layout, GroupKind::Replica, 13) == std::vector<std::uint32_t>{5, 13});
  // Two runs of the eight ranks that hold an expert.
  layout.expert = 2;
  CHECK(group_of(layout, GroupKind::ExpertShard, 0) == std::vector<std::uint32_t>{0, 2, 4, 6});
  CHECK(group_of(layout, GroupKind::ExpertReplica, 3) == std::vector<std::uint32_t>{3, 11});

  for (Layout sharded : layouts()) {
    const std::uint32_t replicas = sharded.context * sharded.data;
    sharded.sharding = Sharding::Gradients;
    for (std::uint32_t length = 1; length <= replicas; ++length) {
      if (replicas % length != 0 || expert_data(sharded) % (replicas / length) != 0) continue;
      sharded.shard_group = length;
      check_sizes(all_of(sharded, GroupKind::Shard), shard_ranks(sharded));
      check_sizes(all_of(sharded, GroupKind::ExpertShard), expert_shard_ranks(sharded));
      check_sizes(all_of(sharded, GroupKind::Replica), replicas / length);
      check_sizes(all_of(sharded, GroupKind::ExpertReplica), replicas / length);
      check_sizes(all_of(sharded, GroupKind::Model),
                  sharded.tensor * sharded.pipeline * shard_ranks(sharded));
      // A shard and its replicas meet in one rank.
      for (std::uint32_t rank = 0; rank < ranks(sharded); ++rank) {
        const auto shard = group_of(sharded, GroupKind::Shard, rank);
        const auto replica = group_of(sharded, GroupKind::Replica, rank);
        std::vector<std::uint32_t> both;
        std::ranges::set_intersection(shard, replica, std::back_inserter(both));
        REQUIRE(both == std::vector<std::uint32_t>{rank});
      }
    }
  }
}

TEST_CASE("a copy of the model is tensor x pipeline, and all shards and experts", "[group_kind]") {
  Layout layout;
  layout.tensor = 2;
  layout.pipeline = 2;
  layout.data = 4;
  layout.sharding = Sharding::None;
  CHECK(group_of(layout, GroupKind::Model, 3) == std::vector<std::uint32_t>{2, 3, 10, 11});
  layout.expert = 4;
  CHECK(group_of(layout, GroupKind::Model, 1) ==
        std::vector<std::uint32_t>{0, 1, 2, 3, 8, 9, 10, 11});
  // 2 and 3 x 1 meet in six ranks of a stage.
  layout.data = 6;
  layout.expert = 3;
  CHECK(group_size(layout, GroupKind::Model) == 12);
  layout.sharding = Sharding::Optimizer;
  std::vector<std::uint32_t> all(24);
  std::iota(all.begin(), all.end(), 0U);
  CHECK(group_of(layout, GroupKind::Model, 5) == all);
}

TEST_CASE("the first and the last stage share a tied embedding", "[group_kind]") {
  Layout layout;
  layout.tensor = 2;
  layout.pipeline = 3;
  CHECK(group_of(layout, GroupKind::Embedding, 1) == std::vector<std::uint32_t>{1, 5});
  CHECK(group_of(layout, GroupKind::Embedding, 4) == std::vector<std::uint32_t>{0, 4});
  CHECK(group_of(layout, GroupKind::Embedding, 3) == std::vector<std::uint32_t>{3});
  CHECK(group_size(layout, GroupKind::Embedding) == 2);
  // A V ends where it began.
  layout.schedule = PipelineSchedule::ZeroBubbleV;
  layout.virtual_stages = 2;
  CHECK(group_of(layout, GroupKind::Embedding, 4) == std::vector<std::uint32_t>{4});
  CHECK(group_size(layout, GroupKind::Embedding) == 1);
  layout = Layout{};
  CHECK(group_of(layout, GroupKind::Embedding, 0) == std::vector<std::uint32_t>{0});
}

TEST_CASE("the two copies of dualpipe's parameters are reduced together", "[group_kind]") {
  Layout layout;
  layout.schedule = PipelineSchedule::DualPipe;
  layout.tensor = 2;
  layout.pipeline = 4;
  layout.data = 2;
  layout.global_batch = 16;
  // Ranks 0 to 3 are stage 0, 12 to 15 stage 3: the same parameters by tensor rank.
  CHECK(group_of(layout, GroupKind::Shard, 1) == std::vector<std::uint32_t>{1, 3, 13, 15});
  CHECK(group_of(layout, GroupKind::Shard, 15) == std::vector<std::uint32_t>{1, 3, 13, 15});
  CHECK(group_of(layout, GroupKind::Shard, 6) == std::vector<std::uint32_t>{4, 6, 8, 10});
  CHECK(group_size(layout, GroupKind::Shard) == 4);
  CHECK(shard_ranks(layout) == 4);
  // Shard groups of one rank and its mirror image.
  layout.shard_group = 1;
  CHECK(group_of(layout, GroupKind::Shard, 3) == std::vector<std::uint32_t>{3, 15});
  CHECK(group_of(layout, GroupKind::Replica, 3) == std::vector<std::uint32_t>{1, 3});
  CHECK(group_size(layout, GroupKind::Shard) == 2);
  layout.shard_group = 0;
  // Experts likewise, and without sharding.
  layout.expert = 2;
  layout.expert_tensor = 2;
  CHECK(group_of(layout, GroupKind::ExpertShard, 2) == std::vector<std::uint32_t>{2, 14});
  CHECK(expert_shard_ranks(layout) == 2);
  layout.sharding = Sharding::None;
  CHECK(group_of(layout, GroupKind::Shard, 1) == std::vector<std::uint32_t>{1, 3, 13, 15});
  CHECK(group_size(layout, GroupKind::ExpertShard) == 2);
  // Every end has an embedding and a head.
  CHECK(group_size(layout, GroupKind::Embedding) == 1);
  CHECK(group_of(layout, GroupKind::Embedding, 12) == std::vector<std::uint32_t>{12});
}

TEST_CASE("a rank's place is the same in every stage", "[group_kind]") {
  for (const Layout& layout : layouts()) {
    for (std::uint32_t rank = 0; rank < ranks(layout); ++rank) {
      const auto stages = group_of(layout, GroupKind::Pipeline, rank);
      REQUIRE(stages[stage_of_rank(layout, rank)] == rank);
      for (std::uint32_t stage = 0; stage < layout.pipeline; ++stage) {
        REQUIRE(rank_in_stage(layout, rank, stage) == stages[stage]);
      }
    }
  }
}

TEST_CASE("kinds of groups have names", "[group_kind]") {
  CHECK(to_string(GroupKind::Tensor) == "tp");
  CHECK(to_string(GroupKind::Shard) == "dp");
  CHECK(to_string(GroupKind::ExpertReplica) == "edp-replica");
  CHECK(to_string(GroupKind::Model) == "model");
}
