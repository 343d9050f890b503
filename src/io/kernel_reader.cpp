#include "flyover/io/kernel_reader.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "flyover/io/presets.hpp"
#include "io/hardware_reader.hpp"
#include "io/layered_config.hpp"
#include "io/rule_fields.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-kernels-1";
constexpr std::string_view measurements_format_name = "flyover-kernel-measurements-1";
constexpr ConfigFamily family = {"kernels", "kernels"};

std::uint64_t size_of(const Field& field) {
  const std::int64_t size = field.integer();
  if (size < 1) field.fail(fmt::format("expected a whole number of at least 1, got {}", size));
  return static_cast<std::uint64_t>(size);
}

std::uint64_t size_or(const Field& field, std::string_view key, std::uint64_t otherwise) {
  return field.has(key) ? size_of(field[key]) : otherwise;
}

bool flag_or(const Field& field, std::string_view key, bool otherwise) {
  return field.has(key) ? field[key].boolean() : otherwise;
}

double not_negative(const Field& field) {
  const double number = field.number();
  if (number < 0) field.fail(fmt::format("expected zero or more, got {}", number));
  return number;
}

double read_share(const Field& field) {
  const double share = field.positive_number();
  if (share > 1) field.fail(fmt::format("expected a share above 0 and at most 1, got {}", share));
  return share;
}

RateRule read_rate(const Field& field) {
  field.allow_only({"where", "share", "source", "fitted"});
  check_evidence(field);
  return {read_scope(field), read_share(field["share"])};
}

TileRule read_tiles(const Field& field) {
  field.allow_only(
      {"where", "tiles", "half_intensity", "edge", "tail", "overlap", "source", "fitted"});
  TileRule rule;
  check_evidence(field);
  rule.where = read_scope(field);
  for (const Field& tile : field["tiles"].elements()) {
    if (tile.size() != 2) tile.fail("expected [rows, columns]");
    rule.tiles.push_back({tile[0].count(8, 4096), tile[1].count(8, 4096)});
  }
  if (rule.tiles.empty()) field["tiles"].fail("expected at least one tile");
  rule.half_intensity = not_negative(field["half_intensity"]);
  rule.edge = field["edge"].duration();
  rule.tail = read_share(field["tail"]);
  rule.overlap = field["overlap"].number();
  if (rule.overlap < 1) field["overlap"].fail("expected an exponent of 1 or more");
  return rule;
}

MemoryRule read_memory(const Field& field) {
  field.allow_only({"where", "share", "gemm", "attention", "elementwise", "cache", "cache_gain",
                    "source", "fitted"});
  MemoryRule rule;
  check_evidence(field);
  rule.where = read_scope(field);
  rule.share = read_share(field["share"]);
  rule.gemm = field["gemm"].duration();
  rule.attention = field["attention"].duration();
  rule.elementwise = field["elementwise"].duration();
  if (field.has("cache")) {
    rule.cache = field["cache"].bytes();
    rule.cache_gain = field["cache_gain"].number();
    if (rule.cache_gain < 1) field["cache_gain"].fail("expected a gain of 1 or more");
  }
  return rule;
}

std::vector<HeadPoint> read_points(const Field& field) {
  std::vector<HeadPoint> points;
  for (const Field& point : field.elements()) {
    point.allow_only({"head_dim", "share"});
    const double head_dim = point["head_dim"].positive_number();
    if (!points.empty() && head_dim <= points.back().head_dim) {
      point["head_dim"].fail("expected a larger head than at the point before");
    }
    points.push_back({head_dim, read_share(point["share"])});
  }
  if (points.empty()) field.fail("expected at least one point");
  return points;
}

AttentionRule read_attention(const Field& field) {
  field.allow_only({"where", "generation", "forward", "backward", "start", "source", "fitted"});
  AttentionRule rule;
  check_evidence(field);
  rule.where = read_scope(field);
  rule.generation = field["generation"].text();
  rule.forward = read_points(field["forward"]);
  rule.backward = read_points(field["backward"]);
  rule.start = not_negative(field["start"]);
  return rule;
}

