#include "flyover/io/params.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "flyover/base/text.hpp"
#include "flyover/base/version.hpp"

namespace flyover::io {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view format_name = "flyover-params-1";

// What is written in us in the file and in seconds in memory, or as it is.
double scale(const SiteParameterInfo& info) {
  return info.seconds ? 1e6 : 1;
}
std::string key_of(const SiteParameterInfo& info) {
  return std::string(info.name) + (info.seconds ? "_us" : "");
}

ordered_json errors_json(const std::vector<ErrorSummary>& by_size) {
  ordered_json out = ordered_json::object();
  for (std::size_t i = 0; i < by_size.size(); ++i) {
    const ErrorSummary& errors = by_size[i];
    if (errors.rows == 0) continue;
    out[std::string(size_classes()[i].name)] = {{"rows", errors.rows},
                                                {"median", errors.median},
                                                {"percentile_90", errors.percentile90},
                                                {"signed_median", errors.signed_median}};
  }
  return out;
}

std::vector<ErrorSummary> read_errors(const Field& field) {
  std::vector<ErrorSummary> by_size(size_classes().size());
  std::vector<std::string> names;
  for (const SizeClass& size : size_classes()) names.emplace_back(size.name);
  for (const std::string& key : field.keys()) {
    const auto found = std::ranges::find(names, key);
    if (found == names.end()) {
      field[key].fail(fmt::format("is not a class of sizes: they are {}", fmt::join(names, ", ")));
    }
    const Field errors = field[key];
    errors.allow_only({"rows", "median", "percentile_90", "signed_median"});
    by_size[static_cast<std::size_t>(found - names.begin())] = {
        errors["rows"].count(), errors["median"].number(), errors["percentile_90"].number(),
        errors["signed_median"].number()};
  }
  return by_size;
}

SiteParameter read_parameter(const Field& field, const SiteParameterInfo& info) {
  field.allow_only({"value", "uncertainty", "determined", "reason"});
  SiteParameter parameter;
  parameter.value =
      (info.seconds ? field["value"].number() : field["value"].positive_number()) / scale(info);
  if (field.has("uncertainty")) {
    const double uncertainty = field["uncertainty"].number();
    if (uncertainty < 0) field["uncertainty"].fail("expected zero or more");
    parameter.uncertainty = uncertainty / scale(info);
  }
  if (field.has("determined")) parameter.determined = field["determined"].boolean();
  if (field.has("reason")) parameter.reason = field["reason"].text();
  return parameter;
}

}  // namespace

std::string params_json(const ParamsFile& params) {
  ordered_json out = {{"format", format_name},
                      {"flyover", version()},
                      {"library", {{"name", params.library}, {"version", params.version}}},
                      {"topology", params.topology}};
  out["logs"] = ordered_json::array();
  for (const ParamsFile::Log& log : params.logs) {
    out["logs"].push_back({{"name", log.name},
                           {"collective", log.collective},
                           {"ranks", log.ranks},
                           {"rows", log.rows}});
  }
  out["parameters"] = ordered_json::object();
  for (const SiteParameterInfo& info : site_parameters()) {
    const SiteParameter& parameter = params.calibration.site.*info.member;
    ordered_json& entry = out["parameters"][key_of(info)];
    entry = {{"value", parameter.value * scale(info)},
             {"uncertainty", parameter.uncertainty * scale(info)},
             {"determined", parameter.determined}};
    if (!parameter.reason.empty()) entry["reason"] = parameter.reason;
  }
  out["errors"] = {{"before", errors_json(params.calibration.before)},
                   {"after", errors_json(params.calibration.after)}};
  return out.dump(2) + '\n';
}

ParamsFile read_params(const Document& document) {
  const Field root = document.root();
  if (!root.is_object() || !root.has("format")) {
    root.fail(
        fmt::format("expected a params file, an object with \"format\": \"{}\"", format_name));
  }
  if (root["format"].text() != format_name) {
    root["format"].fail(
        fmt::format("expected \"{}\", got \"{}\"", format_name, root["format"].text()));
  }
  root.allow_only({"format", "flyover", "library", "topology", "logs", "parameters", "errors"});
  ParamsFile params;
  const Field library = root["library"];
  library.allow_only({"name", "version"});
  params.library = library["name"].text();
  params.version = library["version"].text();
  if (root.has("topology")) params.topology = root["topology"].text();
  if (root.has("logs")) {
    for (const Field& log : root["logs"].elements()) {
      log.allow_only({"name", "collective", "ranks", "rows"});
      params.logs.push_back({log["name"].text(), log["collective"].text(), log["ranks"].count(2),
                             log["rows"].count()});
    }
  }

  const Field parameters = root["parameters"];
  std::vector<std::string> known;
  for (const SiteParameterInfo& info : site_parameters()) known.push_back(key_of(info));
  for (const std::string& key : parameters.keys()) {
    if (key == "comment" || std::ranges::find(known, key) != known.end()) continue;
    parameters[key].fail(fmt::format("is not a known parameter{}", did_you_mean(key, known)));
  }
  for (const SiteParameterInfo& info : site_parameters()) {
    const std::string key = key_of(info);
    if (!parameters.has(key)) continue;
    params.calibration.site.*info.member = read_parameter(parameters[key], info);
  }
  params.calibration.before.resize(size_classes().size());
  params.calibration.after.resize(size_classes().size());
  if (root.has("errors")) {
    const Field errors = root["errors"];
    errors.allow_only({"before", "after"});
    if (errors.has("before")) params.calibration.before = read_errors(errors["before"]);
    if (errors.has("after")) params.calibration.after = read_errors(errors["after"]);
  }
  return params;
}

void apply_params(Library& library, const ParamsFile& params, const std::string& name) {
  library.site = params.calibration.site;
  if (library.name == params.library && library.version == params.version) return;
  library.settings.notes.push_back(fmt::format("{} was fitted with {} {}, and is used with {} {}",
                                               name, params.library, params.version, library.name,
                                               library.version));
}

}  // namespace flyover::io
