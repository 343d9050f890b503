#include "flyover/io/training_results_reader.hpp"

#include <algorithm>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/kernel_reader.hpp"
#include "flyover/io/measurement_reader.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/io/stack_reader.hpp"
#include "io/model_fields.hpp"

namespace flyover::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder = "validation/training/";

// Null is what sources do not state.
bool stated(const Field& object, std::string_view key) {
  if (!object.has(key)) return false;
  const Field field = object[key];
  return field.is_object() || field.is_array() || field.is_string() || field.is_number() ||
         field.is_bool();
}

std::string text_or_nothing(const Field& object, std::string_view key) {
  return stated(object, key) ? object[key].text() : "";
}

std::optional<std::uint32_t> count_or_nothing(const Field& object, std::string_view key,
                                              std::uint32_t low = 1,
                                              std::uint32_t high = 100'000'000) {
  return stated(object, key) ? std::optional(object[key].count(low, high)) : std::nullopt;
}

std::uint32_t count_or_zero(const Field& object, std::string_view key, std::uint32_t high) {
  return count_or_nothing(object, key, 0, high).value_or(0);
}

std::optional<double> positive_or_nothing(const Field& object, std::string_view key) {
  return stated(object, key) ? std::optional(object[key].positive_number()) : std::nullopt;
}

// Logs write "True" and "1" as texts.
std::optional<bool> flag_or_nothing(const Field& object, std::string_view key) {
  if (!stated(object, key)) return std::nullopt;
  const Field field = object[key];
  if (!field.is_string()) return field.boolean();
  const std::string text = field.text();
  if (text == "True" || text == "true" || text == "1") return true;
  if (text == "False" || text == "false" || text == "0") return false;
  field.fail(fmt::format("expected true or false, got \"{}\"", text));
}

std::map<std::string, std::string> settings(const Field& object, std::string_view key) {
  std::map<std::string, std::string> found;
  if (!stated(object, key)) return found;
  const Field field = object[key];
  if (!field.is_object()) field.fail("expected an object of settings");
  for (const std::string& name : field.keys()) {
    const Field value = field[name];
    if (value.is_bool()) {
      found[name] = value.boolean() ? "True" : "False";
    } else if (value.is_number()) {
      found[name] = fmt::format("{}", value.number());
    } else if (stated(field, name)) {
      found[name] = value.text();
    }
  }
  return found;
}

Experts read_experts(const Field& arch, std::uint32_t layers) {
  Experts experts;
  experts.count = arch["experts"].count(1, max_experts);
  experts.chosen = arch["topk"].count(1, experts.count);
  experts.hidden = arch["moe_ffn"].count(1, max_ffn);
  experts.shared_hidden = count_or_zero(arch, "shared_ffn", max_ffn);
  const std::uint32_t sparse =
      stated(arch, "moe_layers") ? arch["moe_layers"].count(1, layers) : layers;
  // Half of the layers are every second one (Llama 4); others begin with dense ones.
  const bool alternating = layers > 1 && 2 * sparse == layers;
  experts.first_layer = alternating ? 1 : layers - sparse;
  experts.every = alternating ? 2 : 1;
  return experts;
}

Model read_architecture(const Field& arch) {
  Model model;
  model.layers = arch["layers"].count(1, max_layers);
  model.hidden = arch["hidden"].count(1, max_hidden);
  Attention& attention = model.attention;
  attention.heads = arch["heads"].count(1, max_heads);
  attention.kv_heads = arch["kv_heads"].count(1, attention.heads);
  attention.head_dim = arch["head_dim"].count(1, max_head_dim);
  if (stated(arch, "mla")) {
    const Field mla = arch["mla"];
    attention.latent = LatentAttention{
        count_or_zero(mla, "q_lora_rank", max_hidden), mla["kv_lora_rank"].count(1, max_hidden),
        mla["qk_nope_head_dim"].count(1, max_head_dim),
        mla["qk_rope_head_dim"].count(1, max_head_dim), mla["v_head_dim"].count(1, max_head_dim)};
    attention.kv_heads = attention.heads;
    attention.head_dim = attention.latent->nope_dim + attention.latent->rope_dim;
  }
  if (const auto window = count_or_nothing(arch, "sliding_window")) {
    attention.window = *window;
    const std::uint32_t windowed =
        count_or_nothing(arch, "sliding_layers", 1, model.layers).value_or(model.layers);
    const std::uint32_t full = model.layers - windowed;
    attention.full_every = full == 0 ? 0 : std::max(model.layers / full, 2U);
  }
  if (stated(arch, "experts")) model.experts = read_experts(arch, model.layers);
  model.ffn_hidden = count_or_zero(arch, "ffn", max_ffn);
  model.ffn_matrices = arch["ffn_matrices"].count(2, 3);
  if (expert_layers(model) == model.layers) model.ffn_hidden = 0;
  model.vocabulary = arch["vocab"].count();
  model.tied_embeddings = flag_or_nothing(arch, "tied_embeddings").value_or(false);
  model.mtp_layers = count_or_zero(arch, "mtp_layers", max_layers);
  return model;
}

