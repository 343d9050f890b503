#include "flyover/io/expert_load_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-expert-load-1";

std::vector<double> read_list(const Field& field, std::uint32_t experts) {
  const std::vector<Field> items = field.elements();
  if (items.size() != experts) {
    field.fail(
        fmt::format("expected a number for each of the {} experts, got {}", experts, items.size()));
  }
  std::vector<double> load;
  double sum = 0;
  for (const Field& item : items) {
    const double value = item.number();
    if (value < 0) item.fail(fmt::format("expected zero or more, got {}", value));
    load.push_back(value);
    sum += value;
  }
  if (sum <= 0) field.fail("expected a load above zero of some expert");
  return load;
}

std::string numbers_of(const ExpertLoad& load) {
  std::vector<std::uint32_t> numbers;
  for (const ExpertLoad::Layer& of : load.layers) numbers.push_back(of.layer.value());
  return fmt::format("{}", fmt::join(numbers, ", "));
}

}  // namespace

ExpertLoad read_expert_load(const Document& document) {
  const Field root = document.root();
  if (!root.has("format") || root["format"].text() != format_name) {
    root.fail(fmt::format("expected loads of experts (\"format\": \"{}\")", format_name));
  }
  root.allow_only({"format", "name", "source", "experts", "load", "layers"});
  if (root.has("load") == root.has("layers")) {
    root.fail("expected either \"load\", for all layers, or \"layers\"");
  }
  ExpertLoad out;
  out.name = root["name"].text();
  out.source = root["source"].text();
  out.experts = root["experts"].count();
  if (root.has("load")) {
    out.layers.push_back({std::nullopt, read_list(root["load"], out.experts)});
    return out;
  }
  for (const Field& item : root["layers"].elements()) {
    item.allow_only({"layer", "load"});
    const std::uint32_t layer = item["layer"].count(0);
    const bool twice = std::ranges::any_of(
        out.layers, [&](const ExpertLoad::Layer& other) { return other.layer == layer; });
    if (twice) item["layer"].fail(fmt::format("layer {} is listed twice", layer));
    out.layers.push_back({layer, read_list(item["load"], out.experts)});
  }
  if (out.layers.empty()) root["layers"].fail("expected a layer");
  return out;
}

std::vector<double> read_expert_load(const std::filesystem::path& path,
                                     std::optional<std::uint32_t> layer) {
  const Document document = Document::load(path);
  const ExpertLoad read = read_expert_load(document);
  if (!read.layers[0].layer) return read.layers[0].load;
  const Field layers = document.root()["layers"];
  if (!layer) {
    layers.fail(
        fmt::format("has loads by layer: say which layer is meant, of {}", numbers_of(read)));
  }
  for (const ExpertLoad::Layer& of : read.layers) {
    if (of.layer == layer) return of.load;
  }
  layers.fail(fmt::format("has no layer {}, only {}", *layer, numbers_of(read)));
}

}  // namespace flyover::io
