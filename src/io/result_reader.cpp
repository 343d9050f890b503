#include "flyover/io/result_reader.hpp"

#include <cmath>

#include <fmt/format.h>

#include "flyover/io/expert_words.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-result-1";

double amount(const Field& field) {
  const double value = field.number();
  if (value < 0) field.fail(fmt::format("expected a number of zero or more, got {}", value));
  return value;
}

Duration microseconds(const Field& field) {
  const double picoseconds = amount(field) * 1e6;
  if (!(picoseconds < 0x1p63)) field.fail("is longer than simulated time can hold (106 days)");
  return Duration{std::llround(picoseconds)};
}

std::uint64_t whole(const Field& field) {
  const std::int64_t value = field.integer();
  if (value < 0) field.fail(fmt::format("expected zero or more, got {}", value));
  return static_cast<std::uint64_t>(value);
}

std::vector<std::string> texts(const Field& field) {
  std::vector<std::string> out;
  for (const Field& item : field.elements()) out.push_back(item.text());
  return out;
}

template <class Id>
Id named(const Field& field, std::optional<Id> (*parse)(std::string_view), std::string_view kind) {
  const auto id = parse(field.text());
  if (!id) field.fail(fmt::format("expected {}, got \"{}\"", kind, field.text()));
  return *id;
}
AlgorithmId read_algorithm(const Field& field) {
  return named(field, algorithm_id, "an algorithm");
}
Protocol read_protocol(const Field& field) {
  return named(field, protocol, "a protocol");
}

Breakdown read_breakdown(const Field& field) {
  Breakdown out;
  out.compute_us = amount(field["compute_us"]);
  const Field exposed = field["exposed_us"];
  for (const std::string& family : exposed.keys()) out.exposed_us[family] = amount(exposed[family]);
  out.startup_us = amount(field["startup_us"]);
  out.bubble_us = amount(field["bubble_us"]);
  out.idle_us = amount(field["idle_us"]);
  return out;
}

PortBytes read_port(const Field& field) {
  return {amount(field["mean"]), amount(field["most"])};
}

ExpertMode read_mode(const Field& field) {
  return expert_mode_named(field.one_of(expert_mode_words()));
}

ExpertStats read_experts(const Field& field) {
  ExpertStats out;
  out.exchange = field["exchange"].text();
  out.library = field["library"].text();
  out.mode = read_mode(field["mode"]);
  out.balanced = field["balanced"].boolean();
  out.traffic.basis = field["basis"].text();
  out.tokens = amount(field["tokens"]);
  out.traffic.nodes_per_token = amount(field["nodes_per_token"]);
  out.traffic.ranks_per_token = amount(field["ranks_per_token"]);
  out.traffic.logical_network = read_port(field["logical_network_bytes"]);
  out.traffic.logical_nvlink = read_port(field["logical_nvlink_bytes"]);
  out.traffic.network = read_port(field["network_bytes"]);
  out.traffic.nvlink = read_port(field["nvlink_bytes"]);
  out.kernel = microseconds(field["kernel_us"]);
  out.bottleneck_GBps = amount(field["bottleneck_GBps"]);
  out.bottleneck_side = field["bottleneck_side"].text();
  out.sms = field["sms"].count(0);
  for (const Field& item : field["other_modes"].elements()) {
    out.other_modes.push_back({read_mode(item["mode"]), microseconds(item["time_us"])});
  }
  return out;
}

CollectiveStats read_collective(const Field& field) {
  CollectiveStats out;
  out.op = field["op"].text();
  out.group = field["group"].text();
  out.ranks = field["ranks"].count(0);
  out.bytes = Bytes{static_cast<std::int64_t>(whole(field["bytes"]))};
  out.count = whole(field["count"]);
  out.mean = microseconds(field["time_us"]);
  out.low = microseconds(field["low_us"]);
  out.high = microseconds(field["high_us"]);
  out.longest = microseconds(field["longest_us"]);
  out.alone = microseconds(field["alone_us"]);
  out.mean_wait = microseconds(field["wait_us"]);
  out.algbw_GBps = amount(field["algbw_GBps"]);
  out.busbw_GBps = amount(field["busbw_GBps"]);
  out.algorithm = read_algorithm(field["algorithm"]);
  out.protocol = read_protocol(field["protocol"]);
  out.channels = field["channels"].count(0);
  out.bottleneck = field["bottleneck"].text();
  for (const Field& item : field["alternatives"].elements()) {
    out.alternatives.push_back({read_algorithm(item["algorithm"]), read_protocol(item["protocol"]),
                                item["channels"].count(0), microseconds(item["time_us"])});
  }
  if (field.has("experts")) out.experts = read_experts(field["experts"]);
  return out;
}

