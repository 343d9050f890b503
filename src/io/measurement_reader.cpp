#include "flyover/io/measurement_reader.hpp"

#include <algorithm>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/presets.hpp"

namespace flyover::io {

namespace {

// Of the files compiled in; results of training are no tables of collectives.
constexpr std::string_view shipped_folder = "validation/";
constexpr std::string_view training = "validation/training/";

// Null is what sources do not state.
bool stated(const Field& object, std::string_view key) {
  if (!object.has(key)) return false;
  const Field field = object[key];
  return field.is_object() || field.is_array() || field.is_string() || field.is_number() ||
         field.is_bool();
}

// Versions and dates are numbers to some writers.
std::string text_of(const Field& field) {
  return field.is_number() ? fmt::format("{}", field.number()) : field.text();
}

std::string text_or_nothing(const Field& object, std::string_view key) {
  return stated(object, key) ? text_of(object[key]) : "";
}

std::optional<std::uint32_t> count_or_nothing(const Field& object, std::string_view key) {
  return stated(object, key) ? std::optional(object[key].count()) : std::nullopt;
}

std::optional<double> number_or_nothing(const Field& object, std::string_view key) {
  return stated(object, key) ? std::optional(object[key].number()) : std::nullopt;
}

std::optional<Bytes> bytes_or_nothing(const Field& row) {
  if (!stated(row, "bytes")) return std::nullopt;
  const double bytes = row["bytes"].number();  // Some write 1e9.
  if (bytes < 0 || bytes > 9e18) row["bytes"].fail("expected a number of bytes, not below zero");
  return Bytes{std::llround(bytes)};
}

std::vector<MeasuredRow> read_rows(const Field& record, std::string_view key) {
  std::vector<MeasuredRow> rows;
  if (!stated(record, key)) return rows;
  for (const Field& row : record[key].elements()) {
    if (!row.is_object()) row.fail("expected an object with bytes and time_us");
    rows.push_back({bytes_or_nothing(row), number_or_nothing(row, "time_us"),
                    number_or_nothing(row, "algbw_GBps"), number_or_nothing(row, "busbw_GBps")});
  }
  return rows;
}

MeasuredSystem read_system(const Field& field) {
  if (!field.is_object()) field.fail("expected an object with gpu, nodes, ...");
  MeasuredSystem system;
  system.gpu = text_or_nothing(field, "gpu");
  system.gpus_per_node = count_or_nothing(field, "gpus_per_node");
  system.nodes = count_or_nothing(field, "nodes");
  system.nvlink_generation = count_or_nothing(field, "nvlink_gen");
  system.nic = text_or_nothing(field, "nic");
  if (const auto rate = number_or_nothing(field, "nic_gbps_per_gpu"); rate && *rate > 0) {
    system.nic_per_gpu = Bandwidth{*rate * 1e9 / 8};
  }
  system.fabric = text_or_nothing(field, "fabric");
  return system;
}

// Text, or an object of variables.
std::string read_environment(const Field& software) {
  if (!stated(software, "env") || !software["env"].is_object()) {
    return text_or_nothing(software, "env");
  }
  const Field env = software["env"];
  std::string text;
  for (const std::string& name : env.keys()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, text_of(env[name]));
  }
  return text;
}

Health read_health(const Field& record) {
  if (!stated(record, "health")) return Health::Unknown;
  const std::string word = record["health"].one_of({"healthy", "degraded", "unknown"});
  if (word == "healthy") return Health::Healthy;
  return word == "degraded" ? Health::Degraded : Health::Unknown;
}

Measurement read_measurement(const Field& record) {
  if (!record.is_object()) record.fail("expected a record: an object with id, system, rows, ...");
  Measurement measurement;
  measurement.id = record["id"].text();
  measurement.source = text_or_nothing(record, "source");
  measurement.site = text_or_nothing(record, "site");
  measurement.date = text_or_nothing(record, "date");
  measurement.system = read_system(record["system"]);
  measurement.gpus = record["n_gpus"].count();
  if (stated(record, "software")) {
    const Field software = record["software"];
    measurement.nccl = text_or_nothing(software, "nccl");
    measurement.library = text_or_nothing(software, "lib");
    measurement.environment = read_environment(software);
  }
  measurement.collective = record["collective"].text();
  measurement.dtype = text_or_nothing(record, "dtype");
  measurement.health = read_health(record);
  measurement.notes = text_or_nothing(record, "notes");
  if (stated(record, "algbw_directions")) {
    measurement.algbw_directions = record["algbw_directions"].count(1, 2);
  }
  measurement.rows = read_rows(record, "rows");
  measurement.in_place = read_rows(record, "in_place");
  if (!record.has("rows") && !record.has("in_place")) {
    record.fail("expected rows or in_place, the measured table");
  }
  return measurement;
}

}  // namespace

std::vector<Measurement> read_measurements(const Document& document) {
  const Field root = document.root();
  std::vector<Measurement> records;
  if (root.is_array() || root.has("records")) {
    const Field list = root.is_array() ? root : root["records"];
    for (const Field& record : list.elements()) records.push_back(read_measurement(record));
  } else {
    records.push_back(read_measurement(root));
  }
  return records;
}

std::vector<Measurement> load_measurements(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw InputError(Place{folder.string(), 0, 0, ""},
                     "expected a folder with measurements (*.json)");
  }
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entries(folder, error);
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() == ".json" && entry.is_regular_file(error)) {
      files.push_back(entry.path());
    }
  }
  if (error) throw InputError(Place{folder.string(), 0, 0, ""}, error.message());
  if (files.empty()) {
    throw InputError(Place{folder.string(), 0, 0, ""}, "has no *.json files with measurements");
  }
  std::ranges::sort(files);
  std::vector<Measurement> records;
  for (const fs::path& file : files) {
    std::vector<Measurement> more = read_measurements(Document::load(file));
    std::ranges::move(more, std::back_inserter(records));
  }
  return records;
}

std::vector<Measurement> shipped_measurements() {
  std::vector<Measurement> records;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(shipped_folder) || file.path.starts_with(training)) continue;
    const Document document = Document::parse(std::string(file.path), std::string(file.text));
    std::vector<Measurement> more = read_measurements(document);
    std::ranges::move(more, std::back_inserter(records));
  }
  return records;
}

HardwareCatalogue hardware_catalogue() {
  const Presets presets;
  HardwareCatalogue catalogue;
  for (const PresetInfo& info : presets.list(PresetKind::Gpu)) {
    catalogue.gpus[info.name] = presets.gpu(info.name);
  }
  for (const PresetInfo& info : presets.list(PresetKind::Node)) {
    catalogue.nodes[info.name] = presets.node(info.name);
  }
  for (const PresetInfo& info : presets.list(PresetKind::Network)) {
    catalogue.networks[info.name] = presets.network(info.name);
  }
  const std::vector<std::string> names = library_names();
  for (const std::string& name : names) {
    // "nccl" stands for the newest "nccl-...", which is among them.
    const auto is_version = [&](const std::string& other) { return other.starts_with(name + "-"); };
    if (std::ranges::any_of(names, is_version)) continue;
    catalogue.libraries[name] = read_library(library_document(name));
  }
  return catalogue;
}

}  // namespace flyover::io
