// Are models read as they are meant, and is every mistake in one named?

#include "flyover/io/model_reader.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "support/schema.hpp"

namespace flyover::io {

namespace {

namespace fs = std::filesystem;

Model read(const std::string& text, const std::string& name = "m.json") {
  return read_model(Document::parse(name, text));
}

std::string error_of(const std::string& text) {
  try {
    (void)read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// A config of one line without its closing brace, with further members.
std::string with(const std::string& config, const std::string& members) {
  return config + (members.empty() ? "}" : ", " + members + "}");
}

const std::string own =
    R"({"format": "flyover-model-1", "layers": 4, "hidden": 64, "vocabulary": 100)";
const std::string dense = own + R"(, "ffn": {"hidden": 256})";
const std::string heads = R"("attention": {"heads": 8})";

// What Hugging Face's names have in common.
std::string config(const std::string& type, const std::string& members) {
  return fmt::format(
      R"({{"model_type": "{}", "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 100, )"
      R"("num_attention_heads": 8, "max_position_embeddings": 512{}}})",
      type, members.empty() ? "" : ", " + members);
}
const std::string gqa = R"("num_key_value_heads": 2, "intermediate_size": 96)";
const std::string qwen_experts =
    R"("num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 24)";
const std::string deepseek =
    R"("intermediate_size": 96, "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
       "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 16, "n_shared_experts": 2,
       "num_experts_per_tok": 4, "moe_intermediate_size": 24, "first_k_dense_replace": 1)";
const std::string local_experts =
    R"("num_key_value_heads": 2, "intermediate_size": 24, "num_local_experts": 8,
       "num_experts_per_tok": 2)";

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / "flyover_model_reader_test") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("a dense model in Flyover's format", "[model]") {
  const Model model = read(with(dense, R"("attention": {"heads": 8, "kv_heads": 2, "head_dim": 16,
      "bias": true, "output_bias": true, "norms": true,
      "window": {"tokens": 32, "chunks": true, "full_every": 4}}, "norm_bias": true,
      "tied_embeddings": true, "positions": 512, "mtp_layers": 1, "longest_sequence": 2048,
      "name": "mine", "source": "me")"));
  CHECK(model.name == "mine");
  CHECK(model.source == "me");
  CHECK(model.layers == 4);
  CHECK(model.hidden == 64);
  CHECK(model.vocabulary == 100);
  CHECK(model.attention.heads == 8);
  CHECK(model.attention.kv_heads == 2);
  CHECK(model.attention.head_dim == 16);
  CHECK(model.attention.bias);
  CHECK(model.attention.output_bias);
  CHECK(model.attention.norms);
  CHECK(model.attention.window == 32);
  CHECK(model.attention.chunked);
  CHECK(model.attention.full_every == 4);
  CHECK(model.ffn_hidden == 256);
  CHECK(model.ffn_matrices == 3);
  CHECK_FALSE(model.ffn_bias);
  CHECK(model.norm_bias);
  CHECK(model.tied_embeddings);
  CHECK(model.positions == 512);
  CHECK(model.mtp_layers == 1);
  CHECK(model.longest_sequence == 2'048);
  CHECK_FALSE(model.experts);
}

TEST_CASE("what a model leaves out has its default", "[model]") {
  const Model model = read(with(dense, heads), "folder/small.json");
  CHECK(model.name == "small");
  CHECK(model.source == "folder/small.json");
  CHECK(model.attention.kv_heads == 8);
  CHECK(model.attention.head_dim == 8);
  CHECK(model.attention.window == 0);
  CHECK_FALSE(model.tied_embeddings);
  CHECK(model.mtp_layers == 0);
  CHECK(model.positions == 0);
}

TEST_CASE("a model with latent attention and experts in Flyover's format", "[model]") {
  const Model model = read(with(dense, R"("attention": {"heads": 8, "latent": {"query_rank": 48,
      "kv_rank": 32, "nope_dim": 16, "rope_dim": 8, "value_dim": 12}},
      "experts": {"count": 16, "chosen": 4, "hidden": 24, "shared_hidden": 48, "first_layer": 1,
                  "every": 2, "groups": 4, "groups_chosen": 2})"));
  REQUIRE(model.attention.latent);
  CHECK(model.attention.latent->query_rank == 48);
  CHECK(model.attention.latent->kv_rank == 32);
  CHECK(model.attention.latent->nope_dim == 16);
  CHECK(model.attention.latent->rope_dim == 8);
  CHECK(model.attention.latent->value_dim == 12);
  CHECK(model.attention.kv_heads == 8);
  CHECK(model.attention.head_dim == 24);
  REQUIRE(model.experts);
  CHECK(model.experts->count == 16);
  CHECK(model.experts->chosen == 4);
  CHECK(model.experts->hidden == 24);
  CHECK(model.experts->shared_hidden == 48);
  CHECK(model.experts->first_layer == 1);
  CHECK(model.experts->every == 2);
  CHECK(model.experts->groups == 4);
  CHECK(model.experts->groups_chosen == 2);
}

