#include "flyover/io/result_writer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/version.hpp"

namespace flyover::io {

namespace {

using nlohmann::ordered_json;

ordered_json port_json(const PortBytes& port) {
  return {{"mean", port.mean}, {"most", port.most}};
}

ordered_json experts_json(const ExpertStats& e) {
  ordered_json out = {{"exchange", e.exchange},
                      {"library", e.library},
                      {"mode", to_string(e.mode)},
                      {"balanced", e.balanced},
                      {"basis", e.traffic.basis},
                      {"tokens", e.tokens},
                      {"nodes_per_token", e.traffic.nodes_per_token},
                      {"ranks_per_token", e.traffic.ranks_per_token},
                      {"logical_network_bytes", port_json(e.traffic.logical_network)},
                      {"logical_nvlink_bytes", port_json(e.traffic.logical_nvlink)},
                      {"network_bytes", port_json(e.traffic.network)},
                      {"nvlink_bytes", port_json(e.traffic.nvlink)},
                      {"kernel_us", to_microseconds(e.kernel)},
                      {"bottleneck_GBps", e.bottleneck_GBps},
                      {"bottleneck_side", e.bottleneck_side},
                      {"sms", e.sms},
                      {"other_modes", ordered_json::array()}};
  for (const ExpertAlternative& other : e.other_modes) {
    out["other_modes"].push_back(
        {{"mode", to_string(other.mode)}, {"time_us", to_microseconds(other.time)}});
  }
  return out;
}

ordered_json collective_json(const CollectiveStats& c) {
  ordered_json out = {{"op", c.op},
                      {"group", c.group},
                      {"ranks", c.ranks},
                      {"bytes", c.bytes.count()},
                      {"count", c.count},
                      {"time_us", to_microseconds(c.mean)},
                      {"low_us", to_microseconds(c.low)},
                      {"high_us", to_microseconds(c.high)},
                      {"longest_us", to_microseconds(c.longest)},
                      {"alone_us", to_microseconds(c.alone)},
                      {"wait_us", to_microseconds(c.mean_wait)},
                      {"algbw_GBps", c.algbw_GBps},
                      {"busbw_GBps", c.busbw_GBps},
                      {"algorithm", to_string(c.algorithm)},
                      {"protocol", to_string(c.protocol)},
                      {"channels", c.channels},
                      {"bottleneck", c.bottleneck},
                      {"alternatives", ordered_json::array()}};
  for (const AlternativeTime& a : c.alternatives) {
    out["alternatives"].push_back({{"algorithm", to_string(a.algorithm)},
                                   {"protocol", to_string(a.protocol)},
                                   {"channels", a.channels},
                                   {"time_us", to_microseconds(a.time)}});
  }
  if (c.experts) out["experts"] = experts_json(*c.experts);
  return out;
}

ordered_json resource_json(const ResourceClassStats& c) {
  const bool in_bytes = c.name != "sm";
  return {{"class", c.name},
          {"count", c.count},
          {in_bytes ? "capacity_GBps" : "capacity_sms", in_bytes ? c.capacity * 1e-9 : c.capacity},
          {in_bytes ? "bytes" : "sm_seconds", c.amount},
          {"mean_utilisation", c.mean_utilisation},
          {"peak_utilisation", c.peak_utilisation},
          {"busiest", c.busiest},
          {"busiest_utilisation", c.busiest_utilisation}};
}

ordered_json memory_json(const MemoryUse& memory) {
  ordered_json out = {{"capacity_bytes", memory.capacity.count()},
                      {"fits", memory.fits},
                      {"reason", memory.reason},
                      {"fullest_stage", memory.fullest},
                      {"stages", ordered_json::array()}};
  for (const StageMemory& stage : memory.stages) {
    ordered_json parts = ordered_json::object();
    for (std::size_t i = 0; i < memory_parts; ++i) {
      const auto part = static_cast<MemoryPart>(i);
      parts[std::string(to_string(part))] = stage[part].count();
    }
    out["stages"].push_back({{"bytes", stage.total().count()},
                             {"parts_bytes", std::move(parts)},
                             {"micro_batches_in_flight", stage.micro_batches_in_flight}});
  }
  return out;
}

// RFC 4180: a field with a comma, a quote or a line break is quoted, and quotes are doubled.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

// Empty fields where no experts are exchanged.
std::string experts_csv(const std::optional<ExpertStats>& experts) {
  if (!experts) return std::string(15, ',');
  const ExpertTraffic& t = experts->traffic;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                     csv_field(experts->exchange), to_string(experts->mode), csv_field(t.basis),
                     experts->tokens, t.nodes_per_token, t.ranks_per_token, t.logical_network.mean,
                     t.logical_nvlink.mean, t.network.mean, t.network.most, t.nvlink.mean,
                     t.nvlink.most, to_microseconds(experts->kernel), experts->bottleneck_GBps,
                     experts->bottleneck_side, experts->sms);
}

}  // namespace

