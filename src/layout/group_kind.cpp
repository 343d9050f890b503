#include "flyover/layout/group_kind.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "flyover/base/error.hpp"
#include "flyover/layout/schedule.hpp"
#include "layout/place.hpp"

namespace flyover {

namespace {

// The ranks that differ in some dimensions alone, as positions of ascending rank.
class Line {
 public:
  Line(const Layout& layout, const Sizes& sizes, std::initializer_list<Dimension> within) {
    for (const Dimension dimension : layout.order) {
      if (std::ranges::find(within, dimension) == within.end()) continue;
      steps_[count_++] = {stride(layout, sizes, dimension), size_of(sizes, dimension)};
    }
  }

  [[nodiscard]] std::uint32_t size() const {
    std::uint32_t product = 1;
    for (std::size_t k = 0; k < count_; ++k) product *= steps_[k].size;
    return product;
  }
  [[nodiscard]] std::uint32_t position(std::uint32_t rank) const {
    std::uint32_t result = 0;
    std::uint32_t weight = 1;
    for (std::size_t k = 0; k < count_; ++k) {
      result += rank / steps_[k].stride % steps_[k].size * weight;
      weight *= steps_[k].size;
    }
    return result;
  }
  // From the rank at position 0.
  [[nodiscard]] std::uint32_t offset(std::uint32_t position) const {
    std::uint32_t result = 0;
    for (std::size_t k = 0; k < count_; ++k) {
      result += position % steps_[k].size * steps_[k].stride;
      position /= steps_[k].size;
    }
    return result;
  }
  // `count` ranks of the line of `rank`, from a position on.
  [[nodiscard]] std::vector<std::uint32_t> ranks(std::uint32_t rank, std::uint32_t from,
                                                 std::uint32_t count, std::uint32_t step) const {
    const std::uint32_t first = rank - offset(position(rank));
    std::vector<std::uint32_t> result(count);
    for (std::uint32_t k = 0; k < count; ++k) result[k] = first + offset(from + k * step);
    return result;
  }
  [[nodiscard]] std::vector<std::uint32_t> all(std::uint32_t rank) const {
    return ranks(rank, 0, size(), 1);
  }
  // The run of `length` neighbours that the rank is in, and the ranks in its place of all runs.
  [[nodiscard]] std::vector<std::uint32_t> run(std::uint32_t rank, std::uint32_t length) const {
    return ranks(rank, position(rank) / length * length, length, 1);
  }
  [[nodiscard]] std::vector<std::uint32_t> across(std::uint32_t rank, std::uint32_t length) const {
    return ranks(rank, position(rank) % length, size() / length, length);
  }

