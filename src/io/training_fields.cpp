#include "io/training_fields.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "flyover/io/expert_kernels_reader.hpp"

namespace flyover::io {

namespace {

struct Flag {
  std::string_view key;
  bool TrainingOptions::*member;
};
constexpr std::array<Flag, 10> option_flags = {{
    {"fp32_gradients", &TrainingOptions::fp32_gradients},
    {"fp32_master", &TrainingOptions::fp32_master},
    {"bf16_moments", &TrainingOptions::bf16_moments},
    {"flash_attention", &TrainingOptions::flash_attention},
    {"dropout", &TrainingOptions::dropout},
    {"fused_loss", &TrainingOptions::fused_loss},
    {"cuda_graphs", &TrainingOptions::cuda_graphs},
    {"quantised_parameters", &TrainingOptions::quantised_parameters},
    {"cached_quantised", &TrainingOptions::cached_quantised},
    {"transposed_quantised", &TrainingOptions::transposed_quantised},
}};

struct OverlapFlag {
  std::string_view key;
  bool Overlap::*member;
};
constexpr std::array<OverlapFlag, 7> overlap_flags = {{
    {"gradients", &Overlap::gradients},
    {"parameters", &Overlap::parameters},
    {"pipeline", &Overlap::pipeline},
    {"scatter_boundary", &Overlap::scatter_boundary},
    {"context", &Overlap::context},
    {"experts", &Overlap::experts},
    {"mutual_slowdown", &Overlap::mutual_slowdown},
}};

Optimizer read_optimizer(const Field& field) {
  const std::string word = field.one_of({"adam", "momentum", "sgd"});
  if (word == "adam") return Optimizer::Adam;
  return word == "momentum" ? Optimizer::Momentum : Optimizer::Sgd;
}

ExpertDispatch read_dispatch(const Field& field) {
  const std::string word = field.one_of({"all-to-all", "fused", "all-gather"});
  if (word == "all-to-all") return ExpertDispatch::AllToAll;
  return word == "fused" ? ExpertDispatch::Fused : ExpertDispatch::AllGather;
}

std::shared_ptr<const ExpertKernels> read_kernels(const Field& field) {
  if (field.text() == "none") return nullptr;
  return field.parsed([](const std::string& name) {
    return std::make_shared<const ExpertKernels>(
        read_expert_kernels(expert_kernels_document(name), ExpertMode::Normal));
  });
}

}  // namespace

const std::vector<std::string_view>& option_keys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all = {"optimizer", "expert_imbalance"};
    for (const Flag& flag : option_flags) all.push_back(flag.key);
    return all;
  }();
  return keys;
}

const std::vector<std::string_view>& overlap_keys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all = {"tensor", "dispatch", "kernels", "bucket"};
    for (const OverlapFlag& flag : overlap_flags) all.push_back(flag.key);
    return all;
  }();
  return keys;
}

void read_options(const Field& parent, TrainingOptions& options) {
  for (const Flag& flag : option_flags) {
    if (parent.has(flag.key)) options.*flag.member = parent[flag.key].boolean();
  }
  if (parent.has("optimizer")) options.optimizer = read_optimizer(parent["optimizer"]);
  if (parent.has("expert_imbalance")) {
    const Field field = parent["expert_imbalance"];
    options.expert_imbalance = field.number();
    if (options.expert_imbalance < 1) {
      field.fail(
          fmt::format("expected tokens of the fullest expert rank over the mean, 1 or more, "
                      "got {}",
                      options.expert_imbalance));
    }
  }
}

void read_overlap(const Field& field, Overlap& overlap) {
  for (const OverlapFlag& flag : overlap_flags) {
    if (field.has(flag.key)) overlap.*flag.member = field[flag.key].boolean();
  }
  if (field.has("tensor")) {
    overlap.tensor = field["tensor"].one_of({"none", "pipelined"}) == "none"
                         ? TensorOverlap::None
                         : TensorOverlap::Pipelined;
  }
  if (field.has("dispatch")) overlap.dispatch = read_dispatch(field["dispatch"]);
  if (field.has("kernels")) overlap.expert_kernels = read_kernels(field["kernels"]);
  if (field.has("bucket")) overlap.bucket = field["bucket"].bytes();
}

RecomputeChoice read_recompute(const Field& field) {
  if (field.is_string()) {
    const std::string word = field.text();
    for (const Recompute choice : {Recompute::None, Recompute::Selective, Recompute::Full}) {
      if (word == to_string(choice)) return {choice, {}};
    }
    // "recompute": "moe" is a slip that a list of words would not explain.
    if (std::ranges::find(recompute_module_names, word) != recompute_module_names.end()) {
      field.fail(fmt::format("modules stand in a list: [\"{}\"]", word));
    }
    static_cast<void>(field.one_of({"none", "selective", "full"}));
  }
  if (!field.is_array()) {
    field.fail(fmt::format("expected \"none\", \"selective\", \"full\" or a list of modules ({})",
                           fmt::join(recompute_module_names, ", ")));
  }
  RecomputeChoice choice{Recompute::Selective, {}};
  const std::vector<std::string> known(recompute_module_names.begin(),
                                       recompute_module_names.end());
  for (const Field& module : field.elements()) {
    std::string name = module.one_of(known);
    if (std::ranges::find(choice.modules, name) != choice.modules.end()) {
      module.fail(fmt::format("\"{}\" is named twice", name));
    }
    choice.modules.push_back(std::move(name));
  }
  if (choice.modules.empty()) choice.recompute = Recompute::None;
  return choice;
}

}  // namespace flyover::io
