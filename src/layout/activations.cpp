#include <algorithm>
#include <string>
#include <string_view>

#include "flyover/base/error.hpp"
#include "layout/memory_parts.hpp"

namespace flyover {

namespace {

// With everything trained.
LayerActivations trained_activations(const Model& model, const Layout& layout,
                                     const TrainingOptions& options, std::uint32_t sequence,
                                     bool with_experts) {
  const Attention& attention = model.attention;
  const double t = layout.tensor;
  const double whole = own_tokens(layout, sequence);
  const double split = split_tokens(layout, sequence);
  const double wide = wide_bytes(options);
  // What matrix multiplications read is kept as they read it.
  const double read = std::min(wide, bytes_per_element(options.compute));
  const double h = model.hidden;
  const double heads = attention.heads / t;

  LayerActivations bytes;
  bytes.norm_inputs = split * 2 * h * wide;
  bytes.norm_outputs = split * 2 * h * read;
  if (options.dropout) bytes.dropout_masks = split * 2 * h;

  double values = heads * attention.head_dim;
  if (attention.latent) {
    const LatentAttention& latent = *attention.latent;
    const double key_dim = latent.nope_dim + latent.rope_dim;
    values = heads * latent.value_dim;
    bytes.queries_keys_values = whole * (2 * heads * key_dim + values) * wide;
    bytes.latents =
        split * ((latent.query_rank + latent.kv_rank) * (wide + read) + latent.rope_dim * wide);
  } else {
    const double kv_heads = std::max(attention.kv_heads / t, 1.0);
    // Norms of queries and keys keep what they read.
    const double kept = heads + 2 * kv_heads + (attention.norms ? heads + kv_heads : 0);
    bytes.queries_keys_values = whole * kept * attention.head_dim * wide;
  }
  bytes.attention_output = whole * values * read;
  if (options.flash_attention) {
    bytes.scores = whole * heads * 4;
  } else {
    // The softmax; with dropout also its mask, a byte, and its output.
    bytes.scores = whole * heads * sequence * (wide + (options.dropout ? 1 + wide : 0));
  }

  const auto ffn = [&](double tokens, double width, double kept) {
    return FfnActivations{.inner = tokens * (model.ffn_matrices - 1) * width * kept,
                          .product = tokens * width * read};
  };
  if (!with_experts) {
    bytes.dense_ffn = ffn(whole, model.ffn_hidden / t, wide);
    return bytes;
  }
  const Experts& experts = *model.experts;
  const double kept = options.compact_experts ? read : wide;
  bytes.shared_experts = ffn(whole, experts.shared_hidden / t, kept);
  // Ranks of an expert-tensor group gather each other's tokens, and each does a part of the width.
  const double arrived = split * experts.chosen * options.expert_imbalance * layout.expert_tensor;
  bytes.experts = ffn(arrived, 1.0 * experts.hidden / layout.expert_tensor, kept);
  bytes.dispatched = arrived * h * (read + (options.compact_experts ? 0 : wide));
  return bytes;
}

// A frozen matrix passes gradients on without its input; only adapters read theirs, and keep what
// their first half made.
void freeze(LayerActivations& bytes, const Model& model, const Layout& layout,
            const TrainingOptions& options, std::uint32_t sequence, bool with_experts) {
  const Lora& lora = *options.lora;
  const double wide = wide_bytes(options);
  const double read = std::min(wide, bytes_per_element(options.compute));
  const double whole = own_tokens(layout, sequence);
  const double inputs = bytes.norm_outputs / 2;  // Of attention, and of the FFN.
  const bool latent = model.attention.latent.has_value();
  bytes.norm_outputs = 0;
  if (lora.attention) {
    bytes.norm_outputs += inputs;
    const double matrices = latent ? 4 : 2;
    bytes.adapters += whole * matrices * lora.rank * wide;
  } else {
    // The backward of a fused kernel reads its output.
    if (!options.flash_attention) bytes.attention_output = 0;
    if (latent) {
      const double ranks = model.attention.latent->query_rank + model.attention.latent->kv_rank;
      bytes.latents -= split_tokens(layout, sequence) * ranks * read;
    }
  }
  if (lora.ffn) {
    bytes.norm_outputs += inputs;
    double tokens = whole;
    if (with_experts) {
      const bool shared = model.experts->shared_hidden > 0;
      tokens = (shared ? whole : 0) + split_tokens(layout, sequence) * model.experts->chosen *
                                          options.expert_imbalance * layout.expert_tensor;
    }
    bytes.adapters += tokens * 2 * lora.rank * wide;
  } else {
    bytes.dense_ffn.product = bytes.shared_experts.product = bytes.experts.product = 0;
    bytes.dispatched *= wide / (read + wide);
  }
}

void drop(LayerActivations& bytes, std::string_view module) {
  if (module == "attention") {
    bytes.scores = 0;
  } else if (module == "norm") {
    bytes.norm_outputs = 0;
  } else if (module == "activation") {
    bytes.dense_ffn.product = bytes.shared_experts.product = bytes.experts.product = 0;
  } else if (module == "mlp") {
    bytes.dense_ffn = {};
  } else if (module == "shared_experts") {
    bytes.shared_experts = {};
  } else if (module == "moe") {
    bytes.experts = {};
    bytes.dispatched = 0;
  } else if (module == "mla_up_proj") {
    bytes.queries_keys_values = 0;
  } else if (module == "second_matrices") {
    // Of what products with weights make, half is kept; all that is made elementwise is not.
    drop(bytes, "norm");
    drop(bytes, "activation");
    bytes.queries_keys_values /= 2;
    for (FfnActivations* ffn : {&bytes.dense_ffn, &bytes.shared_experts, &bytes.experts}) {
      ffn->inner /= 2;
    }
  } else {
    require(false, "layer_activations: modules that `problems` knows");
  }
}

}  // namespace

double own_tokens(const Layout& layout, std::uint32_t sequence) {
  return 1.0 * layout.micro_batch * sequence / layout.context;
}
double split_tokens(const Layout& layout, std::uint32_t sequence) {
  return own_tokens(layout, sequence) / (layout.sequence_parallel ? layout.tensor : 1);
}

LayerActivations all_activations(const Model& model, const Layout& layout,
                                 const TrainingOptions& options, std::uint32_t sequence,
                                 bool experts) {
  LayerActivations bytes = trained_activations(model, layout, options, sequence, experts);
  if (options.lora) freeze(bytes, model, layout, options, sequence, experts);
  return bytes;
}

LayerActivations kept_of(LayerActivations bytes, const Layout& layout) {
  switch (layout.recompute) {
    case Recompute::None:
      break;
    case Recompute::Selective:
      if (layout.recompute_modules.empty()) drop(bytes, "attention");
      for (const std::string& module : layout.recompute_modules) drop(bytes, module);
      break;
    case Recompute::Full: {
      // One of the two norms' inputs is the layer's.
      const double input = bytes.norm_inputs / 2;
      bytes = {};
      bytes.norm_inputs = input;
    }
  }
  return bytes;
}

double LayerActivations::total() const {
  return norm_inputs + norm_outputs + dropout_masks + latents + queries_keys_values + scores +
         attention_output + dense_ffn.total() + shared_experts.total() + experts.total() +
         dispatched + adapters;
}

LayerActivations layer_activations(const Model& model, const Layout& layout,
                                   const TrainingOptions& options, std::uint32_t sequence,
                                   std::uint32_t layer) {
  return kept_of(all_activations(model, layout, options, sequence, has_experts(model, layer)),
                 layout);
}

}  // namespace flyover
