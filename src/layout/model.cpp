#include "flyover/layout/model.hpp"

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

using Count = std::uint64_t;

struct AttentionSize {
  Count weights = 0;  // Of the projections,
  Count biases = 0;   // theirs,
  Count norms = 0;    // of norms inside,
  Count scored = 0;   // multiplications of one query with one key and its value.
};

AttentionSize attention_size(const Model& model) {
  const Attention& attention = model.attention;
  const Count h = model.hidden;
  const Count a = attention.heads;
  if (attention.latent) {
    const LatentAttention& latent = *attention.latent;
    const Count kv = latent.kv_rank;
    const Count key_dim = Count{latent.nope_dim} + latent.rope_dim;
    const Count queries =
        latent.query_rank == 0 ? h * a * key_dim : latent.query_rank * (h + a * key_dim);
    return {
        .weights = queries + h * (kv + latent.rope_dim) +
                   kv * a * (latent.nope_dim + latent.value_dim) + a * latent.value_dim * h,
        .biases = 0,
        .norms = latent.query_rank + kv,
        .scored = a * (key_dim + latent.value_dim),
    };
  }
  const Count queries = a * attention.head_dim;
  const Count keys = Count{attention.kv_heads} * attention.head_dim;
  return {
      .weights = h * 2 * (queries + keys),
      .biases = (attention.bias ? queries + 2 * keys : 0) + (attention.output_bias ? h : 0),
      .norms = attention.norms ? 2 * Count{attention.head_dim} : 0,
      .scored = 2 * queries,
  };
}

// A feed-forward part of this inner size: all of its matrices.
Count ffn_weights(const Model& model, Count inner) {
  return Count{model.ffn_matrices} * model.hidden * inner;
}
Count ffn_parameters(const Model& model, Count inner) {
  if (inner == 0) return 0;
  const Count biases = model.ffn_bias ? (model.ffn_matrices - 1) * inner + model.hidden : 0;
  return ffn_weights(model, inner) + biases;
}

Count norm_parameters(const Model& model) {
  return (model.norm_bias ? 2 : 1) * Count{model.hidden};
}

// The projection of the last state and the next token's embedding to one state.
Count mtp_projection(const Model& model) {
  return 2 * Count{model.hidden} * model.hidden;
}

}  // namespace

bool has_experts(const Model& model, std::uint32_t layer) {
  if (!model.experts || layer < model.experts->first_layer) return false;
  return (layer - model.experts->first_layer) % model.experts->every == 0;
}

std::uint32_t expert_layers(const Model& model) {
  if (!model.experts || model.layers <= model.experts->first_layer) return 0;
  return (model.layers - model.experts->first_layer - 1) / model.experts->every + 1;
}

bool has_window(const Model& model, std::uint32_t layer) {
  const Attention& attention = model.attention;
  if (attention.window == 0) return false;
  return attention.full_every == 0 || (layer + 1) % attention.full_every != 0;
}

double mean_keys(const Model& model, std::uint32_t layer, std::uint32_t sequence, bool causal) {
  require(sequence > 0, "mean_keys: a sequence of at least one token");
  const double s = sequence;
  const double w = model.attention.window;
  if (!has_window(model, layer) || w >= s) return causal ? s / 2 : s;
  if (!causal) return w;
  return model.attention.chunked ? w / 2 : w * (1 - w / (2 * s));
}

std::uint64_t ParameterCounts::total() const {
  return attention + dense_ffn + experts + shared_experts + router + norms + embedding + head;
}

std::uint64_t ParameterCounts::active(const Model& model) const {
  if (!model.experts) return total();
  return total() - experts + experts / model.experts->count * model.experts->chosen;
}

ParameterCounts layer_parameters(const Model& model, std::uint32_t layer) {
  const AttentionSize attention = attention_size(model);
  ParameterCounts counts;
  counts.attention = attention.weights + attention.biases;
  counts.norms = 2 * norm_parameters(model) + attention.norms;
  if (!has_experts(model, layer)) {
    counts.dense_ffn = ffn_parameters(model, model.ffn_hidden);
    return counts;
  }
  const Experts& experts = *model.experts;
  counts.experts = experts.count * ffn_parameters(model, experts.hidden);
  counts.shared_experts = ffn_parameters(model, experts.shared_hidden);
  counts.router = Count{experts.count} * (model.hidden + (model.ffn_bias ? 1 : 0));
  return counts;
}

ParameterCounts parameter_counts(const Model& model) {
  ParameterCounts sum;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    const ParameterCounts counts = layer_parameters(model, layer);
    sum.attention += counts.attention;
    sum.dense_ffn += counts.dense_ffn;
    sum.experts += counts.experts;
    sum.shared_experts += counts.shared_experts;
    sum.router += counts.router;
    sum.norms += counts.norms;
  }
  sum.norms += norm_parameters(model);
  const Count tokens = Count{model.vocabulary} * model.hidden;
  sum.embedding = tokens + Count{model.positions} * model.hidden;
  sum.head = model.tied_embeddings ? 0 : tokens;
  if (model.mtp_layers > 0) {
    // One more layer like the last, a norm for each of its two inputs and one before the head;
    // embedding and head are the model's own.
    sum.mtp = model.mtp_layers * (layer_parameters(model, model.layers - 1).total() +
                                  mtp_projection(model) + 3 * norm_parameters(model));
  }
  return sum;
}

double ForwardFlops::total() const {
  return attention_projections + attention_scores + ffn + head + mtp;
}

ForwardFlops layer_flops(const Model& model, std::uint32_t layer, std::uint32_t sequence,
                         bool causal) {
  const AttentionSize attention = attention_size(model);
  Count ffn = ffn_weights(model, model.ffn_hidden);
  if (has_experts(model, layer)) {
    const Experts& experts = *model.experts;
    ffn = ffn_weights(model, Count{experts.chosen} * experts.hidden + experts.shared_hidden) +
          Count{model.hidden} * experts.count;
  }
  ForwardFlops flops;
  flops.attention_projections = 2 * static_cast<double>(attention.weights);
  flops.attention_scores =
      2 * mean_keys(model, layer, sequence, causal) * static_cast<double>(attention.scored);
  flops.ffn = 2 * static_cast<double>(ffn);
  return flops;
}

ForwardFlops forward_flops(const Model& model, std::uint32_t sequence, bool causal) {
  ForwardFlops sum;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    const ForwardFlops flops = layer_flops(model, layer, sequence, causal);
    sum.attention_projections += flops.attention_projections;
    sum.attention_scores += flops.attention_scores;
    sum.ffn += flops.ffn;
  }
  sum.head = 2.0 * model.hidden * model.vocabulary;
  if (model.mtp_layers > 0) {
    sum.mtp = model.mtp_layers * (layer_flops(model, model.layers - 1, sequence, causal).total() +
                                  2 * static_cast<double>(mtp_projection(model)) + sum.head);
  }
  return sum;
}

}  // namespace flyover
