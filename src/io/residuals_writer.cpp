#include "flyover/io/residuals_writer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flyover::io {

namespace {

using nlohmann::ordered_json;

std::string_view size_name(std::size_t size) {
  return size_classes()[size].name;
}

// One item to a line, so that a changed class is a changed line.
template <class Items, class ToJson>
std::string lines(const Items& items, ToJson to_json) {
  std::string out = "[";
  for (const auto& item : items) {
    out += fmt::format("{}\n    {}", &item == &items.front() ? "" : ",", to_json(item).dump());
  }
  return out + (items.empty() ? "]" : "\n  ]");
}

}  // namespace

std::string residuals_json(const Residuals& residuals) {
  ordered_json correlation = ordered_json::object();
  for (std::size_t size = 0; size < residuals.correlation.size(); ++size) {
    correlation[std::string(size_name(size))] = residuals.correlation[size];
  }
  const std::string classes = lines(residuals.classes, [](const ResidualClass& c) {
    return ordered_json{{"links", c.links},          {"algorithm", c.algorithm},
                        {"size", size_name(c.size)}, {"low", c.range.low},
                        {"high", c.range.high},      {"rows", c.range.rows},
                        {"sites", c.range.sites}};
  });
  const std::string fitted = lines(residuals.fitted, [](const FittedClass& c) {
    return ordered_json{{"links", c.links},
                        {"algorithm", c.algorithm},
                        {"smallest_bytes", c.smallest.count()},
                        {"largest_bytes", c.largest.count()},
                        {"gpus", c.gpus},
                        {"domains", c.domains},
                        {"collectives", c.collectives},
                        {"libraries", c.libraries}};
  });
  return fmt::format(
      "{{\n"
      "  \"$schema\": \"../schemas/residuals.schema.json\",\n"
      "  \"format\": \"flyover-residuals-1\",\n"
      "  \"origin\": \"{}\",\n"
      "  \"rows\": {},\n"
      "  \"sites\": {},\n"
      "  \"correlation\": {},\n"
      "  \"gpus\": {},\n"
      "  \"classes\": {},\n"
      "  \"fitted\": {}\n"
      "}}\n",
      to_string(residuals.origin), residuals.rows, residuals.sites, correlation.dump(),
      ordered_json(residuals.gpus).dump(), classes, fitted);
}

}  // namespace flyover::io