UnfusedAttention read_unfused(const Field& field) {
  field.allow_only(
      {"forward", "masked_forward", "backward", "masked_backward", "source", "fitted"});
  check_evidence(field);
  return {field["forward"].positive_number(), field["masked_forward"].positive_number(),
          field["backward"].positive_number(), field["masked_backward"].positive_number()};
}

QuantiseRule read_quantise(const Field& field) {
  field.allow_only({"where", "bytes", "source", "fitted"});
  check_evidence(field);
  return {read_scope(field), field["bytes"].positive_number()};
}

template <class Read>
auto read_rules(const Field& parent, std::string_view key, Read read) {
  std::vector<decltype(read(parent))> rules;
  for (const Field& item : parent[key].elements()) rules.push_back(read(item));
  return rules;
}

void read_default_attention(const Field& field, KernelModel& model) {
  std::vector<std::string> known = {"unfused"};
  for (const AttentionRule& rule : model.attention) {
    if (std::ranges::find(known, rule.generation) == known.end()) known.push_back(rule.generation);
  }
  for (const std::string& architecture : field.keys()) {
    if (architecture == "comment") continue;
    const std::string generation = field[architecture].one_of(known);
    if (architecture == "other") {
      model.other_attention = generation;
    } else {
      model.default_attention.push_back({architecture, generation});
    }
  }
  static_cast<void>(field["other"].text());  // Must be there.
}

Gemm read_gemm(const Field& field) {
  field.allow_only({"kind", "type", "m", "n", "k", "batch", "output_bytes", "calls"});
  Gemm kernel{size_of(field["m"]), size_of(field["n"]), size_of(field["k"]),
              size_or(field, "batch", 1), read_kernel_type(field["type"])};
  if (field.has("output_bytes")) kernel.output_bytes = not_negative(field["output_bytes"]);
  return kernel;
}

GroupedGemm read_grouped(const Field& field) {
  field.allow_only({"kind", "type", "groups", "rows", "n", "k", "calls"});
  return {size_of(field["groups"]), size_of(field["rows"]), size_of(field["n"]),
          size_of(field["k"]), read_kernel_type(field["type"])};
}

AttentionKernel read_attention_kernel(const Field& field) {
  field.allow_only({"kind", "type", "sequences", "tokens", "kv_tokens", "heads", "kv_heads",
                    "head_dim", "value_dim", "causal", "window", "shared_kv", "backward",
                    "generation", "calls"});
  AttentionKernel kernel;
  kernel.sequences = size_or(field, "sequences", 1);
  kernel.tokens = size_of(field["tokens"]);
  kernel.kv_tokens = size_or(field, "kv_tokens", kernel.tokens);
  kernel.heads = size_of(field["heads"]);
  kernel.kv_heads = size_or(field, "kv_heads", kernel.heads);
  kernel.head_dim = size_of(field["head_dim"]);
  kernel.value_dim = size_or(field, "value_dim", kernel.head_dim);
  kernel.causal = flag_or(field, "causal", true);
  kernel.window = size_or(field, "window", 0);
  kernel.shared_kv = flag_or(field, "shared_kv", false);
  kernel.backward = flag_or(field, "backward", false);
  kernel.type = read_kernel_type(field["type"]);
  if (field.has("generation")) kernel.generation = field["generation"].text();
  if (kernel.causal && kernel.kv_tokens < kernel.tokens) {
    field["kv_tokens"].fail("expected at least as many keys as queries");
  }
  return kernel;
}

Elementwise read_elementwise(const Field& field) {
  field.allow_only({"kind", "read", "written", "calls"});
  return {Bytes{field["read"].integer()}, Bytes{field["written"].integer()}};
}

