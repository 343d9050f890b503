#include "flyover/io/expert_words.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "flyover/io/document.hpp"
#include "flyover/io/expert_kernels_reader.hpp"

namespace flyover::io {

namespace {

constexpr std::array modes = {ExpertMode::Nccl, ExpertMode::Normal, ExpertMode::Direct,
                              ExpertMode::LowLatency, ExpertMode::Fused};
constexpr std::array gates = {Gate::TopK, Gate::GroupSumOfTwo, Gate::GroupMax, Gate::Hash};
constexpr std::array placements = {Placement::InOrder, Placement::Hierarchical, Placement::Global};

struct Payload {
  std::string_view word;
  double bytes_per_value;
};
constexpr std::array payloads = {Payload{"fp8", 1 + 4.0 / 128}, Payload{"fp8-32", 1 + 1.0 / 32},
                                 Payload{"bf16", 2}};

template <class Values>
std::vector<std::string> words_of(const Values& values) {
  std::vector<std::string> words;
  for (const auto value : values) words.emplace_back(to_string(value));
  return words;
}

template <class Values>
auto named(const Values& values, std::string_view word) {
  const auto found =
      std::ranges::find_if(values, [&](auto value) { return to_string(value) == word; });
  require(found != values.end(), "a word of the list");
  return *found;
}

}  // namespace

std::vector<std::string> expert_mode_words() {
  return words_of(modes);
}
std::vector<std::string> gate_words() {
  return words_of(gates);
}
std::vector<std::string> placement_words() {
  return words_of(placements);
}
ExpertMode expert_mode_named(std::string_view word) {
  return named(modes, word);
}
Gate gate_named(std::string_view word) {
  return named(gates, word);
}
Placement placement_named(std::string_view word) {
  return named(placements, word);
}

std::string default_expert_library(ExpertMode mode) {
  switch (mode) {
    case ExpertMode::Direct:
      return "deepep-v2";
    case ExpertMode::Fused:
      return "megamoe";
    case ExpertMode::Nccl:
    case ExpertMode::Normal:
    case ExpertMode::LowLatency:
      return "deepep-v1";
  }
  return "";
}

void take_kernels(ExpertExchange& exchange, const std::string& name_or_path) {
  const Document document = expert_kernels_document(name_or_path);
  exchange.kernels =
      std::make_shared<const ExpertKernels>(read_expert_kernels(document, exchange.mode));
  exchange.other_kernels.clear();
  if (exchange.mode == ExpertMode::Fused) return;
  const Field known = document.root()["modes"];
  for (const ExpertMode mode : modes) {
    if (mode == exchange.mode || mode == ExpertMode::Fused) continue;
    if (mode != ExpertMode::Nccl && !known.has(to_string(mode))) continue;
    exchange.other_kernels.emplace_back(
        mode, std::make_shared<const ExpertKernels>(read_expert_kernels(document, mode)));
  }
}

std::vector<std::string> payload_words() {
  std::vector<std::string> words;
  for (const Payload& payload : payloads) words.emplace_back(payload.word);
  return words;
}

double payload_bytes(std::string_view word, std::uint32_t hidden) {
  const auto found = std::ranges::find(payloads, word, &Payload::word);
  require(found != payloads.end(), "a payload of the list");
  return found->bytes_per_value * hidden;
}

ExpertRouting routing_of(const Model& model) {
  if (!model.experts) throw InputError(fmt::format("{} has no experts", model.name));
  const Experts& experts = *model.experts;
  ExpertRouting routing;
  routing.experts = experts.count;
  routing.chosen = experts.chosen;
  if (experts.groups > 1) {
    routing.groups = experts.groups;
    routing.groups_chosen = experts.groups_chosen;
    if (experts.groups_chosen < experts.groups) routing.gate = Gate::GroupSumOfTwo;
  }
  return routing;
}

}  // namespace flyover::io
