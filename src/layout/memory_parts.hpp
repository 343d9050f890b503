#pragma once

// What the two halves of memory.hpp, states and activations, share with its sum.

#include <cstdint>
#include <vector>

#include "flyover/layout/memory.hpp"
#include "flyover/layout/rank_parameters.hpp"
#include "flyover/layout/schedule.hpp"

namespace flyover {

// Of a value that is not quantised.
[[nodiscard]] double wide_bytes(const TrainingOptions& options);
// Of a quantised matrix, with its transposed copy.
[[nodiscard]] double quantised_bytes(const TrainingOptions& options);

// Tokens of a micro-batch on one rank: all of those its context rank has,
[[nodiscard]] double own_tokens(const Layout& layout, std::uint32_t sequence);
// and where tensor ranks share them out.
[[nodiscard]] double split_tokens(const Layout& layout, std::uint32_t sequence);

// Layers differ in memory only by whether they have experts.
struct LayerCount {
  std::uint32_t dense = 0;
  std::uint32_t experts = 0;
};

// What follows from the layout for every question about one stage.
class Stages {
 public:
  Stages(const Model& model, const Layout& layout);

  [[nodiscard]] const PipelineShape& shape() const { return shape_; }
  [[nodiscard]] LayerCount layers(std::uint32_t stage, std::uint32_t chunk) const {
    return chunks_[model_chunk(shape_, stage, chunk)];
  }
  [[nodiscard]] bool has_embedding(std::uint32_t stage) const { return has(stage, 0); }
  [[nodiscard]] bool has_head(std::uint32_t stage) const {
    return has(stage, model_chunks(shape_) - 1);
  }
  [[nodiscard]] bool is_last(std::uint32_t stage, std::uint32_t chunk) const {
    return model_chunk(shape_, stage, chunk) + 1 == model_chunks(shape_);
  }

 private:
  [[nodiscard]] bool has(std::uint32_t stage, std::uint32_t model_chunk) const {
    for (std::uint32_t stream = 0; stream < streams(shape_); ++stream) {
      if (stage_of(shape_, model_chunk, stream) == stage) return true;
    }
    return false;
  }

  PipelineShape shape_;
  std::vector<LayerCount> chunks_;  // In model order.
};

// Parameters of every stage, the two kinds of layers counted once.
class ParameterSums {
 public:
  ParameterSums(const Model& model, const Layout& layout);
  [[nodiscard]] StageParameters of(const Stages& stages, std::uint32_t stage) const;

 private:
  static void add(StageParameters& sum, const RankParameters& layer, double times);

  const Model& model_;
  const Layout& layout_;
  RankParameters dense_;
  RankParameters expert_;
};

// The first layer with experts, or without; the number of layers when there is none.
[[nodiscard]] std::uint32_t first_layer(const Model& model, bool experts);

// Everything that a layer's backward reads, whatever is recomputed.
[[nodiscard]] LayerActivations all_activations(const Model& model, const Layout& layout,
                                               const TrainingOptions& options,
                                               std::uint32_t sequence, bool experts);
// What the layout's recomputation leaves of it.
[[nodiscard]] LayerActivations kept_of(LayerActivations bytes, const Layout& layout);

}  // namespace flyover