TEST_CASE("mistakes in Flyover's format are named", "[model]") {
  CHECK(error_of("{}") ==
        "m.json:1:1: expected a model: \"format\": \"flyover-model-1\", or \"model_type\" as in a "
        "Hugging Face config.json");
  CHECK(error_of(R"({"format": "flyover-model-2"})") ==
        "m.json:1:12: /format: expected \"flyover-model-1\"");
  CHECK(error_of(R"({"format": "flyover-model-1", "layer": 3})") ==
        "m.json:1:31: /layer: is not a known option, did you mean \"layers\"?");
  CHECK(error_of(with(own, heads)) == "m.json:1:1: \"ffn\" is missing");
  CHECK(error_of(with(own, R"("ffn": {}, )" + heads)) ==
        "m.json:1:84: /ffn: \"hidden\" is missing");
  CHECK(error_of(with(own, "")) == "m.json:1:1: \"attention\" is missing");
  CHECK(error_of(with(dense, R"("attention": {"heads": 7})")) ==
        "m.json:1:124: /attention/heads: 7 heads do not divide the hidden size 64: expected "
        "\"head_dim\"");
  CHECK(error_of(with(dense, R"("attention": {"heads": 8, "kv_heads": 3})")) ==
        "m.json:1:139: /attention/kv_heads: expected a divisor of the 8 heads, got 3");
  CHECK(error_of(with(dense, R"("attention": {"heads": 8, "kv_heads": 9})")) ==
        "m.json:1:139: /attention/kv_heads: expected a whole number from 1 to 8, got 9");
  CHECK(error_of(with(dense, R"("attention": {"heads": 8, "window": {"tokens": 4, )"
                             R"("full_every": 1}})")) ==
        "m.json:1:165: /attention/window/full_every: expected a whole number from 2 to 1000, got "
        "1");
  CHECK(error_of(with(dense, R"("attention": {"heads": 8, "head_dim": 8, "latent": {)"
                             R"("kv_rank": 32, "nope_dim": 16, "rope_dim": 8, "value_dim": 12}})"))
            .ends_with("/attention/head_dim: is not a known option, known are \"heads\", "
                       "\"latent\" and \"window\""));

  const auto experts = [](const std::string& members) {
    return error_of(
        with(own, heads + R"(, "experts": {"count": 8, "hidden": 24, )" + members + "}"));
  };
  CHECK(experts(R"("chosen": 9)") ==
        "m.json:1:152: /experts/chosen: expected a whole number from 1 to 8, got 9");
  CHECK(experts(R"("chosen": 2, "first_layer": 4)")
            .ends_with("/experts/first_layer: expected a whole number from 0 to 3, got 4"));
  CHECK(experts(R"("chosen": 2, "first_layer": 1)") == "m.json:1:1: \"ffn\" is missing");
  CHECK(experts(R"("chosen": 2, "groups": 4)")
            .ends_with("/experts: expected both \"groups\" and \"groups_chosen\", or neither"));
  CHECK(experts(R"("chosen": 2, "groups": 3, "groups_chosen": 1)")
            .ends_with("/experts/groups: expected a divisor of the 8 experts, got 3"));
  CHECK(experts(R"("chosen": 3, "groups": 4, "groups_chosen": 1)")
            .ends_with("/experts/groups_chosen: 1 of 4 groups have 2 experts, fewer than the 3 "
                       "that a token uses"));
  CHECK(error_of(with(dense, heads + R"(, "experts": {"count": 8, "hidden": 24, "chosen": 2})")) ==
        "m.json:1:95: /ffn/hidden: every layer has experts, none this size");
}

