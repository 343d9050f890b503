#include <algorithm>

#include "flyover/base/error.hpp"
#include "layout/memory_parts.hpp"

namespace flyover {

namespace {

bool quantises(const TrainingOptions& options) {
  return bytes_per_element(options.compute) < 2;
}

// Of a matrix [n x k]. Queries, keys and values are one matrix, as are gate and up and the
// projections down to latent spaces (Megatron's linear_qkv, linear_fc1). The thin matrix on a side
// that tensor ranks cut is cut as well, the other one whole on every rank.
double adapter(const Lora& lora, double n, double k) {
  return lora.rank * (n + k);
}

double attention_adapters(const Model& model, const Layout& layout, const Lora& lora) {
  const Attention& attention = model.attention;
  const double h = model.hidden;
  const double heads = 1.0 * attention.heads / layout.tensor;
  if (!attention.latent) {
    const double queries = heads * attention.head_dim;
    const double keys = 1.0 * attention.kv_heads * attention.head_dim / layout.tensor;
    return adapter(lora, queries + 2 * keys, h) + adapter(lora, h, queries);
  }
  const LatentAttention& latent = *attention.latent;
  const double query_in = latent.query_rank > 0 ? latent.query_rank : h;
  return adapter(lora, 1.0 * latent.query_rank + latent.kv_rank + latent.rope_dim, h) +
         adapter(lora, heads * attention.head_dim, query_in) +
         adapter(lora, heads * (latent.nope_dim + latent.value_dim), latent.kv_rank) +
         adapter(lora, h, heads * latent.value_dim);
}

// A feed-forward part that `ways` ranks cut.
double ffn_adapters(const Model& model, const Lora& lora, std::uint32_t inner, std::uint32_t ways) {
  if (inner == 0) return 0;
  const double own = 1.0 * inner / ways;
  return adapter(lora, (model.ffn_matrices - 1) * own, model.hidden) +
         adapter(lora, model.hidden, own);
}

}  // namespace

double wide_bytes(const TrainingOptions& options) {
  return options.compute == KernelType::Tf32 ? 4 : 2;
}

double quantised_bytes(const TrainingOptions& options) {
  return bytes_per_element(options.compute) * (options.transposed_quantised ? 2 : 1);
}

std::uint32_t first_layer(const Model& model, bool experts) {
  std::uint32_t layer = 0;
  while (layer < model.layers && has_experts(model, layer) != experts) ++layer;
  return layer;
}

Stages::Stages(const Model& model, const Layout& layout) : shape_(pipeline_shape(layout)) {
  const std::vector<std::uint32_t> layers = layers_of_chunks(layout, model);
  chunks_.reserve(layers.size());
  // Layers with experts among the first n.
  const auto with_experts = [&](std::uint32_t n) -> std::uint32_t {
    if (!model.experts || n <= model.experts->first_layer) return 0;
    return (n - model.experts->first_layer - 1) / model.experts->every + 1;
  };
  std::uint32_t first = 0;
  for (const std::uint32_t count : layers) {
    const std::uint32_t experts = with_experts(first + count) - with_experts(first);
    chunks_.push_back({count - experts, experts});
    first += count;
  }
}

ParameterSums::ParameterSums(const Model& model, const Layout& layout)
    : model_(model),
      layout_(layout) {
  const auto of = [&](bool with_experts) -> RankParameters {
    const std::uint32_t layer = first_layer(model, with_experts);
    if (layer == model.layers) return {};
    return rank_parameters(model, layout, layer);
  };
  dense_ = of(false);
  expert_ = of(true);
}

void ParameterSums::add(StageParameters& sum, const RankParameters& layer, double times) {
  if (times == 0) return;
  sum.matrices += times * layer.matrices;
  sum.experts += times * layer.experts;
  sum.others += times * layer.others;
  sum.largest_layer = std::max(sum.largest_layer, layer.total());
}

StageParameters ParameterSums::of(const Stages& stages, std::uint32_t stage) const {
  LayerCount layers;
  for (std::uint32_t chunk = 0; chunk < stages.shape().chunks; ++chunk) {
    const LayerCount more = stages.layers(stage, chunk);
    layers.dense += more.dense;
    layers.experts += more.experts;
  }
  StageParameters sum;
  add(sum, dense_, layers.dense);
  add(sum, expert_, layers.experts);
  const double h = model_.hidden;
  const double tokens = h * padded_vocabulary(layout_, model_) / layout_.tensor;
  const double norm = h * (model_.norm_bias ? 2 : 1);
  const bool has_embedding = stages.has_embedding(stage);
  if (has_embedding) sum.embedding = tokens + h * model_.positions;
  if (stages.has_head(stage)) {
    sum.others += norm;
    if (!model_.tied_embeddings) sum.head = tokens;
    const bool reads_tokens = model_.tied_embeddings || model_.mtp_layers > 0;
    if (reads_tokens && !has_embedding) sum.embedding += tokens;
    if (model_.mtp_layers > 0) {
      add(sum, has_experts(model_, model_.layers - 1) ? expert_ : dense_, model_.mtp_layers);
      sum.matrices += model_.mtp_layers * 2 * h * h / layout_.tensor;
      sum.others += model_.mtp_layers * 3 * norm;
    }
  }
  return sum;
}

StageParameters stage_parameters(const Model& model, const Layout& layout, std::uint32_t stage) {
  return ParameterSums(model, layout).of(Stages(model, layout), stage);
}

AdapterParameters adapter_parameters(const Model& model, const Layout& layout, const Lora& lora,
                                     std::uint32_t layer) {
  AdapterParameters sum;
  if (lora.attention) sum.dense = attention_adapters(model, layout, lora);
  if (!lora.ffn) return sum;
  if (!has_experts(model, layer)) {
    sum.dense += ffn_adapters(model, lora, model.ffn_hidden, layout.tensor);
    return sum;
  }
  const Experts& experts = *model.experts;
  sum.dense += ffn_adapters(model, lora, experts.shared_hidden, layout.tensor);
  sum.experts = 1.0 * experts.count / layout.expert *
                ffn_adapters(model, lora, experts.hidden, layout.expert_tensor);
  return sum;
}

StateBytes state_bytes(const TrainingOptions& options, Sharding sharding, std::uint32_t shards,
                       bool matrix) {
  require(shards > 0, "state_bytes: at least one rank");
  const double wide = wide_bytes(options);
  const double n = shards;
  const bool parameters_sharded = sharding == Sharding::Parameters;
  StateBytes bytes;
  bytes.parameters = wide;
  if (matrix && quantises(options)) {
    if (options.quantised_parameters) {
      bytes.parameters = quantised_bytes(options);
    } else if (options.cached_quantised && !parameters_sharded) {
      bytes.parameters += quantised_bytes(options);
    }
  }
  bytes.gradients = options.fp32_gradients ? 4 : wide;
  bytes.optimizer =
      (options.fp32_master ? 4 : 0) + moments(options.optimizer) * (options.bf16_moments ? 2 : 4);
  if (sharding != Sharding::None) bytes.optimizer /= n;
  if (sharding == Sharding::Gradients || parameters_sharded) bytes.gradients /= n;
  if (parameters_sharded) bytes.parameters /= n;
  return bytes;
}

}  // namespace flyover
