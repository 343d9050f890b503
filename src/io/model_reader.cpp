#include "flyover/io/model_reader.hpp"

#include <cctype>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/embedded.hpp"
#include "io/hugging_face.hpp"
#include "io/model_fields.hpp"

namespace flyover::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view format_name = "flyover-model-1";
constexpr std::string_view folder = "models/";  // Of configs/.

Document shipped_document(std::string_view name) {
  const std::string path = fmt::format("{}{}.json", folder, name);
  return Document::parse(path, std::string(embedded_file(path)));
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// "Llama-3.1-70B" is how others write "llama3.1-70b". A hyphen after a digit stays: "gpt2-2b" is
// not "gpt-22b".
std::string plain_name(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool joint = name[i] == '-' && i > 0 && i + 1 < name.size() && is_letter(name[i - 1]) &&
                       is_digit(name[i + 1]);
    if (!joint) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return plain;
}

bool is_path(std::string_view name) {
  std::error_code error;
  return name == "-" || name.ends_with(".json") || name.find('/') != std::string_view::npos ||
         fs::exists(name, error);
}

bool flag(const Field& field, std::string_view key) {
  return field.has(key) && field[key].boolean();
}

std::uint32_t count_or_none(const Field& field, std::string_view key,
                            std::uint32_t high = 100'000'000) {
  return field.has(key) ? field[key].count(1, high) : 0;
}

LatentAttention read_latent(const Field& field) {
  field.allow_only({"query_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim"});
  LatentAttention latent;
  latent.query_rank = count_or_none(field, "query_rank", max_hidden);
  latent.kv_rank = field["kv_rank"].count(1, max_hidden);
  latent.nope_dim = field["nope_dim"].count(1, max_head_dim);
  latent.rope_dim = field["rope_dim"].count(1, max_head_dim);
  latent.value_dim = field["value_dim"].count(1, max_head_dim);
  return latent;
}

void read_window(const Field& field, Attention& attention) {
  field.allow_only({"tokens", "chunks", "full_every"});
  attention.window = field["tokens"].count();
  attention.chunked = flag(field, "chunks");
  if (field.has("full_every")) attention.full_every = field["full_every"].count(2, max_layers);
}

Attention read_attention(const Field& field, std::uint32_t hidden) {
  Attention attention;
  attention.heads = field["heads"].count(1, max_heads);
  if (field.has("latent")) {
    // Its members say all that the others would, but for what a token sees.
    field.allow_only({"heads", "latent", "window"});
    const LatentAttention& latent = attention.latent.emplace(read_latent(field["latent"]));
    attention.kv_heads = attention.heads;
    attention.head_dim = latent.nope_dim + latent.rope_dim;
    if (field.has("window")) read_window(field["window"], attention);
    return attention;
  }
  field.allow_only(
      {"heads", "kv_heads", "head_dim", "bias", "output_bias", "norms", "window", "latent"});
  attention.kv_heads =
      field.has("kv_heads") ? kv_head_count(field["kv_heads"], attention.heads) : attention.heads;
  attention.head_dim = field.has("head_dim")
                           ? field["head_dim"].count(1, max_head_dim)
                           : even_head_dim(field["heads"], hidden, attention.heads);
  attention.bias = flag(field, "bias");
  attention.output_bias = flag(field, "output_bias");
  attention.norms = flag(field, "norms");
  if (field.has("window")) read_window(field["window"], attention);
  return attention;
}

Experts read_experts(const Field& field, std::uint32_t layers) {
  field.allow_only({"count", "chosen", "hidden", "shared_hidden", "first_layer", "every", "groups",
                    "groups_chosen"});
  Experts experts;
  experts.count = field["count"].count(1, max_experts);
  experts.chosen = field["chosen"].count(1, experts.count);
  experts.hidden = field["hidden"].count(1, max_ffn);
  experts.shared_hidden = count_or_none(field, "shared_hidden", max_ffn);
  if (field.has("first_layer")) experts.first_layer = field["first_layer"].count(0, layers - 1);
  if (field.has("every")) experts.every = field["every"].count(1, max_layers);
  if (field.has("groups") != field.has("groups_chosen")) {
    field.fail("expected both \"groups\" and \"groups_chosen\", or neither");
  }
  if (field.has("groups")) {
    read_expert_groups(field["groups"], field["groups_chosen"], experts);
  }
  return experts;
}

void read_ffn(const Field& root, Model& model) {
  const bool all_have_experts = expert_layers(model) == model.layers;
  if (all_have_experts && !root.has("ffn")) return;
  const Field field = root["ffn"];
  field.allow_only({"hidden", "matrices", "bias"});
  if (!all_have_experts) {
    model.ffn_hidden = field["hidden"].count(1, max_ffn);
  } else if (field.has("hidden")) {
    field["hidden"].fail("every layer has experts, none this size");
  }
  if (field.has("matrices")) model.ffn_matrices = field["matrices"].count(2, 3);
  model.ffn_bias = flag(field, "bias");
}

// `name` and `source`: of models that do not say.
Model read_own_format(const Field& root, std::string_view name, std::string_view source) {
  root.allow_only({"format", "name", "aliases", "layers", "hidden", "attention", "ffn", "experts",
                   "vocabulary", "norm_bias", "tied_embeddings", "positions", "mtp_layers",
                   "longest_sequence", "source"});
  if (root["format"].text() != format_name) {
    root["format"].fail(fmt::format("expected \"{}\"", format_name));
  }
  Model model;
  model.name = root.has("name") ? root["name"].text() : std::string(name);
  model.layers = root["layers"].count(1, max_layers);
  model.hidden = root["hidden"].count(1, max_hidden);
  model.attention = read_attention(root["attention"], model.hidden);
  if (root.has("experts")) model.experts = read_experts(root["experts"], model.layers);
  read_ffn(root, model);
  model.vocabulary = root["vocabulary"].count();
  model.norm_bias = flag(root, "norm_bias");
  model.tied_embeddings = flag(root, "tied_embeddings");
  model.positions = count_or_none(root, "positions");
  model.mtp_layers = count_or_none(root, "mtp_layers", max_layers);
  model.longest_sequence = count_or_none(root, "longest_sequence");
  model.source = root.has("source") ? root["source"].text() : std::string(source);
  return model;
}

}  // namespace

