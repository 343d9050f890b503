#include "layout/expand_units.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace flyover {

namespace {

double gradient_width(const StepParts& parts) {
  const TrainingOptions& options = parts.job().options;
  return options.fp32_gradients || options.compute == KernelType::Tf32 ? 4 : 2;
}

// Last unit first, since its gradients are there first.
void fill_buckets(const StepParts& parts, const Layout& layout,
                  const std::vector<OwnParameters>& own, StageChunk& chunk) {
  const auto least = static_cast<double>(parts.job().overlap.bucket.count());
  OwnParameters sum;
  for (auto u = static_cast<std::uint32_t>(chunk.units.size()); u-- > 0;) {
    sum += own[u];
    chunk.units[u].bucket = static_cast<std::uint32_t>(chunk.buckets.size());
    const double bytes = (sum.trained_dense + sum.trained_experts) * gradient_width(parts);
    if (bytes < least && u > 0) continue;
    chunk.buckets.push_back({u, parts.state_messages(layout, sum)});
    sum = {};
  }
}

}  // namespace

std::vector<StageChunk> stage_chunks(const StepParts& parts, const Layout& layout,
                                     std::uint32_t stage) {
  const PipelineShape shape = pipeline_shape(layout);
  const std::vector<std::uint32_t> layers = layers_of_chunks(layout, parts.job().model);
  const auto last = static_cast<std::uint32_t>(layers.size() - 1);
  const bool by_unit = layout.sharding == Sharding::Parameters;
  std::vector<StageChunk> chunks(shape.chunks);
  for (std::uint32_t c = 0; c < shape.chunks; ++c) {
    StageChunk& chunk = chunks[c];
    chunk.number = model_chunk(shape, stage, c);
    std::vector<OwnParameters> own;
    const auto add = [&](std::string name, const LayerWork& work, const OwnParameters& parameters,
                         Duration host) {
      StageUnit& unit = chunk.units.emplace_back();
      unit.name = std::move(name);
      unit.work = &work;
      unit.host = host;
      if (by_unit) unit.states = parts.state_messages(layout, parameters);
      own.push_back(parameters);
    };
    if (chunk.number == 0) {
      add("embedding", parts.embedding(layout), parts.embedding_parameters(layout), {});
    }
    const auto first = std::accumulate(layers.begin(), layers.begin() + chunk.number, 0U);
    for (std::uint32_t layer = first; layer < first + layers[chunk.number]; ++layer) {
      add(fmt::format("layer {}", layer), parts.layer(layout, layer),
          parts.layer_parameters(layout, layer), parts.host(layer));
    }
    if (chunk.number == last) {
      add("head", parts.head(layout), parts.head_parameters(layout), {});
    }
    if (!by_unit) fill_buckets(parts, layout, own, chunk);
  }
  return chunks;
}

Bytes embedding_gradient_bytes(const StepParts& parts, const Layout& layout) {
  const Model& model = parts.job().model;
  if (!model.tied_embeddings || parts.job().options.lora) return Bytes{};
  const double parameters = 1.0 * model.hidden * padded_vocabulary(layout, model) / layout.tensor;
  return Bytes{std::llround(parameters * gradient_width(parts))};
}

}  // namespace flyover