// What records do not tell, from the shipped model of the same widths.
void complete(Model& model, const Model& shipped) {
  const Attention& known = shipped.attention;
  Attention& attention = model.attention;
  if (known.heads != attention.heads || known.head_dim != attention.head_dim ||
      known.kv_heads != attention.kv_heads || shipped.hidden != model.hidden) {
    return;
  }
  attention.bias = known.bias;
  attention.output_bias = known.output_bias;
  attention.norms = known.norms;
  if (attention.window == 0) {
    attention.window = known.window;
    attention.full_every = known.full_every;
    attention.chunked = known.chunked;
  }
  model.ffn_bias = shipped.ffn_bias;
  model.norm_bias = shipped.norm_bias;
  model.positions = shipped.positions;
  if (model.experts && shipped.experts && model.experts->count == shipped.experts->count) {
    model.experts->groups = shipped.experts->groups;
    model.experts->groups_chosen = shipped.experts->groups_chosen;
  }
}

const Model* shipped_model(const std::string& name, std::map<std::string, Model>& known) {
  if (const auto found = known.find(name); found != known.end()) return &found->second;
  const std::string path = fmt::format("models/{}.json", name);
  const auto file = std::ranges::find(embedded_files(), path, &EmbeddedFile::path);
  if (file == embedded_files().end()) return nullptr;
  const Document document = Document::parse(path, std::string(file->text));
  return &(known[name] = read_model(document));
}

void read_recorded_model(const Field& field, TrainingRecord& record,
                         std::map<std::string, Model>& known) {
  record.model_name = field["name"].text();
  record.sequence = count_or_nothing(field, "seq");
  const bool complete_arch = flag_or_nothing(field, "arch_complete").value_or(true);
  if (!complete_arch || !stated(field, "arch")) return;
  record.model = read_architecture(field["arch"]);
  record.model->name = record.model_name;
  if (const Model* shipped = shipped_model(record.model_name, known)) {
    complete(*record.model, *shipped);
  }
  // A record that was measured is not impossible: it has longer tables.
  if (record.sequence && record.model->positions != 0) {
    record.model->positions = std::max(record.model->positions, *record.sequence);
  }
}

RecordedHardware read_hardware(const Field& field) {
  RecordedHardware hardware;
  hardware.gpu = field["gpu"].text();
  hardware.gpus = count_or_nothing(field, "gpus");
  hardware.gpus_per_node = count_or_nothing(field, "gpus_per_node");
  hardware.nodes = count_or_nothing(field, "nodes");
  hardware.nic = text_or_nothing(field, "nic");
  return hardware;
}

RecordedLayout read_layout(const Field& field) {
  RecordedLayout layout;
  layout.tensor = count_or_nothing(field, "tp");
  layout.context = count_or_nothing(field, "cp");
  layout.pipeline = count_or_nothing(field, "pp");
  layout.virtual_stages = count_or_nothing(field, "vp");
  layout.expert = count_or_nothing(field, "ep");
  layout.expert_tensor = count_or_nothing(field, "etp");
  layout.data = count_or_nothing(field, "dp");
  layout.micro_batch = count_or_nothing(field, "mbs");
  layout.global_batch = count_or_nothing(field, "gbs");
  layout.zero = count_or_nothing(field, "zero", 0, 3);
  layout.fsdp = count_or_nothing(field, "fsdp", 0);
  layout.zero1_group = count_or_nothing(field, "zero1_group", 0);
  layout.sequence_parallel = flag_or_nothing(field, "sp");
  layout.tensor_overlap = flag_or_nothing(field, "tp_comm_overlap");
  layout.async_tensor = flag_or_nothing(field, "async_tp");
  layout.expert_overlap = flag_or_nothing(field, "ep_overlap");
  layout.schedule = text_or_nothing(field, "schedule");
  layout.recompute = text_or_nothing(field, "recompute");
  layout.fsdp_strategy = text_or_nothing(field, "fsdp_strategy");
  layout.mixed_precision = text_or_nothing(field, "mp_mode");
  layout.dispatcher = text_or_nothing(field, "dispatcher");
  layout.kernels = text_or_nothing(field, "kernels");
  layout.knobs = settings(field, "recipe_knobs");
  layout.environment = settings(field, "recipe_env");
  return layout;
}