TEST_CASE("schema and reader are of one mind about models", "[model][schema]") {
  const test::Schema schema("model.schema.json");
  const auto accepted = [](const std::string& text) { return error_of(text) == "no error"; };
  for (const std::string& text : {
           with(dense, heads),
           with(dense, heads + R"(, "$schema": "x", "comment": 1, "aliases": ["a"], "mtp_layers": 1,
             "positions": 4, "longest_sequence": 8, "norm_bias": true, "tied_embeddings": true)"),
           with(own, heads + R"(, "experts": {"count": 8, "hidden": 24, "chosen": 2})"),
           with(own, heads + R"(, "ffn": {"bias": true, "matrices": 2},
             "experts": {"count": 8, "hidden": 24, "chosen": 2, "groups": 4, "groups_chosen": 2})"),
           with(dense, R"("attention": {"heads": 8, "kv_heads": 2, "head_dim": 3, "bias": true,
             "norms": true, "window": {"tokens": 3}})"),
           with(dense, R"("attention": {"heads": 8, "latent": {"kv_rank": 32, "nope_dim": 16,
             "rope_dim": 8, "value_dim": 12}})"),
       }) {
    CAPTURE(text);
    CHECK(error_of(text) == "no error");
    CHECK(schema.problems(text).empty());
  }
  for (const std::string& text : {
           with(own, heads),
           with(dense, ""),
           with(dense, heads + R"(, "hiden": 3)"),
           with(dense, R"("attention": {"heads": 0})"),
           with(dense, R"("attention": {"heads": 8, "window": {"full_every": 2}})"),
           with(dense, R"("attention": {"heads": 8, "window": {"tokens": 2, "full_every": 1}})"),
           with(dense, R"("attention": {"heads": 8, "latent": {"kv_rank": 32}})"),
           with(own, heads + R"(, "ffn": {"hidden": 3, "matrices": 4})"),
           with(own, heads + R"(, "experts": {"count": 8, "hidden": 24})"),
           with(own,
                heads + R"(, "experts": {"count": 8, "hidden": 24, "chosen": 2, "groups": 4})"),
           with(dense, heads + R"(, "layers": 1001)"),
           with(dense, heads + R"(, "positions": 0)"),
       }) {
    CAPTURE(text);
    CHECK_FALSE(accepted(text));
    if (text.find("1001") == std::string::npos) CHECK_FALSE(schema.accepts(text));
  }
}

TEST_CASE("shipped models satisfy the schema and name their source", "[model][schema]") {
  const test::Schema schema("model.schema.json");
  std::set<std::string> names;
  for (const ShippedModel& shipped : shipped_models()) {
    CAPTURE(shipped.name);
    const fs::path path =
        fs::path(FLYOVER_SOURCE_DIR) / "configs/models" / (shipped.name + ".json");
    CHECK(schema.problems(test::text_of(path)).empty());
    const Model model = load_model(shipped.name);
    CHECK(model.name == shipped.name);
    CHECK_FALSE(model.source.empty());
    CHECK(model.source != "models/" + shipped.name + ".json");
    CHECK(names.insert(shipped.name).second);
    for (const std::string& alias : shipped.aliases) {
      CHECK(names.insert(alias).second);
      CHECK(load_model(alias).name == shipped.name);
    }
  }
  CHECK(names.size() > 60);
}

TEST_CASE("the documented example is a model", "[model][schema]") {
  const std::string page = test::text_of(fs::path(FLYOVER_SOURCE_DIR) / "docs/formats/model.md");
  const std::string opening = "```json\n";
  const std::size_t begin = page.find(opening) + opening.size();
  const std::string text = page.substr(begin, page.find("```", begin) - begin);
  CHECK(test::Schema("model.schema.json").problems(text).empty());
  const Model model = read(text);
  CHECK(model.name == "mine-moe");
  CHECK(expert_layers(model) == 31);
}