RangePart read_range_part(const Field& field) {
  return {field["links"].text(),       field["algorithm"].text(), field["size"].text(),
          amount(field["exposed_us"]), amount(field["low"]),      amount(field["high"]),
          amount(field["correlation"])};
}

ResourceClassStats read_resource(const Field& field) {
  ResourceClassStats out;
  out.name = field["class"].text();
  out.count = whole(field["count"]);
  const bool in_bytes = field.has("bytes");
  out.capacity = in_bytes ? amount(field["capacity_GBps"]) * 1e9 : amount(field["capacity_sms"]);
  out.amount = amount(field[in_bytes ? "bytes" : "sm_seconds"]);
  out.mean_utilisation = amount(field["mean_utilisation"]);
  out.peak_utilisation = amount(field["peak_utilisation"]);
  out.busiest = field["busiest"].text();
  out.busiest_utilisation = amount(field["busiest_utilisation"]);
  return out;
}

MemoryUse read_memory(const Field& field) {
  const auto bytes = [](const Field& size) {
    return Bytes{static_cast<std::int64_t>(whole(size))};
  };
  MemoryUse out;
  out.capacity = bytes(field["capacity_bytes"]);
  out.fits = field["fits"].boolean();
  out.reason = field["reason"].text();
  for (const Field& item : field["stages"].elements()) {
    StageMemory& stage = out.stages.emplace_back();
    for (std::size_t i = 0; i < memory_parts; ++i) {
      stage.parts[i] = bytes(item["parts_bytes"][to_string(static_cast<MemoryPart>(i))]);
    }
    stage.micro_batches_in_flight = amount(item["micro_batches_in_flight"]);
  }
  if (out.stages.empty()) field["stages"].fail("expected at least one stage");
  out.fullest = field["fullest_stage"].count(0, static_cast<std::uint32_t>(out.stages.size() - 1));
  return out;
}

}  // namespace

Result read_result(const Document& document) {
  const Field root = document.root();
  if (!root.has("format") || root["format"].text() != format_name) {
    root.fail(
        fmt::format("expected a result of `flyover run --json` (\"format\": \"{}\")", format_name));
  }
  Result out;
  for (const Field& item : root["inputs"].elements()) {
    out.inputs.push_back({item["role"].text(), item["name"].text(), item["digest"].text(),
                          texts(item["overrides"])});
  }
  out.ranks = root["ranks"].count(0);
  if (root.has("classes")) out.classes = root["classes"].count(0);
  out.operations = whole(root["operations"]);
  out.events = whole(root["events"]);
  out.time = microseconds(root["time_us"]);
  out.low = microseconds(root["low_us"]);
  out.high = microseconds(root["high_us"]);
  for (const Field& item : root["range"].elements()) out.range.push_back(read_range_part(item));
  out.breakdown = read_breakdown(root["breakdown"]);
  for (const Field& item : root["collectives"].elements()) {
    out.collectives.push_back(read_collective(item));
  }
  for (const Field& item : root["links"].elements()) out.links.push_back(read_resource(item));
  out.bottleneck = root["bottleneck"].text();
  for (const Field& item : root["sensitivity"].elements()) {
    out.sensitivity.push_back(
        {item["resource"].text(), item["faster"].number(), item["gain"].number()});
  }
  // Results of versions that knew no training have none.
  if (root.has("memory") && root["memory"].is_object()) out.memory = read_memory(root["memory"]);
  out.validity = texts(root["validity"]);
  out.warnings = texts(root["warnings"]);
  return out;
}

}  // namespace flyover::io