Quantise read_quantise_kernel(const Field& field) {
  field.allow_only({"kind", "type", "elements", "calls"});
  return {size_of(field["elements"]), read_kernel_type(field["type"])};
}

AnyKernel read_kernel(const Field& field) {
  const std::string kind =
      field["kind"].one_of({"gemm", "grouped", "attention", "elementwise", "quantise"});
  if (kind == "gemm") return read_gemm(field);
  if (kind == "grouped") return read_grouped(field);
  if (kind == "attention") return read_attention_kernel(field);
  if (kind == "elementwise") return read_elementwise(field);
  return read_quantise_kernel(field);
}

KernelMeasurement read_measurement(const Field& field, const Presets& presets,
                                   const std::map<std::string, GpuModel>& own_gpus) {
  field.allow_only({"id", "op", "gpu", "kernels", "time_us", "weight", "source", "note"});
  KernelMeasurement record;
  record.id = field["id"].text();
  record.operation = field["op"].text();
  record.source = field["source"].text();
  const auto own = own_gpus.find(field["gpu"].text());
  record.gpu = own != own_gpus.end() ? own->second : read_gpu(field["gpu"], presets);
  for (const Field& kernel : field["kernels"].elements()) {
    record.kernels.insert(record.kernels.end(), size_or(kernel, "calls", 1), read_kernel(kernel));
  }
  record.microseconds = field["time_us"].positive_number();
  if (field.has("weight")) record.weight = field["weight"].positive_number();
  return record;
}

void expect_format(const Field& root, std::string_view wanted) {
  const std::string format = root["format"].text();
  if (format != wanted) {
    root["format"].fail(fmt::format("expected \"{}\", got \"{}\"", wanted, format));
  }
}

}  // namespace

std::vector<std::string> kernel_model_names() {
  return config_names(family);
}

Document kernel_document(std::string_view name) {
  return config_document(family, name);
}

KernelModel read_kernels(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format", "name", "summary", "sources", "rates", "tiles", "memory", "attention",
                   "unfused", "quantise", "default_attention", "launch"});
  expect_format(root, format_name);
  KernelModel model;
  model.name = root["name"].text();
  model.summary = root["summary"].text();
  model.rates = read_rules(root, "rates", read_rate);
  model.tiles = read_rules(root, "tiles", read_tiles);
  model.memory = read_rules(root, "memory", read_memory);
  model.attention = read_rules(root, "attention", read_attention);
  model.unfused = read_unfused(root["unfused"]);
  model.quantise = read_rules(root, "quantise", read_quantise);
  read_default_attention(root["default_attention"], model);
  const Field launch = root["launch"];
  launch.allow_only({"host", "graph", "source"});
  check_evidence(launch);
  model.launch = launch["host"].duration();
  model.graph_launch = launch["graph"].duration();
  return model;
}

std::vector<KernelMeasurement> read_kernel_measurements(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format", "sources", "gpus", "records"});
  expect_format(root, measurements_format_name);
  const Presets presets;
  std::map<std::string, GpuModel> own_gpus;
  for (const std::string& name : root["gpus"].keys()) {
    const Field gpu = root["gpus"][name];
    own_gpus.emplace(name, read_gpu(gpu, presets));
    own_gpus[name].name = name;
  }
  std::vector<KernelMeasurement> records;
  for (const Field& item : root["records"].elements()) {
    KernelMeasurement record = read_measurement(item, presets, own_gpus);
    if (!root["sources"].has(record.source)) {
      item["source"].fail(fmt::format("\"{}\" is not one of the sources", record.source));
    }
    records.push_back(std::move(record));
  }
  return records;
}

double predicted_microseconds(const KernelModel& model, const KernelMeasurement& measurement) {
  const KernelTimer timer(model, measurement.gpu);
  Duration total{};
  for (const AnyKernel& kernel : measurement.kernels) total += kernel_time(timer, kernel).total;
  return to_microseconds(total);
}

}  // namespace flyover::io
