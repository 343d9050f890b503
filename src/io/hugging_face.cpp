#include "io/hugging_face.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "io/model_fields.hpp"

namespace flyover::io {

namespace {

// A config, or the part of it that describes the language model. A member that is null counts as
// absent: Python's None.
class Config {
 public:
  explicit Config(Field field) : field_(std::move(field)) {}

  [[nodiscard]] const Field& field() const { return field_; }
  [[nodiscard]] Field operator[](std::string_view key) const { return field_[key]; }
  [[nodiscard]] bool has(std::string_view key) const {
    if (!field_.has(key)) return false;
    const Field value = field_[key];
    return value.is_object() || value.is_array() || value.is_string() || value.is_number() ||
           value.is_bool();
  }
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const {
    return has(key) ? field_[key].boolean() : otherwise;
  }
  [[nodiscard]] std::uint32_t count_or(std::string_view key, std::uint32_t otherwise,
                                       std::uint32_t low, std::uint32_t high) const {
    return has(key) ? field_[key].count(low, high) : otherwise;
  }

 private:
  Field field_;
};

// The names that most families share.
void read_common(const Config& config, Model& model) {
  model.layers = config["num_hidden_layers"].count(1, max_layers);
  model.hidden = config["hidden_size"].count(1, max_hidden);
  model.vocabulary = config["vocab_size"].count();
  model.longest_sequence =
      config.has("max_position_embeddings") ? config["max_position_embeddings"].count() : 0;
  model.tied_embeddings = config.flag("tie_word_embeddings", false);
  model.attention.heads = config["num_attention_heads"].count(1, max_heads);
}

enum class KeyHeads : std::uint8_t { Stated, AsHeads };  // When the config leaves them out.

void read_heads(const Config& config, Model& model, KeyHeads left_out,
                std::optional<std::uint32_t> head_dim = {}) {
  Attention& attention = model.attention;
  const bool stated = left_out == KeyHeads::Stated || config.has("num_key_value_heads");
  attention.kv_heads =
      stated ? kv_head_count(config["num_key_value_heads"], attention.heads) : attention.heads;
  if (config.has("head_dim")) {
    attention.head_dim = config["head_dim"].count(1, max_head_dim);
  } else {
    attention.head_dim =
        head_dim ? *head_dim
                 : even_head_dim(config["num_attention_heads"], model.hidden, attention.heads);
  }
}

void read_biases(const Config& config, Model& model) {
  model.attention.bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.ffn_bias = config.flag("mlp_bias", false);
}

std::uint32_t read_ffn(const Config& config, std::string_view key = "intermediate_size") {
  return config[key].count(1, max_ffn);
}

// Experts on every layer, before set_expert_layers says otherwise.
Experts& read_experts(const Config& config, Model& model, std::string_view count,
                      std::string_view hidden) {
  Experts& experts = model.experts.emplace();
  experts.count = config[count].count(1, max_experts);
  experts.chosen = config["num_experts_per_tok"].count(1, experts.count);
  experts.hidden = read_ffn(config, hidden);
  return experts;
}

// Keeps `experts` when a layer has them, and reads the size of the other layers when there are any.
void split_layers(const Config& config, const std::vector<bool>& sparse, const Field& blamed,
                  std::string_view dense_key, Model& model) {
  if (std::ranges::find(sparse, true) == sparse.end()) {
    model.experts.reset();
  } else {
    set_expert_layers(blamed, sparse, *model.experts);
  }
  if (expert_layers(model) < model.layers) model.ffn_hidden = read_ffn(config, dense_key);
}

void read_llama(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::AsHeads);
  read_biases(config, model);
  model.ffn_hidden = read_ffn(config);
}

// Mistral 7B had the window from the start; later models switch it off by null.
constexpr std::uint32_t mistral_window = 4'096;

void read_mistral(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated);
  model.ffn_hidden = read_ffn(config);
  model.attention.window = config.has("sliding_window")           ? config["sliding_window"].count()
                           : config.field().has("sliding_window") ? 0
                                                                  : mistral_window;
}

void read_mixtral(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated);
  if (config.has("sliding_window")) model.attention.window = config["sliding_window"].count();
  read_experts(config, model, "num_local_experts", "intermediate_size");
}