 private:
  struct Step {
    std::uint32_t stride = 1;
    std::uint32_t size = 1;
  };
  std::array<Step, 5> steps_;  // From neighbouring ranks outward.
  std::size_t count_ = 0;
};

std::uint32_t replicas(const Layout& layout) {
  return layout.data * layout.context;
}

// Of one stage; with dualpipe as many of the mirror stage belong to the group.
std::uint32_t shard_length(const Layout& layout) {
  return layout.sharding == Sharding::None ? replicas(layout)
                                           : shard_ranks(layout) / copies_in_pipeline(layout);
}

std::uint32_t expert_shard_length(const Layout& layout) {
  return layout.sharding == Sharding::None
             ? expert_data(layout)
             : expert_shard_ranks(layout) / copies_in_pipeline(layout);
}

// The ranks of one stage and, where another stage holds the same parameters, those in their places
// there.
std::vector<std::uint32_t> with_mirror(const Layout& layout, std::vector<std::uint32_t> members) {
  if (copies_in_pipeline(layout) == 1) return members;
  const std::size_t own = members.size();
  for (std::size_t i = 0; i < own; ++i) {
    const std::uint32_t stage = stage_of_rank(layout, members[i]);
    members.push_back(rank_in_stage(layout, members[i], layout.pipeline - 1 - stage));
  }
  std::ranges::sort(members);
  return members;
}

// Of the data x context ranks, as many neighbours as it takes to hold all dense parts, experts and
// shards of them.
std::uint32_t model_length(const Layout& layout) {
  if (layout.sharding != Sharding::None) return shard_length(layout);
  return replicas(layout) / std::gcd(replicas(layout), expert_data(layout));
}

// The stage whose head shares a tied embedding with stage 0; 0: every head lies with an embedding.
std::uint32_t last_stage(const Layout& layout) {
  const PipelineShape shape = pipeline_shape(layout);
  return streams(shape) > 1 ? 0 : stage_of(shape, model_chunks(shape) - 1);
}

}  // namespace

std::string_view to_string(GroupKind kind) {
  switch (kind) {
    case GroupKind::Tensor:
      return "tp";
    case GroupKind::Context:
      return "cp";
    case GroupKind::Expert:
      return "ep";
    case GroupKind::ExpertTensor:
      return "etp";
    case GroupKind::Pipeline:
      return "pp";
    case GroupKind::Shard:
      return "dp";
    case GroupKind::Replica:
      return "dp-replica";
    case GroupKind::ExpertShard:
      return "edp";
    case GroupKind::ExpertReplica:
      return "edp-replica";
    case GroupKind::Embedding:
      return "embedding";
    case GroupKind::Model:
      return "model";
  }
  return "";
}

std::vector<std::uint32_t> group_of(const Layout& layout, GroupKind kind, std::uint32_t rank) {
  using enum Dimension;
  require(rank < ranks(layout), "group_of: a rank of the layout");
  const auto dense = [&](std::initializer_list<Dimension> within) {
    return Line(layout, dense_sizes(layout), within);
  };
  const auto experts = [&](std::initializer_list<Dimension> within) {
    return Line(layout, expert_sizes(layout), within);
  };
  switch (kind) {
    case GroupKind::Tensor:
      return dense({Tensor}).all(rank);
    case GroupKind::Context:
      return dense({Context}).all(rank);
    case GroupKind::Expert:
      return experts({Expert}).all(rank);
    case GroupKind::ExpertTensor:
      return experts({Tensor}).all(rank);
    case GroupKind::Pipeline:
      return dense({Pipeline}).all(rank);
    case GroupKind::Shard:
      return with_mirror(layout, dense({Data, Context}).run(rank, shard_length(layout)));
    case GroupKind::Replica:
      return dense({Data, Context}).across(rank, shard_length(layout));
    case GroupKind::ExpertShard:
      return with_mirror(layout, experts({Data}).run(rank, expert_shard_length(layout)));
    case GroupKind::ExpertReplica:
      return experts({Data}).across(rank, expert_shard_length(layout));
    case GroupKind::Embedding: {
      const std::uint32_t stage = stage_of_rank(layout, rank);
      const std::uint32_t last = last_stage(layout);
      if (last == 0 || (stage != 0 && stage != last)) return {rank};
      return {rank_in_stage(layout, rank, 0), rank_in_stage(layout, rank, last)};
    }
    case GroupKind::Model: {
      std::vector<std::uint32_t> result;
      const Line model = dense({Tensor, Pipeline});
      for (const std::uint32_t member : dense({Data, Context}).run(rank, model_length(layout))) {
        const auto part = model.all(member);
        result.insert(result.end(), part.begin(), part.end());
      }
      std::ranges::sort(result);
      return result;
    }
  }
  return {};
}

std::uint32_t group_size(const Layout& layout, GroupKind kind) {
  switch (kind) {
    case GroupKind::Tensor:
      return layout.tensor;
    case GroupKind::Context:
      return layout.context;
    case GroupKind::Expert:
      return layout.expert;
    case GroupKind::ExpertTensor:
      return layout.expert_tensor;
    case GroupKind::Pipeline:
      return layout.pipeline;
    case GroupKind::Shard:
      return shard_length(layout) * copies_in_pipeline(layout);
    case GroupKind::Replica:
      return replicas(layout) / shard_length(layout);
    case GroupKind::ExpertShard:
      return expert_shard_length(layout) * copies_in_pipeline(layout);
    case GroupKind::ExpertReplica:
      return expert_data(layout) / expert_shard_length(layout);
    case GroupKind::Embedding:
      return last_stage(layout) == 0 ? 1 : 2;
    case GroupKind::Model:
      return layout.tensor * layout.pipeline * model_length(layout);
  }
  return 1;
}

std::uint32_t stage_of_rank(const Layout& layout, std::uint32_t rank) {
  return rank / stride(layout, dense_sizes(layout), Dimension::Pipeline) % layout.pipeline;
}

std::uint32_t rank_in_stage(const Layout& layout, std::uint32_t rank, std::uint32_t stage) {
  const std::uint32_t step = stride(layout, dense_sizes(layout), Dimension::Pipeline);
  return rank - stage_of_rank(layout, rank) * step + stage * step;
}

}  // namespace flyover