TEST_CASE("models are found by name, alias, file and folder", "[model]") {
  CHECK(load_model("llama3-405b").name == "llama3.1-405b");
  CHECK(load_model("Llama-3.1-70B").name == "llama3.1-70b");
  CHECK(load_model("Qwen3-235B-A22B").name == "qwen3-235b-a22b");
  CHECK(load_model("gpt-22b").name == "megatron-22b");
  CHECK_THROWS_AS(load_model("gpt2-2b"), InputError);
  const Folder folder;
  const std::string text = config("llama", gqa);
  const fs::path file = folder.write("Mine-7B/config.json", text);
  CHECK(load_model(file.string()).name == "Mine-7B");
  CHECK(load_model(file.parent_path().string()).name == "Mine-7B");
  CHECK(load_model(folder.write("own.json", with(dense, heads)).string()).name == "own");

  CHECK_THROWS_WITH(load_model("llama3-80b"),
                    "\"llama3-80b\" is neither a known model nor a file, did you mean "
                    "\"llama3-8b\"?");
  CHECK_THROWS_WITH(load_model("completely-different"),
                    "\"completely-different\" is neither a known model nor a file; see flyover "
                    "list models");
  CHECK_THROWS_WITH(load_model("no/such.json"), "no/such.json: there is no such file");
}

