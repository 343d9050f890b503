#pragma once

// A transformer's architecture: all that the size of its kernels and messages depends on. Nothing
// about how it is trained. Read from configs/models or a Hugging Face config.json
// (io/model_reader.hpp).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flyover {

// Multi-head latent attention (DeepSeek-V2): queries and keys through low-rank projections.
struct LatentAttention {
  std::uint32_t query_rank = 0;  // r_q; 0: queries are not compressed.
  std::uint32_t kv_rank = 0;     // r_kv
  std::uint32_t nope_dim = 0;    // d_n, of a head, without rotary embedding,
  std::uint32_t rope_dim = 0;    // d_r, with it (one key for all heads),
  std::uint32_t value_dim = 0;   // d_v
};

struct Attention {
  std::uint32_t heads = 1;     // a, of queries.
  std::uint32_t kv_heads = 1;  // g; with latent attention a,
  std::uint32_t head_dim = 1;  // d; and d_n + d_r.
  bool bias = false;           // On the projections of queries, keys and values,
  bool output_bias = false;    // and of the output.
  bool norms = false;          // Of each head's queries and keys, with weights (Qwen3).
  std::optional<LatentAttention> latent;
  std::uint32_t window = 0;  // Tokens that a layer with a window sees; 0: none has a window.
  // The window is the chunk of so many tokens that the query lies in (Llama-4), not the last ones.
  bool chunked = false;
  // Of every so many layers the last sees everything, the others the window; 0: all have the
  // window.
  std::uint32_t full_every = 0;
};

// Experts of the layers that have them.
struct Experts {
  std::uint32_t count = 0;          // E, routed.
  std::uint32_t chosen = 0;         // k, per token.
  std::uint32_t hidden = 0;         // f_e
  std::uint32_t shared_hidden = 0;  // S, of all shared experts together; 0: none.
  std::uint32_t first_layer = 0;    // Layers before it are dense, it has experts,
  std::uint32_t every = 1;          // and from it on one in so many has.
  // Node- or group-limited routing: a token's experts lie in so many of so many groups; 0: no
  // limit.
  std::uint32_t groups = 0;
  std::uint32_t groups_chosen = 0;
};

struct Model {
  std::string name;
  std::uint32_t layers = 0;  // L
  std::uint32_t hidden = 0;  // h
  Attention attention;
  std::uint32_t ffn_hidden = 0;    // f, of dense layers; 0 when all have experts.
  std::uint32_t ffn_matrices = 3;  // n_f: 3 gated (SwiGLU), 2 otherwise; experts too.
  bool ffn_bias = false;           // On them and on routers.
  bool norm_bias = false;          // LayerNorm with a bias.
  std::optional<Experts> experts;
  std::uint32_t vocabulary = 0;  // V, as trained: padding is the layout's.
  bool tied_embeddings = false;
  std::uint32_t positions = 0;         // Learned position embeddings (GPT); 0: rotary or none.
  std::uint32_t mtp_layers = 0;        // Multi-token prediction blocks.
  std::uint32_t longest_sequence = 0;  // As published; 0: not stated.
  std::string source;
};

// Whether layer i, from 0, has experts.
[[nodiscard]] bool has_experts(const Model& model, std::uint32_t layer);
[[nodiscard]] std::uint32_t expert_layers(const Model& model);
// Whether its attention is limited to the window.
[[nodiscard]] bool has_window(const Model& model, std::uint32_t layer);
// Keys that a query of layer i works with, on average over the sequence. With `causal` what the
// mask hides is not counted, else a query meets all s tokens or a whole window of w:
//
//                     causal             not causal
//   everything        s / 2              s
//   last w tokens     w (1 - w / (2s))   w
//   chunks of w       w / 2              w          (w < s; from w = s on as everything)
[[nodiscard]] double mean_keys(const Model& model, std::uint32_t layer, std::uint32_t sequence,
                               bool causal);

// Parameters, by what parallel dimensions divide differently.
struct ParameterCounts {
  std::uint64_t attention = 0;  // Of all layers together: projections,
  std::uint64_t dense_ffn = 0;  // feed-forward parts without experts,
  std::uint64_t experts = 0;    // routed experts,
  std::uint64_t shared_experts = 0;
  std::uint64_t router = 0;
  std::uint64_t norms = 0;
  std::uint64_t embedding = 0;  // Tokens and positions,
  std::uint64_t head = 0;       // 0 when tied.
  std::uint64_t mtp = 0;        // Everything in multi-token prediction blocks.
  // Without those blocks, as models are named: DeepSeek-V3 has 671 B.
  [[nodiscard]] std::uint64_t total() const;
  // Of the total, with the whole embedding and head but of the experts only the chosen ones.
  [[nodiscard]] std::uint64_t active(const Model& model) const;
};
[[nodiscard]] ParameterCounts parameter_counts(const Model& model);
// Of layer i alone: embedding, head, mtp and the final norm are 0.
[[nodiscard]] ParameterCounts layer_parameters(const Model& model, std::uint32_t layer);

// Floating-point operations of one token's forward pass (two per multiplication), for a sequence of
// `sequence` tokens; `causal` as in mean_keys. docs/layouts.md, "FLOPs".
struct ForwardFlops {
  double attention_projections = 0;
  double attention_scores = 0;  // And values.
  double ffn = 0;               // Dense and experts that the token meets, with the router.
  double head = 0;
  double mtp = 0;
  [[nodiscard]] double total() const;
};
[[nodiscard]] ForwardFlops forward_flops(const Model& model, std::uint32_t sequence, bool causal);
// Of layer i alone: head and mtp are 0.
[[nodiscard]] ForwardFlops layer_flops(const Model& model, std::uint32_t layer,
                                       std::uint32_t sequence, bool causal);

}  // namespace flyover
