// Do parameters and FLOPs of an architecture follow from its sizes, and are they those published?

#include "flyover/layout/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/model_reader.hpp"
#include "support/schema.hpp"
#include "support/shared.hpp"

namespace flyover {

namespace {

Model gpt(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads) {
  Model model;
  model.layers = layers;
  model.hidden = hidden;
  model.attention.heads = model.attention.kv_heads = heads;
  model.attention.head_dim = hidden / heads;
  model.attention.bias = model.attention.output_bias = true;
  model.ffn_hidden = 4 * hidden;
  model.ffn_matrices = 2;
  model.ffn_bias = true;
  model.norm_bias = true;
  model.vocabulary = 51'200;
  model.tied_embeddings = true;
  model.positions = 2'048;
  return model;
}

Model mixture(std::uint32_t layers, std::uint32_t first_layer, std::uint32_t every) {
  Model model = gpt(layers, 64, 4);
  model.experts =
      Experts{.count = 8, .chosen = 2, .hidden = 32, .first_layer = first_layer, .every = every};
  return model;
}

}  // namespace

TEST_CASE("parameters of GPT models follow the closed form", "[layout][model]") {
  // Narayanan et al. (2021), equation 2, without its final norm: 12 L h^2 (1 + 13 / (12 h) +
  // (V + s) / (12 L h)).
  for (const auto& [layers, hidden, heads] :
       {std::tuple{24U, 2'304U, 24U}, {96U, 12'288U, 96U}, {128U, 25'600U, 160U}}) {
    const Model model = gpt(layers, hidden, heads);
    const std::uint64_t l = layers;
    const std::uint64_t h = hidden;
    const std::uint64_t closed = 12 * l * h * h + 13 * l * h + (51'200 + 2'048) * h;
    CHECK(parameter_counts(model).total() == closed + 2 * h);
    CHECK(parameter_counts(model).active(model) == closed + 2 * h);
  }
}

TEST_CASE("forward FLOPs of GPT models follow the closed form", "[layout][model]") {
  // Of an iteration 72 B s L h^2 (1 + s / (6 h) + V / (12 L h)), three times the forward pass.
  for (const auto& [layers, hidden, heads] :
       {std::tuple{24U, 2'304U, 24U}, {96U, 12'288U, 96U}, {128U, 25'600U, 160U}}) {
    for (const std::uint32_t sequence : {1U, 2'048U, 131'072U}) {
      const double l = layers;
      const double h = hidden;
      const double s = sequence;
      const double closed = 24 * l * h * h * (1 + s / (6 * h) + 51'200 / (12 * l * h));
      const ForwardFlops flops = forward_flops(gpt(layers, hidden, heads), sequence, false);
      CHECK(flops.total() == Approx(closed).epsilon(1e-14));
      CHECK(flops.attention_scores == 4 * s * h * l);
      CHECK(flops.head == 2 * h * 51'200);
      CHECK(flops.mtp == 0);
    }
  }
}

TEST_CASE("causal attention has half the work", "[layout][model]") {
  const Model model = gpt(2, 64, 4);
  const ForwardFlops all = forward_flops(model, 512, false);
  const ForwardFlops causal = forward_flops(model, 512, true);
  CHECK(causal.attention_scores == all.attention_scores / 2);
  CHECK(causal.total() == all.total() - causal.attention_scores);
}

TEST_CASE("a layer's window limits the keys that it works with", "[layout][model]") {
  Model model = gpt(6, 64, 4);
  CHECK_FALSE(has_window(model, 0));
  model.attention.window = 100;
  CHECK(has_window(model, 5));
  model.attention.full_every = 3;
  std::vector<bool> windowed;
  for (std::uint32_t layer = 0; layer < 6; ++layer) windowed.push_back(has_window(model, layer));
  CHECK(windowed == std::vector<bool>{true, true, false, true, true, false});

  CHECK(mean_keys(model, 2, 1'000, false) == 1'000);
  CHECK(mean_keys(model, 2, 1'000, true) == 500);
  CHECK(mean_keys(model, 0, 1'000, false) == 100);
  CHECK(mean_keys(model, 0, 1'000, true) == 95);  // The first 100 tokens see 50.
  CHECK(mean_keys(model, 0, 100, true) == 50);
  CHECK(mean_keys(model, 0, 40, false) == 40);
  model.attention.chunked = true;
  CHECK(mean_keys(model, 0, 1'000, true) == 50);
  CHECK(mean_keys(model, 0, 1'000, false) == 100);
  CHECK(mean_keys(model, 0, 60, true) == 30);
  CHECK_THROWS_AS(mean_keys(model, 0, 0, true), InternalError);
}

TEST_CASE("layers have experts from the first on at even distances", "[layout][model]") {
  const auto pattern = [](const Model& model) {
    std::string text;
    for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
      text += has_experts(model, layer) ? 'e' : 'd';
    }
    return text;
  };
  CHECK(pattern(gpt(3, 64, 4)) == "ddd");
  CHECK(pattern(mixture(4, 0, 1)) == "eeee");
  CHECK(pattern(mixture(5, 3, 1)) == "dddee");
  CHECK(pattern(mixture(6, 1, 2)) == "dedede");
  CHECK(pattern(mixture(7, 2, 3)) == "ddedded");
  for (const std::uint32_t layers : {1U, 2U, 3U, 7U, 8U}) {
    for (const std::uint32_t first : {0U, 1U, 2U}) {
      for (const std::uint32_t every : {1U, 2U, 3U}) {
        const Model model = mixture(layers, first, every);
        const std::string text = pattern(model);
        CHECK(expert_layers(model) == std::count(text.begin(), text.end(), 'e'));
      }
    }
  }
  CHECK(expert_layers(gpt(3, 64, 4)) == 0);
}

TEST_CASE("a token meets only the experts that it chose", "[layout][model]") {
  Model model = mixture(5, 1, 2);
  model.experts->shared_hidden = 48;
  const ParameterCounts counts = parameter_counts(model);
  const std::uint64_t expert = 2 * 64 * 32 + 32 + 64;  // Two matrices and their biases.
  CHECK(counts.experts == 2 * 8 * expert);
  CHECK(counts.shared_experts == 2 * (2 * 64 * 48 + 48 + 64));
  CHECK(counts.router == 2 * 8 * (64 + 1));
  CHECK(counts.dense_ffn == 3 * (2 * 64 * 256 + 256 + 64));
  CHECK(counts.total() - counts.active(model) == 2 * 6 * expert);

  const ForwardFlops dense = layer_flops(model, 0, 16, true);
  const ForwardFlops sparse = layer_flops(model, 1, 16, true);
  CHECK(dense.ffn == 2 * 2 * 64 * 256);
  CHECK(sparse.ffn == 2 * (2 * 64 * (2 * 32 + 48) + 64 * 8));
  CHECK(dense.attention_scores == sparse.attention_scores);
}

TEST_CASE("a model is the sum of its layers, its ends and its prediction blocks",
          "[layout][model]") {
  for (const io::ShippedModel& shipped : io::shipped_models()) {
    CAPTURE(shipped.name);
    const Model model = io::load_model(shipped.name);
    std::uint64_t parameters = 0;
    double flops = 0;
    for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
      parameters += layer_parameters(model, layer).total();
      flops += layer_flops(model, layer, 4'096, true).total();
    }
    const ParameterCounts counts = parameter_counts(model);
    const std::uint64_t final_norm = (model.norm_bias ? 2 : 1) * std::uint64_t{model.hidden};
    CHECK(counts.total() == parameters + final_norm + counts.embedding + counts.head);
    const ForwardFlops forward = forward_flops(model, 4'096, true);
    CHECK(forward.total() == Approx(flops + forward.head + forward.mtp).epsilon(1e-12));
  }
}

TEST_CASE("multi-token prediction adds a layer, a projection and the head's work",
          "[layout][model]") {
  Model model = mixture(3, 0, 1);
  model.mtp_layers = 2;
  const ForwardFlops flops = forward_flops(model, 32, true);
  CHECK(flops.mtp ==
        2 * (layer_flops(model, 2, 32, true).total() + 2 * 2 * 64 * 64 + 2 * 64 * 51'200));
  const ParameterCounts counts = parameter_counts(model);
  CHECK(counts.mtp == 2 * (layer_parameters(model, 2).total() + 2 * 64 * 64 + 3 * 2 * 64));
  Model without = model;
  without.mtp_layers = 0;
  CHECK(counts.total() == parameter_counts(without).total());
}

TEST_CASE("latent attention has the published matrices", "[layout][model]") {
  const Model model = io::load_model("deepseek-v3");
  // arXiv 2412.19437: 7168 -> 1536 -> 128 x 192, 7168 -> 512 + 64, 512 -> 128 x (128 + 128),
  // 128 x 128 -> 7168.
  const std::uint64_t weights =
      7'168 * 1'536 + 1'536 * 128 * 192 + 7'168 * 576 + 512 * 128 * 256 + 128 * 128 * 7'168;
  CHECK(layer_parameters(model, 0).attention == weights);
  CHECK(layer_parameters(model, 0).norms == 2 * 7'168 + 1'536 + 512);
  const ForwardFlops flops = layer_flops(model, 0, 4'096, false);
  CHECK(flops.attention_projections == 2.0 * static_cast<double>(weights));
  CHECK(flops.attention_scores == 2.0 * 4'096 * 128 * (128 + 64 + 128));

  const Model lite = io::load_model("deepseek-v2-lite");
  CHECK(layer_parameters(lite, 0).attention ==
        2'048 * 16 * 192 + 2'048 * 576 + 512 * 16 * 256 + 16 * 128 * 2'048);
}

TEST_CASE("shipped models have exactly the parameters of the published weights",
          "[layout][model]") {
  // As Hugging Face counts them in the weight files.
  const std::map<std::string, std::uint64_t> published = {
      {"llama2-7b", 6'738'415'616},
      {"llama2-13b", 13'015'864'320},
      {"llama2-70b", 68'976'648'192},
      {"llama3-8b", 8'030'261'248},
      {"llama3.1-70b", 70'553'706'496},
      {"llama3.1-405b", 405'853'388'800},
      {"mistral-7b", 7'241'732'096},
      {"mixtral-8x7b", 46'702'792'704},
      {"mixtral-8x22b", 140'630'071'296},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352},
      {"qwen2.5-72b", 72'706'203'648},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-14b", 14'768'307'200},
      {"qwen3-32b", 32'762'123'264},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"deepseek-v2-lite", 15'706'484'224},
      {"deepseek-v2", 235'741'434'880},
      {"mpt-7b", 6'649'286'656},
      // Less what no formula here counts: a bias per expert that no gradient trains (DeepSeek), a
      // sink per head (gpt-oss), a norm after the embedding (BLOOM).
      {"deepseek-v3", 671'026'419'200 - 58 * 256},
      {"gpt-oss-20b", 20'914'757'184 - 24 * 64},
      {"gpt-oss-120b", 116'829'156'672 - 36 * 64},
      {"bloom-176b", 176'247'271'424 - 2 * 14'336},
  };
  for (const auto& [name, parameters] : published) {
    CAPTURE(name);
    CHECK(parameter_counts(io::load_model(name)).total() == parameters);
  }
}

TEST_CASE("total and active parameters are those that the papers round to", "[layout][model]") {
  struct Published {
    const char* name;
    double total;   // In billions,
    double active;  // 0: not stated or dense,
    double within;  // by rounding.
  };
  // MoE papers count embedding and head among the active parameters, but for gpt-oss.
  for (const Published& published : {
           Published{"gpt3-175b", 174.6, 0, 0.05},
           {"gpt-1.7b", 1.7, 0, 0.05},
           {"gpt-3.6b", 3.6, 0, 0.05},
           {"gpt-7.5b", 7.5, 0, 0.05},
           {"gpt-18b", 18.4, 0, 0.051},
           {"gpt-39b", 39.1, 0, 0.05},
           {"gpt-76b", 76.1, 0, 0.051},
           {"gpt-145b", 145.6, 0, 0.05},
           {"gpt-310b", 310.1, 0, 0.05},
           {"megatron-22b", 22, 0, 0.5},
           {"megatron-175b", 175, 0, 0.5},
           {"megatron-530b", 529.6, 0, 0.05},
           {"megatron-1t", 1'008, 0, 0.5},
           {"mixtral-8x7b", 46.7, 12.9, 0.05},
           {"mixtral-8x22b", 141, 39, 0.5},
           {"qwen2-57b-a14b", 57.4, 14.2, 0.051},
           {"qwen3-30b-a3b", 30.5, 3.3, 0.054},
           {"qwen3-235b-a22b", 235, 22, 0.5},
           {"nemotron4-15b", 15.6, 0, 0.05},
           {"nemotron4-340b", 341, 0, 0.5},
           {"deepseek-v2", 236, 21, 0.5},
           {"deepseek-v3", 671, 37, 0.56},
           {"deepseek-v4-flash", 284, 13, 0.5},  // What stands in for its attention: the file.
           {"deepseek-v4-pro", 1'600, 49, 50},
           {"kimi-k2", 1'030, 32, 5},
           {"llama4-scout", 109, 17, 1.5},  // Published with the vision tower, 0.9 B.
           {"llama4-maverick", 400, 17, 1.5},
           {"grok-1", 314, 0, 2},  // 314.9 without the embedding.
           {"mpt-7b", 6.7, 0, 0.06},
           {"mpt-30b", 30, 0, 0.05},
           {"internlm-7b", 7.3, 0, 0.05},
           {"llama-65b", 65.2, 0, 0.1},
       }) {
    CAPTURE(published.name);
    const Model model = io::load_model(published.name);
    const ParameterCounts counts = parameter_counts(model);
    CHECK(static_cast<double>(counts.total()) * 1e-9 ==
          Approx(published.total).margin(published.within));
    if (published.active > 0) {
      CHECK(static_cast<double>(counts.active(model)) * 1e-9 ==
            Approx(published.active).margin(published.within > 1 ? 1 : published.within));
    }
  }
}

TEST_CASE("the published tables of parts are met", "[layout][model]") {
  // gpt-oss model card, table 1: attention 0.96 B, MLP 114.71 B, active 5.13 B without embedding.
  const Model gpt_oss = io::load_model("gpt-oss-120b");
  const ParameterCounts counts = parameter_counts(gpt_oss);
  CHECK(counts.attention == Approx(0.96e9).margin(0.005e9));
  CHECK(counts.experts + counts.router == Approx(114.71e9).margin(0.02e9));
  CHECK(counts.embedding + counts.head == Approx(1.16e9).margin(0.005e9));
  CHECK(counts.active(gpt_oss) - counts.embedding == Approx(5.13e9).margin(0.005e9));

  // Nemotron-4 15B: 12.5 B without embeddings, 3.1 B of them; 340B: 331.6 B and 9.4 B.
  const ParameterCounts small = parameter_counts(io::load_model("nemotron4-15b"));
  CHECK(small.embedding + small.head == Approx(3.1e9).margin(0.05e9));
  CHECK(small.total() - small.embedding - small.head == Approx(12.5e9).margin(0.05e9));
  const ParameterCounts large = parameter_counts(io::load_model("nemotron4-340b"));
  CHECK(large.embedding + large.head == Approx(9.4e9).margin(0.05e9));
  CHECK(large.total() - large.embedding - large.head == Approx(331.6e9).margin(0.05e9));

  // All of DeepSeek-V3's weight files: the prediction block brings a copy of embedding and head,
  // and every layer with experts a bias for each that no gradient trains.
  const ParameterCounts deepseek = parameter_counts(io::load_model("deepseek-v3"));
  CHECK(deepseek.total() + deepseek.mtp + deepseek.embedding + deepseek.head + 59 * 256 ==
        684'489'845'504);
}

namespace {

using nlohmann::json;

Model from_record(const json& arch) {
  const auto number = [&](const char* key) { return arch.value(key, 0U); };
  Model model;
  model.layers = number("layers");
  model.hidden = number("hidden");
  model.attention.heads = number("heads");
  model.attention.kv_heads = number("kv_heads");
  model.attention.head_dim = number("head_dim");
  if (arch.contains("mla")) {
    const json& mla = arch["mla"];
    model.attention.latent =
        LatentAttention{mla["q_lora_rank"], mla["kv_lora_rank"], mla["qk_nope_head_dim"],
                        mla["qk_rope_head_dim"], mla["v_head_dim"]};
  }
  if (arch.contains("sliding_window")) {
    model.attention.window = arch["sliding_window"];
    model.attention.full_every = 2;
  }
  model.ffn_hidden = number("ffn");
  model.ffn_matrices = number("ffn_matrices");
  if (arch.contains("experts")) {
    const std::uint32_t sparse = number("moe_layers");
    const bool alternating = 2 * sparse == model.layers;
    model.experts = Experts{.count = number("experts"),
                            .chosen = number("topk"),
                            .hidden = number("moe_ffn"),
                            .shared_hidden = number("shared_ffn"),
                            .first_layer = alternating ? 1 : model.layers - sparse,
                            .every = alternating ? 2U : 1U};
  }
  model.vocabulary = number("vocab");
  model.mtp_layers = number("mtp_layers");
  return model;
}

}  // namespace

TEST_CASE("published FLOPS over published tokens per second are this model's",
          "[layout][model][shared]") {
  const auto results = test::shared_material("training/results.json");
  if (!results) return;
  int stated = 0;
  int met = 0;
  std::map<std::string, int> missed;
  for (const json& record : json::parse(test::text_of(*results))) {
    const json& derived = record["derived"];
    if (!record["model"].value("arch_complete", false)) continue;
    if (!derived.contains("reported_tflops_convention")) continue;
    const std::string convention = derived["reported_tflops_convention"];
    const json& measured = record["measured"];
    const double tokens = measured.contains("tokens_per_s_per_gpu")
                              ? measured["tokens_per_s_per_gpu"]
                              : derived["tokens_per_s_per_gpu"];
    const double flops = measured["tflops_per_gpu"].get<double>() * 1e12;
    const Model model = from_record(record["model"]["arch"]);
    const bool causal = convention.find("non-causal") == std::string::npos;
    const double passes = convention.find("recompute") == std::string::npos ? 3 : 4;
    const std::uint32_t sequence = record["model"]["seq"];
    const double expected = passes * forward_flops(model, sequence, causal).total();
    ++stated;
    if (std::abs(flops / tokens / expected - 1) <= 0.04) {
      ++met;
    } else {
      ++missed[record["model"]["name"].get<std::string>() + ", " + convention];
    }
  }
  std::string list;
  for (const auto& [name, count] : missed) list += std::to_string(count) + " x " + name + "\n";
  INFO(met << " of " << stated << "; missed:\n" << list);
  CHECK(stated > 400);
  CHECK(met >= 0.9 * stated);
}

TEST_CASE("shipped models agree with the published results' architectures",
          "[layout][model][shared]") {
  const auto results = test::shared_material("training/results.json");
  if (!results) return;
  // Where a shipped file follows the original and the results the benchmark.
  const std::vector<std::string> others = {"gpt-1.7b", "mpt-30b"};
  int compared = 0;
  for (const json& record : json::parse(test::text_of(*results))) {
    const std::string name = record["model"]["name"];
    if (!record["model"].value("arch_complete", false)) continue;
    if (std::ranges::find(others, name) != others.end()) continue;
    Model shipped;
    try {
      shipped = io::load_model(name);
    } catch (const InputError&) {
      continue;
    }
    CAPTURE(name);
    const Model model = from_record(record["model"]["arch"]);
    CHECK(shipped.hidden == model.hidden);
    CHECK(shipped.attention.heads == model.attention.heads);
    CHECK(shipped.attention.kv_heads == model.attention.kv_heads);
    CHECK(shipped.attention.head_dim == model.attention.head_dim);
    CHECK(shipped.ffn_matrices == model.ffn_matrices);
    CHECK(shipped.experts.has_value() == model.experts.has_value());
    if (shipped.layers == model.layers) {  // Some are measured with fewer.
      Model renamed = model;
      renamed.mtp_layers = shipped.mtp_layers;
      renamed.vocabulary = shipped.vocabulary;  // Theirs may be padded.
      CHECK(forward_flops(shipped, 2'048, false).total() ==
            Approx(forward_flops(renamed, 2'048, false).total()).epsilon(1e-12));
    }
    ++compared;
  }
  CHECK(compared > 700);
}

}  // namespace flyover