// Qwen switches the window on from a certain layer; those before it see everything.
void read_qwen_window(const Config& config, Model& model) {
  if (!config.flag("use_sliding_window", false)) return;
  model.attention.window = config["sliding_window"].count();
  const std::uint32_t first = config["max_window_layers"].count(0);
  std::vector<bool> windowed(model.layers);
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) windowed[layer] = layer >= first;
  set_window_layers(config["max_window_layers"], windowed, model.attention);
}

void read_qwen_experts(const Config& config, Model& model) {
  Experts& experts = read_experts(config, model, "num_experts", "moe_intermediate_size");
  if (config.has("shared_expert_intermediate_size")) {
    experts.shared_hidden = config["shared_expert_intermediate_size"].count(0, max_ffn);
  }
  const std::uint32_t step = config.count_or("decoder_sparse_step", 1, 1, max_layers);
  std::vector<bool> sparse(model.layers);
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    sparse[layer] = (layer + 1) % step == 0;
  }
  Field blamed = config["num_experts"];
  if (config.has("mlp_only_layers")) {
    blamed = config["mlp_only_layers"];
    for (const Field& dense : blamed.elements()) sparse[dense.count(0, model.layers - 1)] = false;
  }
  split_layers(config, sparse, blamed, "intermediate_size", model);
}

void read_qwen2(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated);
  model.attention.bias = true;
  read_qwen_window(config, model);
  model.ffn_hidden = read_ffn(config);
}

void read_qwen2_moe(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated);
  model.attention.bias = true;
  read_qwen_window(config, model);
  read_qwen_experts(config, model);
}

constexpr std::uint32_t qwen3_head_dim = 128;

void read_qwen3(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated, qwen3_head_dim);
  model.attention.bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.attention.norms = true;
  read_qwen_window(config, model);
  model.ffn_hidden = read_ffn(config);
}

void read_qwen3_moe(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated);
  model.attention.bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.attention.norms = true;
  read_qwen_window(config, model);
  read_qwen_experts(config, model);
}

void read_deepseek(const Config& config, Model& model) {
  read_common(config, model);
  LatentAttention& latent = model.attention.latent.emplace();
  if (config.has("q_lora_rank")) latent.query_rank = config["q_lora_rank"].count(1, max_hidden);
  latent.kv_rank = config["kv_lora_rank"].count(1, max_hidden);
  latent.nope_dim = config["qk_nope_head_dim"].count(1, max_head_dim);
  latent.rope_dim = config["qk_rope_head_dim"].count(1, max_head_dim);
  latent.value_dim = config["v_head_dim"].count(1, max_head_dim);
  model.attention.kv_heads = model.attention.heads;
  model.attention.head_dim = latent.nope_dim + latent.rope_dim;

  Experts& experts = read_experts(config, model, "n_routed_experts", "moe_intermediate_size");
  if (config.has("n_shared_experts")) {
    const std::uint32_t most = max_ffn / experts.hidden;
    experts.shared_hidden = config["n_shared_experts"].count(0, most) * experts.hidden;
  }
  // Version 2 names its way of choosing; "greedy" does not look at the groups.
  const bool greedy = config.has("topk_method") && config["topk_method"].text() == "greedy";
  if (!greedy && config.has("n_group") && config["n_group"].count() > 1) {
    read_expert_groups(config["n_group"], config["topk_group"], experts);
  }
  const std::uint32_t first = config.count_or("first_k_dense_replace", 0, 0, max_layers);
  const std::uint32_t frequency = config.count_or("moe_layer_freq", 1, 1, max_layers);
  std::vector<bool> sparse(model.layers);
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    sparse[layer] = layer >= first && layer % frequency == 0;
  }
  split_layers(config, sparse, config["n_routed_experts"], "intermediate_size", model);
  model.mtp_layers = config.count_or("num_nextn_predict_layers", 0, 0, max_layers);
}

// "sliding_attention", "chunked_attention" or "full_attention" for each layer.
void read_layer_types(const Config& config, std::string_view limited, Model& model) {
  const Field types = config["layer_types"];
  if (types.size() != model.layers) {
    types.fail(fmt::format("expected {} elements, one for each layer, got {}", model.layers,
                           types.size()));
  }
  std::vector<bool> windowed;
  for (const Field& type : types.elements()) {
    windowed.push_back(type.one_of({std::string(limited), "full_attention"}) == limited);
  }
  set_window_layers(types, windowed, model.attention);
}