// A stated time of a step before one from tokens per second, before one from FLOPS.
std::optional<double> step_seconds(const Field& root, const TrainingRecord& record) {
  std::optional<double> tokens;
  for (const char* part : {"measured", "derived"}) {
    if (!stated(root, part)) continue;
    if (const auto time = positive_or_nothing(root[part], "step_time_s")) return time;
    if (!tokens) tokens = positive_or_nothing(root[part], "tokens_per_s_per_gpu");
  }
  const auto& batch = record.layout.global_batch;
  if (tokens && record.sequence && batch && record.hardware.gpus) {
    return static_cast<double>(*record.sequence) * *batch / (*tokens * *record.hardware.gpus);
  }
  if (!stated(root, "measured")) return std::nullopt;
  return positive_or_nothing(root["measured"], "step_time_s_derived");
}

TrainingRecord read_record(const Field& field, std::map<std::string, Model>& known) {
  if (!field.is_object()) field.fail("expected a record: an object with id, model, layout, ...");
  TrainingRecord record;
  record.id = field["id"].text();
  record.group = stated(field, "group") ? field["group"].text() : record.id;
  record.source = text_or_nothing(field, "source_key");
  record.kind = stated(field, "kind") ? field["kind"].text() : "pretrain";
  read_recorded_model(field["model"], record, known);
  record.hardware = read_hardware(field["hardware"]);
  record.precision = field["precision"].text();
  record.layout = read_layout(field["layout"]);
  const Field framework = field["framework"];
  record.framework = framework["name"].text();
  record.version = text_or_nothing(framework, "version");
  record.step_seconds = step_seconds(field, record);
  record.notes = text_or_nothing(field, "notes");
  if (stated(field, "quality")) record.quality = field["quality"].one_of({"A", "B", "C"}).front();
  return record;
}

void read_into(const Document& document, std::vector<TrainingRecord>& records,
               std::map<std::string, Model>& known) {
  const Field root = document.root();
  const Field list = root.is_array() ? root : root["results"];
  for (const Field& record : list.elements()) {
    // Measured kernels are published beside results, and are none.
    if (record.has("op") && record.has("shape") && !record.has("model")) continue;
    records.push_back(read_record(record, known));
  }
}

}  // namespace

std::vector<TrainingRecord> read_training_results(const Document& document) {
  std::vector<TrainingRecord> records;
  std::map<std::string, Model> known;
  read_into(document, records, known);
  return records;
}

std::vector<TrainingRecord> load_training_results(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw InputError(Place{path.string(), 0, 0, ""},
                     "expected a folder with training results (*.json)");
  }
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entries(path, error);
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() == ".json" && entry.is_regular_file(error)) {
      files.push_back(entry.path());
    }
  }
  if (error) throw InputError(Place{path.string(), 0, 0, ""}, error.message());
  if (files.empty()) {
    throw InputError(Place{path.string(), 0, 0, ""}, "has no *.json files with training results");
  }
  std::ranges::sort(files);
  std::vector<TrainingRecord> records;
  std::map<std::string, Model> known;
  for (const fs::path& file : files) read_into(Document::load(file), records, known);
  if (records.empty()) {
    throw InputError(Place{path.string(), 0, 0, ""}, "its *.json files have no training results");
  }
  return records;
}

std::vector<TrainingRecord> shipped_training_results() {
  std::vector<TrainingRecord> records;
  std::map<std::string, Model> known;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(folder)) continue;
    read_into(Document::parse(std::string(file.path), std::string(file.text)), records, known);
  }
  return records;
}

TrainingCatalogue training_catalogue() {
  TrainingCatalogue catalogue;
  catalogue.hardware = hardware_catalogue();
  for (SoftwareStack& stack : shipped_stacks()) {
    std::string name = stack.name;
    catalogue.stacks[std::move(name)] = std::move(stack);
  }
  for (const std::string& name : kernel_model_names()) {
    catalogue.kernels[name] = read_kernels(kernel_document(name));
  }
  catalogue.default_stack = default_stack();
  return catalogue;
}

}  // namespace flyover::io