std::string result_json(const Result& result) {
  ordered_json out = {{"format", "flyover-result-1"}, {"flyover", version()}};
  out["inputs"] = ordered_json::array();
  for (const InputDigest& input : result.inputs) {
    out["inputs"].push_back({{"role", input.role},
                             {"name", input.name},
                             {"digest", input.digest},
                             {"overrides", input.overrides}});
  }
  out["ranks"] = result.ranks;
  out["classes"] = result.classes;
  out["operations"] = result.operations;
  out["events"] = result.events;
  out["time_us"] = to_microseconds(result.time);
  out["low_us"] = to_microseconds(result.low);
  out["high_us"] = to_microseconds(result.high);
  out["range"] = ordered_json::array();
  for (const RangePart& part : result.range) {
    out["range"].push_back({{"links", part.links},
                            {"algorithm", part.algorithm},
                            {"size", part.size},
                            {"exposed_us", part.exposed_us},
                            {"low", part.low},
                            {"high", part.high},
                            {"correlation", part.correlation}});
  }
  const Breakdown& b = result.breakdown;
  out["breakdown"] = {{"compute_us", b.compute_us},
                      {"exposed_us", ordered_json(b.exposed_us)},
                      {"startup_us", b.startup_us},
                      {"bubble_us", b.bubble_us},
                      {"idle_us", b.idle_us}};
  out["collectives"] = ordered_json::array();
  for (const CollectiveStats& c : result.collectives) {
    out["collectives"].push_back(collective_json(c));
  }
  out["links"] = ordered_json::array();
  for (const ResourceClassStats& c : result.links) out["links"].push_back(resource_json(c));
  out["bottleneck"] = result.bottleneck;
  out["sensitivity"] = ordered_json::array();
  for (const Sensitivity& s : result.sensitivity) {
    out["sensitivity"].push_back({{"resource", s.name}, {"faster", s.faster}, {"gain", s.gain}});
  }
  out["memory"] = result.memory ? memory_json(*result.memory) : ordered_json();
  out["validity"] = result.validity;
  out["warnings"] = result.warnings;
  return out.dump(2) + '\n';
}

std::string result_csv(const Result& result) {
  std::string out =
      "op,group,ranks,bytes,count,time_us,low_us,high_us,longest_us,alone_us,wait_us,algbw_GBps,"
      "busbw_GBps,algorithm,protocol,channels,bottleneck,exchange,mode,basis,tokens,nodes_per_"
      "token,"
      "ranks_per_token,logical_network_bytes,logical_nvlink_bytes,network_bytes,"
      "most_network_bytes,nvlink_bytes,most_nvlink_bytes,kernel_us,bottleneck_GBps,"
      "bottleneck_side,sms\n";
  for (const CollectiveStats& c : result.collectives) {
    out +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(c.op),
                    csv_field(c.group), c.ranks, c.bytes.count(), c.count, to_microseconds(c.mean),
                    to_microseconds(c.low), to_microseconds(c.high), to_microseconds(c.longest),
                    to_microseconds(c.alone), to_microseconds(c.mean_wait), c.algbw_GBps,
                    c.busbw_GBps, to_string(c.algorithm), to_string(c.protocol), c.channels,
                    csv_field(c.bottleneck), experts_csv(c.experts));
  }
  return out;
}

}  // namespace flyover::io