TEST_CASE("Hugging Face: llama", "[model][hugging-face]") {
  const Model model =
      read(config("llama", gqa + R"(, "rope_theta": 1e4, "torch_dtype": "bfloat16")"),
           "path/My-Llama/config.json");
  CHECK(model.name == "My-Llama");
  CHECK(model.source == "path/My-Llama/config.json");
  CHECK(model.layers == 4);
  CHECK(model.hidden == 64);
  CHECK(model.vocabulary == 100);
  CHECK(model.longest_sequence == 512);
  CHECK(model.attention.heads == 8);
  CHECK(model.attention.kv_heads == 2);
  CHECK(model.attention.head_dim == 8);
  CHECK_FALSE(model.attention.bias);
  CHECK(model.ffn_hidden == 96);
  CHECK(model.ffn_matrices == 3);
  CHECK_FALSE(model.tied_embeddings);

  // None counts as left out; so do heads of keys, once as many as those of queries.
  const Model old = read(config("llama", R"("intermediate_size": 96, "head_dim": null,
      "num_key_value_heads": null, "attention_bias": true, "mlp_bias": true,
      "tie_word_embeddings": true, "_name_or_path": "org/name")"));
  CHECK(old.name == "name");
  CHECK(old.attention.kv_heads == 8);
  CHECK(old.attention.bias);
  CHECK(old.attention.output_bias);
  CHECK(old.ffn_bias);
  CHECK(old.tied_embeddings);
  CHECK(read(config("llama", gqa + R"(, "head_dim": 20)")).attention.head_dim == 20);
}

TEST_CASE("Hugging Face: mistral and mixtral", "[model][hugging-face]") {
  CHECK(read(config("mistral", gqa)).attention.window == 4'096);
  CHECK(read(config("mistral", gqa + R"(, "sliding_window": null)")).attention.window == 0);
  CHECK(read(config("mistral", gqa + R"(, "sliding_window": 64)")).attention.window == 64);
  const Model model = read(config("mixtral", local_experts + R"(, "sliding_window": null)"));
  CHECK(model.attention.window == 0);
  CHECK(model.ffn_hidden == 0);
  REQUIRE(model.experts);
  CHECK(model.experts->count == 8);
  CHECK(model.experts->chosen == 2);
  CHECK(model.experts->hidden == 24);
  CHECK(expert_layers(model) == 4);
}

TEST_CASE("Hugging Face: qwen", "[model][hugging-face]") {
  const Model dense2 = read(config("qwen2", gqa + R"(, "use_sliding_window": false,
      "sliding_window": 131072, "max_window_layers": 2)"));
  CHECK(dense2.attention.bias);
  CHECK_FALSE(dense2.attention.output_bias);
  CHECK(dense2.attention.window == 0);
  const std::string window = R"(, "use_sliding_window": true, "sliding_window": 32)";
  CHECK(read(config("qwen2", gqa + window + R"(, "max_window_layers": 4)")).attention.window == 0);
  CHECK(read(config("qwen2", gqa + window + R"(, "max_window_layers": 0)")).attention.window == 32);
  CHECK(error_of(config("qwen2", gqa + window + R"(, "max_window_layers": 2)"))
            .ends_with("/max_window_layers: each layer without a window must follow the same "
                       "number with one: layer 2 does not fit"));

  const Model dense3 = read(config("qwen3", gqa));
  CHECK(dense3.attention.head_dim == 128);
  CHECK(dense3.attention.norms);
  CHECK_FALSE(dense3.attention.bias);

  const Model moe2 = read(config(
      "qwen2_moe", gqa + ", " + qwen_experts + R"(, "shared_expert_intermediate_size": 40)"));
  CHECK(moe2.attention.bias);
  CHECK(moe2.experts->shared_hidden == 40);
  CHECK(moe2.ffn_hidden == 0);
  const Model moe3 = read(config("qwen3_moe", gqa + ", " + qwen_experts + R"(, "head_dim": 16,
      "mlp_only_layers": [], "decoder_sparse_step": 2)"));
  CHECK(moe3.attention.norms);
  CHECK(moe3.attention.head_dim == 16);
  CHECK(moe3.experts->first_layer == 1);
  CHECK(moe3.experts->every == 2);
  CHECK(moe3.ffn_hidden == 96);
  const auto dense_layers = [](const std::string& list) {
    return config("qwen3_moe", gqa + ", " + qwen_experts + R"(, "mlp_only_layers": )" + list);
  };
  CHECK(read(dense_layers("[0, 1]")).experts->first_layer == 2);
  CHECK_FALSE(read(dense_layers("[0, 1, 2, 3]")).experts);
  CHECK(error_of(dense_layers("[2]"))
            .ends_with("/mlp_only_layers: layers with experts must be evenly spaced, but layer 2 "
                       "is not"));
  CHECK(error_of(dense_layers("[4]"))
            .ends_with("/mlp_only_layers/0: expected a whole number from 0 to 3, got 4"));
}

TEST_CASE("Hugging Face: deepseek and kimi", "[model][hugging-face]") {
  for (const char* type : {"deepseek_v2", "deepseek_v3", "kimi_k2"}) {
    const Model model = read(config(type, deepseek + R"(, "n_group": 4, "topk_group": 2,
        "num_nextn_predict_layers": 1, "num_key_value_heads": 8)"));
    REQUIRE(model.attention.latent);
    CHECK(model.attention.latent->query_rank == 48);
    CHECK(model.attention.latent->kv_rank == 32);
    CHECK(model.attention.latent->value_dim == 16);
    CHECK(model.attention.kv_heads == 8);
    CHECK(model.attention.head_dim == 24);
    CHECK(model.experts->shared_hidden == 48);
    CHECK(model.experts->first_layer == 1);
    CHECK(model.experts->every == 1);
    CHECK(model.experts->groups == 4);
    CHECK(model.experts->groups_chosen == 2);
    CHECK(model.ffn_hidden == 96);
    CHECK(model.mtp_layers == 1);
  }
  const Model lite = read(config("deepseek_v2", deepseek + R"(, "topk_method": "greedy",
      "n_group": 4, "topk_group": 1, "moe_layer_freq": 2)"));
  CHECK(lite.experts->groups == 0);
  CHECK(lite.experts->first_layer == 2);
  CHECK(lite.mtp_layers == 0);
  const Model one = read(config("deepseek_v3", deepseek + R"(, "n_group": 1, "topk_group": 1)"));
  CHECK(one.experts->groups == 0);
}

TEST_CASE("Hugging Face: gpt_oss", "[model][hugging-face]") {
  const std::string members = local_experts + R"(, "sliding_window": 32)";
  const Model model = read(config("gpt_oss", members));
  CHECK(model.attention.head_dim == 64);
  CHECK(model.attention.bias);
  CHECK(model.attention.output_bias);
  CHECK(model.ffn_bias);
  CHECK(model.attention.window == 32);
  CHECK(model.attention.full_every == 2);
  CHECK_FALSE(model.attention.chunked);
  const auto types = [&](const std::string& list) {
    return config("gpt_oss", members + R"(, "layer_types": [)" + list + "]");
  };
  const std::string s = R"("sliding_attention")";
  const std::string f = R"("full_attention")";
  CHECK(read(types(fmt::format("{}, {}, {}, {}", s, s, s, f))).attention.full_every == 4);
  CHECK(read(types(fmt::format("{}, {}, {}, {}", s, s, s, s))).attention.full_every == 0);
  CHECK(read(types(fmt::format("{}, {}, {}, {}", f, f, f, f))).attention.window == 0);
  CHECK(
      error_of(types(s)).ends_with("/layer_types: expected 4 elements, one for each layer, got 1"));
  CHECK(error_of(types(fmt::format("{}, {}, {}, {}", s, f, f, s)))
            .ends_with("/layer_types: each layer without a window must follow the same number with "
                       "one: layer 2 does not fit"));
  CHECK(error_of(types(fmt::format(R"({}, {}, {}, "linear_attention")", s, f, s)))
            .ends_with("/layer_types/3: expected \"sliding_attention\" or \"full_attention\", got "
                       "\"linear_attention\""));
}

TEST_CASE("Hugging Face: llama4", "[model][hugging-face]") {
  const auto text_config = [](const std::string& members) {
    return fmt::format(
        R"({{"model_type": "llama4", "text_config": {}, "vision_config": {{}}}})",
        config("llama4_text", local_experts + R"(, "intermediate_size_mlp": 96)" + members));
  };
  const Model scout = read(text_config(R"(, "attention_chunk_size": 32)"));
  CHECK(scout.attention.head_dim == 128);
  CHECK(scout.attention.window == 32);
  CHECK(scout.attention.chunked);
  CHECK(scout.attention.full_every == 4);
  CHECK(scout.experts->shared_hidden == 24);
  CHECK(expert_layers(scout) == 4);
  CHECK(scout.ffn_hidden == 0);
  const Model maverick = read(text_config(R"(, "interleave_moe_layer_step": 2,
      "attention_chunk_size": 32, "no_rope_layers": [1, 0, 1, 0])"));
  CHECK(maverick.experts->first_layer == 1);
  CHECK(maverick.experts->every == 2);
  CHECK(maverick.ffn_hidden == 96);
  CHECK(maverick.attention.full_every == 2);
  CHECK(read(text_config(R"(, "moe_layers": [1, 3])")).experts->first_layer == 1);
  CHECK(read(text_config(R"(, "attention_chunk_size": null)")).attention.window == 0);
  CHECK(read(text_config(R"(, "attention_chunk_size": 8, "no_rope_layers": [],
      "no_rope_layer_interval": 3)"))
            .attention.full_every == 3);
  CHECK(read(text_config(R"(, "attention_chunk_size": 8, "layer_types": ["chunked_attention",
      "full_attention", "chunked_attention", "full_attention"])"))
            .attention.full_every == 2);
  CHECK(error_of(text_config(R"(, "attention_chunk_size": 8, "no_rope_layers": [1])"))
            .ends_with("/text_config/no_rope_layers: expected 4 elements, one for each layer, got "
                       "1"));
  CHECK(error_of(R"({"model_type": "llama4"})") == "m.json:1:1: \"text_config\" is missing");
  CHECK(error_of(R"({"model_type": "llama4", "text_config": {"num_hidden_layers": 4}})") ==
        "m.json:1:41: /text_config: \"hidden_size\" is missing");
}

TEST_CASE("Hugging Face: nemotron and grok", "[model][hugging-face]") {
  const Model nemotron = read(config("nemotron", gqa + R"(, "head_dim": 12)"));
  CHECK(nemotron.ffn_matrices == 2);
  CHECK(nemotron.norm_bias);
  CHECK(nemotron.attention.head_dim == 12);
  CHECK_FALSE(nemotron.tied_embeddings);
  const Model grok =
      read(config("grok-1", gqa + R"(, "num_experts": 8, "num_experts_per_tok": 2)"));
  CHECK(grok.experts->hidden == 96);
  CHECK(grok.ffn_matrices == 3);
  CHECK(grok.tied_embeddings);
}

TEST_CASE("Hugging Face: gpt2, gpt_neox and mpt", "[model][hugging-face]") {
  const std::string gpt2 = R"({"model_type": "gpt2", "n_layer": 4, "n_embd": 64, "n_head": 8,
      "n_positions": 512, "vocab_size": 100)";
  const Model classic = read(with(gpt2, R"("n_inner": null)"));
  CHECK(classic.ffn_hidden == 256);
  CHECK(classic.ffn_matrices == 2);
  CHECK(classic.ffn_bias);
  CHECK(classic.norm_bias);
  CHECK(classic.attention.bias);
  CHECK(classic.positions == 512);
  CHECK(classic.tied_embeddings);
  CHECK(read(with(gpt2, R"("n_inner": 96)")).ffn_hidden == 96);

  const Model neox = read(config("gpt_neox", R"("intermediate_size": 96)"));
  CHECK(neox.ffn_matrices == 2);
  CHECK(neox.positions == 0);
  CHECK(neox.attention.bias);
  CHECK_FALSE(neox.tied_embeddings);

  const std::string mpt = R"({"model_type": "mpt", "n_layers": 4, "d_model": 64, "n_heads": 8,
      "max_seq_len": 512, "vocab_size": 100)";
  const Model learned = read(with(mpt, R"("expansion_ratio": 4)"));
  CHECK(learned.positions == 512);
  CHECK(learned.ffn_hidden == 256);
  CHECK(learned.attention.bias);
  CHECK(learned.tied_embeddings);
  const Model alibi = read(with(mpt, R"("expansion_ratio": 2.5, "no_bias": true,
      "attn_config": {"alibi": true, "kv_n_heads": 2})"));
  CHECK(alibi.positions == 0);
  CHECK(alibi.ffn_hidden == 160);
  CHECK(alibi.attention.kv_heads == 2);
  CHECK_FALSE(alibi.attention.bias);
  CHECK_FALSE(alibi.norm_bias);
  CHECK(error_of(with(mpt, R"("expansion_ratio": 2.51)"))
            .ends_with("/expansion_ratio: expected a whole size of at most 1000000 when "
                       "multiplied with 64, got 160.64"));
}

TEST_CASE("Hugging Face: shipped models are what their config says", "[model][hugging-face]") {
  const Model model = read(R"({"architectures": ["DeepseekV3ForCausalLM"],
      "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
      "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
      "vocab_size": 129280, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
      "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4, "first_k_dense_replace": 3,
      "moe_layer_freq": 1, "num_nextn_predict_layers": 1, "tie_word_embeddings": false,
      "max_position_embeddings": 163840})");
  const Model shipped = load_model("deepseek-v3");
  CHECK(parameter_counts(model).total() == parameter_counts(shipped).total());
  CHECK(parameter_counts(model).mtp == parameter_counts(shipped).mtp);
  CHECK(model.experts->groups_chosen == shipped.experts->groups_chosen);
  CHECK(model.longest_sequence == shipped.longest_sequence);
}

TEST_CASE("mistakes in Hugging Face configs are named", "[model][hugging-face]") {
  const std::string types =
      "expected \"llama\", \"llama4\", \"llama4_text\", \"mistral\", \"mixtral\", \"qwen2\", "
      "\"qwen2_moe\", \"qwen3\", \"qwen3_moe\", \"deepseek_v2\", \"deepseek_v3\", \"kimi_k2\", "
      "\"gpt_oss\", \"nemotron\", \"grok-1\", \"gpt2\", \"gpt_neox\" or \"mpt\", got ";
  CHECK(error_of(R"({"model_type": "qwen4"})") ==
        "m.json:1:16: /model_type: " + types + "\"qwen4\", did you mean \"qwen2\"?");
  CHECK(error_of(R"({"model_type": "mamba"})").starts_with("m.json:1:16: /model_type: " + types));
  CHECK(error_of(R"({"architectures": ["LlamaForCausalLn"]})")
            .ends_with("got \"LlamaForCausalLn\", did you mean \"LlamaForCausalLM\"?"));
  CHECK(error_of(R"({"architectures": []})") ==
        "m.json:1:19: /architectures: expected more than 0 elements");
  CHECK(error_of(R"({"model_type": "llama"})") == "m.json:1:1: \"num_hidden_layers\" is missing");
  CHECK(error_of(config("mixtral", R"("num_key_value_heads": 2)"))
            .ends_with(": \"num_local_experts\" is missing"));
  CHECK(error_of(config("qwen2", R"("intermediate_size": 3)")) ==
        "m.json:1:1: \"num_key_value_heads\" is missing");
  CHECK(error_of(config("llama", R"("intermediate_size": "wide")"))
            .ends_with("/intermediate_size: expected a whole number, got \"wide\""));
  CHECK(error_of(config("llama", R"("intermediate_size": 96, "num_key_value_heads": 3)"))
            .ends_with("/num_key_value_heads: expected a divisor of the 8 heads, got 3"));
}

}  // namespace flyover::io
