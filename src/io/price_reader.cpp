#include "flyover/io/price_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/presets.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-prices-1";
constexpr std::string_view file_name = "prices.json";

double amount(const Field& field) {
  const double value = field.number();
  if (value < 0) field.fail(fmt::format("expected a number of 0 or more, got {}", value));
  return value;
}

void read_range(const Field& parent, std::string_view key, PriceRange& range) {
  if (!parent.has(key)) return;
  const Field field = parent[key];
  if (field.is_number()) {
    const double value = amount(field);
    range = {.low = value, .typical = value, .high = value, .source = {}, .date = {}};
    return;
  }
  if (!field.is_object()) {
    field.fail("expected a number, or an object with \"low\", \"typical\" and \"high\"");
  }
  field.allow_only({"low", "typical", "high", "source", "date"});
  const std::array ends = {std::pair{"low", &range.low}, std::pair{"typical", &range.typical},
                           std::pair{"high", &range.high}};
  for (const auto& [name, value] : ends) {
    if (field.has(name)) *value = amount(field[name]);
  }
  if (field.has("source")) range.source = field["source"].text();
  if (field.has("date")) range.date = field["date"].text();
  const auto above = [](const std::optional<double>& a, const std::optional<double>& b) {
    return a && b && *a > *b;
  };
  if (above(range.low, range.typical) || above(range.typical, range.high) ||
      above(range.low, range.high)) {
    field.fail("expected \"low\" <= \"typical\" <= \"high\"");
  }
}

class PriceReader {
 public:
  PriceReader(const Field& root, PriceList& prices) : root_(root), prices_(prices) {}

  void read() {
    if (!root_.is_object()) root_.fail("expected a list of prices, an object");
    root_.allow_only({"format", "date", "quote", "sources", "gpu_hour", "gpu_hours", "nodes",
                      "nics", "networks"});
    if (root_.has("format")) (void)root_["format"].one_of({std::string(format_name)});
    if (root_.has("quote")) {
      const std::string quote = root_["quote"].one_of({"low", "typical", "high"});
      prices_.quote = quote == "low"    ? PriceQuote::Low
                      : quote == "high" ? PriceQuote::High
                                        : PriceQuote::Typical;
    }
    if (root_.has("gpu_hour")) prices_.gpu_hour = amount(root_["gpu_hour"]);
    for (const std::string& key : names("gpu_hours")) {
      const Field list = root_["gpu_hours"];
      read_range(list, key, prices_.gpu_hours[gpu_name(list[key], key)]);
    }
    for (const std::string& key : names("nodes")) read_node(key);
    for (const std::string& key : names("nics")) {
      const Field field = root_["nics"][key];
      field.allow_only({"capital", "power_W"});
      NicPrice& price = prices_.nics[key];
      read_range(field, "capital", price.capital);
      read_range(field, "power_W", price.power_W);
    }
    for (const std::string& key : names("networks")) read_network(key);
  }

 private:
  [[nodiscard]] std::vector<std::string> names(std::string_view list) const {
    std::vector<std::string> keys;
    if (!root_.has(list)) return keys;
    const Field field = root_[list];
    if (!field.is_object()) field.fail("expected an object: names with their prices");
    keys = field.keys();
    std::erase(keys, "comment");
    return keys;
  }

  [[nodiscard]] std::string gpu_name(const Field& field, const std::string& key) const {
    if (presets_.has(PresetKind::Gpu, key)) return presets_.gpu(key).name;
    refuse(field, "GPU", key, PresetKind::Gpu);
  }
  [[noreturn]] void refuse(const Field& field, std::string_view kind, const std::string& key,
                           PresetKind of) const {
    std::vector<std::string> known;
    for (const PresetInfo& preset : presets_.list(of)) known.push_back(preset.name);
    field.fail(fmt::format("there is no {} \"{}\"{}", kind, key, did_you_mean(key, known)));
  }

  void read_node(const std::string& key) {
    const Field field = root_["nodes"][key];
    field.allow_only({"capital", "power_kW", "includes_nics"});
    NodePrice& price = prices_.nodes[node_name(key)];
    read_range(field, "capital", price.capital);
    read_range(field, "power_kW", price.power_kW);
    if (field.has("includes_nics")) price.includes_nics = field["includes_nics"].boolean();
  }
  // Aliases are the preset's own name, as topologies have it.
  [[nodiscard]] std::string node_name(const std::string& key) const {
    for (const PresetInfo& preset : presets_.list(PresetKind::Node)) {
      const auto alias = std::ranges::find(preset.aliases, key);
      if (alias != preset.aliases.end()) return preset.name;
    }
    return key;
  }

  void read_network(const std::string& key) {
    const Field field = root_["networks"][key];
    if (!presets_.has(PresetKind::Network, key)) {
      refuse(field, "network", key, PresetKind::Network);
    }
    field.allow_only({"switch_capital", "switch_power_W", "power_includes_transceivers",
                      "link_capital", "transceiver_power_W"});
    NetworkPrice& price = prices_.networks[presets_.network(key).preset];
    read_range(field, "switch_capital", price.switch_capital);
    read_range(field, "switch_power_W", price.switch_power_W);
    read_range(field, "link_capital", price.link_capital);
    read_range(field, "transceiver_power_W", price.transceiver_power_W);
    if (field.has("power_includes_transceivers")) {
      price.power_includes_transceivers = field["power_includes_transceivers"].boolean();
    }
  }

  const Field& root_;
  PriceList& prices_;
  Presets presets_;
};

}  // namespace

PriceList shipped_prices() {
  return read_prices(Document::parse(std::string(file_name), std::string(embedded_file(file_name))),
                     {});
}

PriceList read_prices(const Document& document, PriceList base) {
  const Field root = document.root();
  PriceReader(root, base).read();
  return base;
}

PriceList changed_prices(PriceList base, std::span<const Setting> settings) {
  Document changes = Document::parse("prices", "{}");
  try {
    for (const Setting& setting : settings) changes.apply(setting);
    return read_prices(changes, std::move(base));
  } catch (const InputError& error) {
    // As whoever set it wrote it.
    constexpr std::string_view set = "--set ";
    Place place = error.place();
    if (place.file.starts_with(set)) place.file.insert(set.size(), "prices.");
    throw InputError(std::move(place), error.problem());
  }
}

std::optional<double> gpu_hour(const PriceList& prices, const std::string& gpu) {
  if (prices.gpu_hour) return prices.gpu_hour;
  const auto found = prices.gpu_hours.find(gpu);
  return found == prices.gpu_hours.end() ? std::nullopt : found->second.at(prices.quote);
}

std::string gpu_hour_words(const PriceList& prices, const std::string& gpu) {
  if (prices.gpu_hour) return fmt::format("{} $ per GPU-hour, as stated", *prices.gpu_hour);
  const std::optional<double> price = gpu_hour(prices, gpu);
  if (!price) return fmt::format("no {} price of a GPU-hour of {}", to_string(prices.quote), gpu);
  const PriceRange& range = prices.gpu_hours.at(gpu);
  return fmt::format("{} $ per GPU-hour of {}, the {} price{} ({})", *price, gpu,
                     to_string(prices.quote), range.date.empty() ? "" : " of " + range.date,
                     range.source.empty() ? "as stated" : range.source);
}

}  // namespace flyover::io
