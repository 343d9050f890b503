#include "io/exchange_reader.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "flyover/base/text.hpp"
#include "flyover/io/expert_load_reader.hpp"
#include "flyover/io/expert_words.hpp"
#include "flyover/io/model_reader.hpp"
#include "flyover/moe/popularity.hpp"
#include "io/beside.hpp"

namespace flyover::io {

namespace {

constexpr std::uint32_t most_experts = 1'000'000;
constexpr std::uint32_t most_tokens = 16'777'216;  // Of a rank.

class ExchangeReader {
 public:
  // Borrows both.
  ExchangeReader(const Field& field, const std::string& file) : field_(field), file_(file) {}

  ExpertExchange read(std::string name) {
    field_.allow_only({"library", "mode", "tokens", "hidden", "dispatch", "combine", "routing",
                       "sms", "chunk", "cached", "hook", "nvlink", "overlapped", "expert_hidden",
                       "efficiency", "dtype"});
    out_.name = std::move(name);
    if (field_.has("mode")) {
      out_.mode = expert_mode_named(field_["mode"].one_of(expert_mode_words()));
    }
    read_kernels();
    read_tokens();
    read_routing(field_["routing"]);
    out_.hidden = size("hidden", model_ ? model_->hidden : 0);
    out_.dispatch_bytes = payload("dispatch", "fp8");
    out_.combine_bytes = payload("combine", "bf16");
    read_fused();
    if (field_.has("sms")) out_.sms = field_["sms"].count(1, 10'000);
    if (field_.has("chunk")) {
      need_mode("chunk", {ExpertMode::Normal});
      out_.chunk = field_["chunk"].count(1, most_tokens);
    }
    read_flag("cached", out_.cached, {ExpertMode::Normal, ExpertMode::Direct});
    read_flag("hook", out_.hook, {ExpertMode::LowLatency});
    read_flag("nvlink", out_.nvlink, {ExpertMode::LowLatency, ExpertMode::Direct});
    if (field_.has("overlapped")) out_.overlapped = field_["overlapped"].boolean();
    return std::move(out_);
  }

 private:
  // What other modes would not look at must not pass in silence.
  void need_mode(std::string_view key, std::initializer_list<ExpertMode> modes) const {
    if (std::ranges::find(modes, out_.mode) != modes.end()) return;
    std::string words;
    for (const ExpertMode mode : modes) {
      words += fmt::format("{}{}", words.empty() ? "" : " or ", to_string(mode));
    }
    field_[key].fail(fmt::format("is for mode {}, and this exchange is of mode {}", words,
                                 to_string(out_.mode)));
  }

  void read_flag(std::string_view key, bool& flag, std::initializer_list<ExpertMode> modes) const {
    if (!field_.has(key)) return;
    need_mode(key, modes);
    flag = field_[key].boolean();
  }

  void read_kernels() {
    if (field_.has("library")) {
      field_["library"].parsed(
          [&](const std::string& name) { take_kernels(out_, beside(file_, name)); });
    } else {
      take_kernels(out_, default_expert_library(out_.mode));
    }
  }

  void read_tokens() {
    const Field tokens = field_["tokens"];
    if (!tokens.is_array()) {
      out_.tokens = tokens.count(1, most_tokens);
      return;
    }
    for (const Field& own : tokens.elements()) {
      out_.rank_tokens.push_back(own.count(0, most_tokens));
    }
    if (std::ranges::all_of(out_.rank_tokens, [](std::uint32_t own) { return own == 0; })) {
      tokens.fail("expected a rank with tokens");
    }
  }

  // A whole number above zero, where the model does not say it.
  [[nodiscard]] std::uint32_t size(std::string_view key, std::uint32_t of_model) const {
    if (!field_.has(key) && of_model > 0) return of_model;
    return field_[key].count(1, 1'000'000);
  }

  // "fp8", or {"bytes": "7392 B"}.
  [[nodiscard]] double payload(std::string_view key, std::string_view usual) const {
    if (!field_.has(key)) return payload_bytes(usual, out_.hidden);
    const Field field = field_[key];
    if (field.is_object()) {
      field.allow_only({"bytes"});
      return static_cast<double>(field["bytes"].bytes().count());
    }
    return payload_bytes(field.one_of(payload_words()), out_.hidden);
  }

  void read_fused() {
    if (out_.mode != ExpertMode::Fused) {
      for (const std::string_view key : {"expert_hidden", "efficiency", "dtype"}) {
        if (field_.has(key)) need_mode(key, {ExpertMode::Fused});
      }
      return;
    }
    out_.expert_hidden = size("expert_hidden", model_ ? model_->experts->hidden : 0);
    if (field_.has("efficiency")) {
      const Field efficiency = field_["efficiency"];
      out_.efficiency = efficiency.number();
      if (!(out_.efficiency > 0 && out_.efficiency <= 1)) {
        efficiency.fail(fmt::format("expected a share of the peak above 0 and up to 1, got {}",
                                    out_.efficiency));
      }
    }
    out_.dtype = field_.has("dtype") ? field_["dtype"].text() : "fp8";
  }

  void read_routing(const Field& field) {
    field.allow_only({"model", "experts", "chosen", "gate", "groups", "groups_chosen", "popularity",
                      "slots", "placement", "sampled", "seed"});
    ExpertRouting& routing = out_.routing;
    if (field.has("model")) {
      model_ = field["model"].parsed(
          [&](const std::string& name) { return load_model(beside(file_, name)); });
      routing = field["model"].parsed([&](const std::string&) { return routing_of(*model_); });
    }
    if (!model_ || field.has("experts")) routing.experts = field["experts"].count(1, most_experts);
    if (!model_ || field.has("chosen")) routing.chosen = field["chosen"].count(1, routing.experts);
    if (routing.chosen > routing.experts) {
      field["experts"].fail(
          fmt::format("{} experts, of which {} are to be chosen", routing.experts, routing.chosen));
    }
    read_groups(field);
    if (field.has("popularity")) read_popularity(field["popularity"]);
    if (field.has("slots")) routing.slots = field["slots"].count(routing.experts, most_experts);
    if (field.has("placement")) {
      routing.placement = placement_named(field["placement"].one_of(placement_words()));
      if (routing.placement == Placement::Hierarchical && routing.groups == 0) {
        field["placement"].fail("hierarchical placement needs \"groups\" of experts");
      }
    }
    if (field.has("sampled")) routing.sampled = field["sampled"].boolean();
    if (field.has("seed")) {
      routing.seed = seed(field["seed"]);
      if (!routing.sampled) field["seed"].fail("draws nothing without \"sampled\": true");
    }
  }

  static std::uint64_t seed(const Field& field) {
    const std::int64_t value = field.integer();
    if (value < 0) field.fail("expected a seed of zero or more");
    return static_cast<std::uint64_t>(value);
  }

  void read_groups(const Field& field) {
    ExpertRouting& routing = out_.routing;
    if (field.has("gate")) routing.gate = gate_named(field["gate"].one_of(gate_words()));
    if (field.has("groups")) {
      const Field groups = field["groups"];
      routing.groups = groups.count(1, routing.experts);
    }
    if (routing.groups > 0 && routing.experts % routing.groups != 0) {
      field[field.has("groups") ? "groups" : "experts"].fail(
          fmt::format("{} experts do not divide into {} groups", routing.experts, routing.groups));
    }
    if (field.has("groups_chosen")) {
      const Field chosen = field["groups_chosen"];
      if (routing.groups == 0) chosen.fail("there are no \"groups\" to choose from");
      routing.groups_chosen = chosen.count(1, routing.groups);
      if (!field.has("gate")) {
        const bool all = routing.groups_chosen == routing.groups;
        routing.gate = all ? Gate::TopK : Gate::GroupSumOfTwo;
      } else if (routing.gate == Gate::TopK || routing.gate == Gate::Hash) {
        chosen.fail(fmt::format("{} chooses no groups", to_string(routing.gate)));
      }
    }
    const bool by_groups = routing.gate == Gate::GroupSumOfTwo || routing.gate == Gate::GroupMax;
    if (by_groups && (routing.groups == 0 || routing.groups_chosen == 0)) {
      field["gate"].fail(
          fmt::format("{} needs \"groups\" and \"groups_chosen\"", to_string(routing.gate)));
    }
    if (by_groups && routing.chosen > routing.groups_chosen * (routing.experts / routing.groups)) {
      field[field.has("groups_chosen") ? "groups_chosen" : "chosen"].fail(fmt::format(
          "{} groups have {} experts, of which {} are to be chosen", routing.groups_chosen,
          routing.groups_chosen * (routing.experts / routing.groups), routing.chosen));
    }
  }

  // {"zipf": 1, "seed": 1}, {"file": "load.json", "layer": 3} or one number for each expert.
  void read_popularity(const Field& field) {
    std::vector<double>& popularity = out_.routing.popularity;
    const std::uint32_t experts = out_.routing.experts;
    if (field.is_array()) {
      for (const Field& own : field.elements()) {
        popularity.push_back(own.number());
        if (popularity.back() < 0) own.fail("expected zero or more");
      }
    } else {
      if (field.has("zipf") == field.has("file")) {
        field.fail("expected either \"zipf\" or a \"file\"");
      }
      if (field.has("file")) {
        field.allow_only({"file", "layer"});
        std::optional<std::uint32_t> layer;
        if (field.has("layer")) layer = field["layer"].count(0);
        popularity = field["file"].parsed(
            [&](const std::string& path) { return read_expert_load(beside(file_, path), layer); });
      } else {
        field.allow_only({"zipf", "seed"});
        const double exponent = field["zipf"].number();
        if (exponent < 0) field["zipf"].fail("expected an exponent of zero or more");
        popularity =
            zipf_popularity(experts, exponent, field.has("seed") ? seed(field["seed"]) : 1);
      }
    }
    if (popularity.size() != experts) {
      field.fail(fmt::format("expected {} numbers, one for each expert, got {}", experts,
                             popularity.size()));
    }
    if (std::ranges::count_if(popularity, [](double p) { return p > 0; }) < out_.routing.chosen) {
      field.fail(fmt::format("expected at least {} experts above zero, as many as are chosen",
                             out_.routing.chosen));
    }
  }

  const Field& field_;
  const std::string& file_;
  ExpertExchange out_;
  std::optional<Model> model_;
};

}  // namespace

void Exchanges::read(const Field& field) {
  for (const std::string& name : field.keys()) {
    if (name == "comment") continue;
    const Field own = field[name];
    if (name.empty()) own.fail("expected a name that is not empty");
    exchanges_.push_back(ExchangeReader(own, file_).read(name));
  }
}

std::uint32_t Exchanges::find(const Field& name) const {
  const std::string wanted = name.text();
  const auto found = std::ranges::find(exchanges_, wanted, &ExpertExchange::name);
  if (found != exchanges_.end()) return static_cast<std::uint32_t>(found - exchanges_.begin());
  std::vector<std::string> names;
  for (const ExpertExchange& exchange : exchanges_) names.push_back(exchange.name);
  name.fail(fmt::format("there is no exchange \"{}\"{}", wanted, did_you_mean(wanted, names)));
}

}  // namespace flyover::io