std::vector<ShippedModel> shipped_models() {
  std::vector<ShippedModel> models;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(folder)) continue;
    ShippedModel& model = models.emplace_back();
    model.name = fs::path(file.path).stem().string();
    const Document document = shipped_document(model.name);
    if (!document.root().has("aliases")) continue;
    for (const Field& alias : document.root()["aliases"].elements()) {
      model.aliases.push_back(alias.text());
    }
  }
  return models;
}

Document model_document(std::string_view name_or_path) {
  std::vector<std::string> names;
  for (const ShippedModel& model : shipped_models()) {
    names.push_back(model.name);
    names.insert(names.end(), model.aliases.begin(), model.aliases.end());
    for (std::size_t i = names.size() - model.aliases.size() - 1; i < names.size(); ++i) {
      if (plain_name(names[i]) == plain_name(name_or_path)) return shipped_document(model.name);
    }
  }
  if (is_path(name_or_path)) {
    const fs::path path(name_or_path);
    std::error_code error;
    return Document::load(fs::is_directory(path, error) ? path / "config.json" : path);
  }
  const std::string meant = did_you_mean(name_or_path, names);
  throw InputError(fmt::format("\"{}\" is neither a known model nor a file{}", name_or_path,
                               meant.empty() ? "; see flyover list models" : meant));
}

Model read_model(const Document& document) {
  const Field root = document.root();
  if (root.has("format")) return read_own_format(root, name_from_file(document), document.name());
  if (is_hugging_face_config(root)) return read_hugging_face_config(document);
  root.fail(fmt::format(
      "expected a model: \"format\": \"{}\", or \"model_type\" as in a Hugging Face config.json",
      format_name));
}

Model read_model(const Field& field) {
  return read_own_format(field, "model", field.place().file);
}

Model load_model(std::string_view name_or_path) {
  return read_model(model_document(name_or_path));
}

}  // namespace flyover::io