constexpr std::uint32_t gpt_oss_head_dim = 64;

void read_gpt_oss(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated, gpt_oss_head_dim);
  model.attention.bias = model.attention.output_bias = config.flag("attention_bias", true);
  model.ffn_bias = true;
  if (config.has("sliding_window")) {
    model.attention.window = config["sliding_window"].count();
    model.attention.full_every = 2;
    if (config.has("layer_types")) read_layer_types(config, "sliding_attention", model);
  }
  read_experts(config, model, "num_local_experts", "intermediate_size");
}

constexpr std::uint32_t llama4_head_dim = 128;

void read_llama4_window(const Config& config, Model& model) {
  if (!config.has("attention_chunk_size")) return;
  model.attention.window = config["attention_chunk_size"].count();
  model.attention.chunked = true;
  if (config.has("layer_types")) {
    read_layer_types(config, "chunked_attention", model);
    return;
  }
  // Layers without rotary embedding are those that see everything; an empty list is none at all.
  if (config.has("no_rope_layers") && config["no_rope_layers"].size() > 0) {
    const Field rotary = config["no_rope_layers"];
    if (rotary.size() < model.layers) {
      rotary.fail(fmt::format("expected {} elements, one for each layer, got {}", model.layers,
                              rotary.size()));
    }
    std::vector<bool> windowed;
    for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
      windowed.push_back(rotary[layer].count(0, 1) == 1);
    }
    set_window_layers(rotary, windowed, model.attention);
    return;
  }
  constexpr std::uint32_t interval = 4;
  model.attention.full_every = config.count_or("no_rope_layer_interval", interval, 2, max_layers);
}

void read_llama4_text(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated, llama4_head_dim);
  model.attention.bias = model.attention.output_bias = config.flag("attention_bias", false);
  read_llama4_window(config, model);
  Experts& experts = read_experts(config, model, "num_local_experts", "intermediate_size");
  experts.shared_hidden = experts.hidden;
  std::vector<bool> sparse(model.layers);
  Field blamed = config["num_local_experts"];
  if (config.has("moe_layers")) {
    blamed = config["moe_layers"];
    for (const Field& layer : blamed.elements()) sparse[layer.count(0, model.layers - 1)] = true;
  } else {
    const std::uint32_t step = config.count_or("interleave_moe_layer_step", 1, 1, max_layers);
    for (std::uint32_t layer = step - 1; layer < model.layers; layer += step) sparse[layer] = true;
  }
  split_layers(config, sparse, blamed, "intermediate_size_mlp", model);
}

void read_llama4(const Config& config, Model& model) {
  read_llama4_text(Config(config["text_config"]), model);
}

void read_nemotron(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::AsHeads);
  read_biases(config, model);
  model.norm_bias = true;
  model.ffn_matrices = 2;
  model.ffn_hidden = read_ffn(config);
}

void read_grok(const Config& config, Model& model) {
  read_common(config, model);
  read_heads(config, model, KeyHeads::Stated);
  model.tied_embeddings = config.flag("tie_word_embeddings", true);
  read_experts(config, model, "num_experts", "intermediate_size");
}

// What all before Llama have: full heads, two matrices, biases everywhere.
void set_classic(Model& model) {
  Attention& attention = model.attention;
  attention.kv_heads = attention.heads;
  attention.bias = attention.output_bias = true;
  model.ffn_bias = model.norm_bias = true;
  model.ffn_matrices = 2;
}

void read_gpt2(const Config& config, Model& model) {
  model.layers = config["n_layer"].count(1, max_layers);
  model.hidden = config["n_embd"].count(1, max_ffn / 4);
  model.vocabulary = config["vocab_size"].count();
  model.positions = model.longest_sequence = config["n_positions"].count();
  model.attention.heads = config["n_head"].count(1, max_heads);
  model.attention.head_dim = even_head_dim(config["n_head"], model.hidden, model.attention.heads);
  set_classic(model);
  model.ffn_hidden = config.count_or("n_inner", 4 * model.hidden, 1, max_ffn);
  model.tied_embeddings = config.flag("tie_word_embeddings", true);
}

