#include "flyover/io/left_out.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/library_reader.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view shipped_path = "left-out.json";
constexpr std::string_view format_name = "flyover-left-out-1";

// A quantity or a share, as JSON.
std::string json_text(const Field& value) {
  return value.is_number() ? fmt::format("{}", value.number())
                           : nlohmann::json(value.text()).dump();
}

}  // namespace

LeftOut::LeftOut(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format", "summary", "parameters", "sites"});
  if (root["format"].text() != format_name) {
    root["format"].fail(fmt::format("expected \"{}\"", format_name));
  }
  for (const Field& entry : root["parameters"].elements()) {
    entry.allow_only({"library", "at"});
    parameters_.push_back({entry["library"].text(), entry["at"].text()});
  }
  const Field sites = root["sites"];
  for (const std::string& site : sites.keys()) {
    const std::vector<Field> values = sites[site].elements();
    if (values.size() != parameters_.size()) {
      sites[site].fail(
          fmt::format("expected {} values, got {}", parameters_.size(), values.size()));
    }
    for (const Field& value : values) values_[site].push_back(json_text(value));
  }
}

LeftOut::LeftOut()
    : LeftOut(
          Document::parse(std::string(shipped_path), std::string(embedded_file(shipped_path)))) {}

Library LeftOut::library(const std::string& stem, const std::string& site) const {
  const std::vector<std::string>& values = values_.at(site);
  return read_library_from(stem, [&](const std::string& part) {
    auto tree =
        nlohmann::ordered_json::parse(embedded_file(fmt::format("libraries/{}.json", part)));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].library != part) continue;
      const nlohmann::json::json_pointer place(parameters_[i].pointer);
      if (!tree.contains(place)) {
        throw InputError(
            fmt::format("{}: {} has no {}: its rules changed since the parameters were fitted "
                        "(scripts/fit/refit)",
                        shipped_path, part, parameters_[i].pointer));
      }
      tree[place] = nlohmann::ordered_json::parse(values[i]);
    }
    return tree.dump();
  });
}

}  // namespace flyover::io
