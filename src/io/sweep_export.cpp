#include "flyover/io/sweep_export.hpp"

#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/sweep_schema.hpp"

namespace flyover::io {

namespace {

void add_text(std::string& line, std::string_view text) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

void add_value(std::string& line, const SweepValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    add_text(line, *text);
  } else if (const auto* boolean = std::get_if<bool>(&value)) {
    line += *boolean ? "true" : "false";
  } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    line += fmt::format("{}", *whole);
  } else {
    line += fmt::format("{}", std::get<double>(value));
  }
}

nlohmann::ordered_json object(const SweepValues& values) {
  auto out = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) {
    std::visit([&, &key = name](const auto& each) { out[key] = each; }, value);
  }
  return out;
}

}  // namespace

std::string sweep_csv(const StoredSweep& sweep) {
  const std::vector<SweepColumn> columns = sweep_columns(sweep.identity);
  std::string out = "number,status,reason";
  for (const SweepColumn& each : columns) {
    out += ',';
    add_text(out, each.column);
  }
  out += '\n';
  for (const PointResult& row : sweep.rows) {
    out += fmt::format("{},{},", row.number, to_string(row.status));
    if (!row.reason.empty()) add_text(out, row.reason);
    for (const SweepColumn& each : columns) {
      out += ',';
      const SweepValue* value = find(each.output ? row.outputs : row.inputs, each.name);
      if (value) add_value(out, *value);
    }
    out += '\n';
  }
  return out;
}

std::string sweep_json(const StoredSweep& sweep) {
  const SweepIdentity& identity = sweep.identity;
  nlohmann::ordered_json out = {{"format", "flyover-sweep-results-1"},
                                {"flyover", identity.version},
                                {"name", identity.name},
                                {"digest", identity.digest},
                                {"seed", identity.seed},
                                {"inputs", identity.inputs},
                                {"outputs", identity.outputs},
                                {"points", nlohmann::ordered_json::array()}};
  for (const PointResult& row : sweep.rows) {
    nlohmann::ordered_json point = {{"number", row.number}, {"status", to_string(row.status)}};
    if (!row.reason.empty()) point["reason"] = row.reason;
    point["inputs"] = object(row.inputs);
    point["outputs"] = object(row.outputs);
    out["points"].push_back(std::move(point));
  }
  return out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace flyover::io