void read_gpt_neox(const Config& config, Model& model) {
  read_common(config, model);
  model.attention.head_dim =
      even_head_dim(config["num_attention_heads"], model.hidden, model.attention.heads);
  set_classic(model);
  model.attention.bias = model.attention.output_bias = config.flag("attention_bias", true);
  model.ffn_hidden = read_ffn(config);
}

void read_mpt(const Config& config, Model& model) {
  model.layers = config["n_layers"].count(1, max_layers);
  model.hidden = config["d_model"].count(1, max_hidden);
  model.vocabulary = config["vocab_size"].count();
  model.longest_sequence = config["max_seq_len"].count();
  Attention& attention = model.attention;
  attention.heads = config["n_heads"].count(1, max_heads);
  attention.head_dim = even_head_dim(config["n_heads"], model.hidden, attention.heads);
  set_classic(model);
  model.tied_embeddings = config.flag("tie_word_embeddings", true);
  if (config.flag("no_bias", false)) {
    attention.bias = attention.output_bias = model.ffn_bias = model.norm_bias = false;
  }
  const double inner = model.hidden * config["expansion_ratio"].positive_number();
  if (inner != std::floor(inner) || inner > max_ffn) {
    config["expansion_ratio"].fail(
        fmt::format("expected a whole size of at most {} when multiplied with {}, got {}", max_ffn,
                    model.hidden, inner));
  }
  model.ffn_hidden = static_cast<std::uint32_t>(inner);

  bool rotary_or_alibi = false;
  if (config.has("attn_config")) {
    const Config detail(config["attn_config"]);
    rotary_or_alibi = detail.flag("alibi", false) || detail.flag("rope", false);
    if (detail.has("kv_n_heads")) {
      attention.kv_heads = kv_head_count(detail["kv_n_heads"], attention.heads);
    }
  }
  if (!rotary_or_alibi && config.flag("learned_pos_emb", true)) {
    model.positions = model.longest_sequence;
  }
}

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  void (*read)(const Config& config, Model& model);
};
constexpr std::array families{
    Family{"llama", "LlamaForCausalLM", read_llama},
    Family{"llama4", "Llama4ForConditionalGeneration", read_llama4},
    Family{"llama4_text", "Llama4ForCausalLM", read_llama4_text},
    Family{"mistral", "MistralForCausalLM", read_mistral},
    Family{"mixtral", "MixtralForCausalLM", read_mixtral},
    Family{"qwen2", "Qwen2ForCausalLM", read_qwen2},
    Family{"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe},
    Family{"qwen3", "Qwen3ForCausalLM", read_qwen3},
    Family{"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
    Family{"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek},
    Family{"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek},
    Family{"kimi_k2", "DeepseekV3ForCausalLM", read_deepseek},
    Family{"gpt_oss", "GptOssForCausalLM", read_gpt_oss},
    Family{"nemotron", "NemotronForCausalLM", read_nemotron},
    Family{"grok-1", "Grok1ModelForCausalLM", read_grok},
    Family{"gpt2", "GPT2LMHeadModel", read_gpt2},
    Family{"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox},
    Family{"mpt", "MPTForCausalLM", read_mpt},
};

const Family& family_of(const Config& config) {
  const bool typed = config.has("model_type");
  std::vector<std::string> known;
  for (const Family& family : families) {
    known.emplace_back(typed ? family.model_type : family.architecture);
  }
  const Field said = typed ? config["model_type"] : config["architectures"][0];
  const std::string word = said.one_of(known);
  return families[static_cast<std::size_t>(std::ranges::find(known, word) - known.begin())];
}

std::string name_of(const Config& config, const Document& document) {
  if (config.has("_name_or_path")) {
    const std::string path = config["_name_or_path"].text();
    const std::string name = path.substr(path.find_last_of('/') + 1);
    if (!name.empty()) return name;
  }
  return name_from_file(document);
}

}  // namespace

bool is_hugging_face_config(const Field& root) {
  return root.has("model_type") || root.has("architectures");
}

Model read_hugging_face_config(const Document& document) {
  const Config config(document.root());
  Model model;
  model.name = name_of(config, document);
  model.source = document.name();
  family_of(config).read(config, model);
  return model;
}

}  // namespace flyover::io
