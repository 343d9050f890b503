#include "flyover/io/stack_reader.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "flyover/io/kernel_reader.hpp"
#include "io/layered_config.hpp"
#include "io/rule_fields.hpp"
#include "io/training_fields.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-stack-1";
constexpr ConfigFamily family = {"stacks", "stack"};

// "2024-11"
bool is_month(std::string_view text) {
  const auto digits = [](std::string_view part) {
    return std::ranges::all_of(
        part, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  };
  if (text.size() != 7 || text[4] != '-' || !digits(text.substr(0, 4))) return false;
  const std::string_view month = text.substr(5);
  return digits(month) && month >= "01" && month <= "12";
}

std::vector<FrameworkMatch> read_frameworks(const Field& field) {
  std::vector<FrameworkMatch> frameworks;
  for (const Field& item : field.elements()) {
    item.allow_only({"name", "version"});
    FrameworkMatch& match = frameworks.emplace_back();
    match.name = item["name"].text();
    if (match.name.empty()) item["name"].fail("expected how the framework's name begins");
    if (item.has("version")) match.version = item["version"].text();
  }
  return frameworks;
}

SlowdownRule read_slowdown(const Field& field) {
  field.allow_only(
      {"where", "gemm", "grouped_gemm", "attention", "elementwise", "source", "fitted"});
  check_evidence(field);
  SlowdownRule rule;
  rule.where = read_scope(field);
  bool any = false;
  const auto read = [&](std::string_view key, double& value) {
    if (!field.has(key)) return;
    value = field[key].positive_number();
    any = true;
  };
  read("gemm", rule.gemm);
  read("grouped_gemm", rule.grouped_gemm);
  read("attention", rule.attention);
  read("elementwise", rule.elementwise);
  if (!any) {
    field.fail("expected \"gemm\", \"grouped_gemm\", \"attention\" or \"elementwise\" in a rule");
  }
  return rule;
}

void read_slowdowns(const Field& field, SoftwareStack& stack) {
  for (const Field& item : field.elements()) stack.slowdowns.push_back(read_slowdown(item));
  const auto everywhere = [&](double SlowdownRule::*value) {
    return std::ranges::any_of(stack.slowdowns, [&](const SlowdownRule& rule) {
      return rule.*value > 0 && rule.where.architectures.empty() && rule.where.gpus.empty() &&
             rule.where.types.empty();
    });
  };
  if (!everywhere(&SlowdownRule::gemm) || !everywhere(&SlowdownRule::attention) ||
      !everywhere(&SlowdownRule::elementwise)) {
    field.fail(
        "expected a rule without \"where\" that states \"gemm\", \"attention\" and "
        "\"elementwise\"");
  }
}

void read_host(const Field& field, SoftwareStack& stack) {
  field.allow_only({"layer", "expert_layer", "micro_batch", "step", "source", "fitted"});
  check_evidence(field);
  stack.layer_host = field["layer"].duration();
  stack.expert_layer_host = field["expert_layer"].duration();
  stack.micro_batch_host = field["micro_batch"].duration();
  stack.step_host = field["step"].duration();
}

void read_message_slowdown(const Field& field, SoftwareStack& stack) {
  field.allow_only({"tp", "cp", "ep", "etp", "pp", "dp", "dp-replica", "edp", "edp-replica",
                    "embedding", "model", "source", "fitted"});
  check_evidence(field);
  for (std::size_t i = 0; i < group_kinds; ++i) {
    stack.message_slowdown[i] = field[to_string(static_cast<GroupKind>(i))].positive_number();
  }
}

double read_small_share(const Field& field) {
  const double share = field.number();
  if (share < 0 || share > 1) {
    field.fail(fmt::format("expected a share from 0 to 1, got {}", share));
  }
  return share;
}

void read_interference(const Field& field, SoftwareStack& stack) {
  field.allow_only({"contention", "straggling", "source", "fitted"});
  check_evidence(field);
  stack.contention = read_small_share(field["contention"]);
  stack.straggling = read_small_share(field["straggling"]);
}

Sharding read_sharding(const Field& field) {
  const std::string word = field.one_of({"none", "zero-1", "zero-2", "zero-3"});
  for (const Sharding sharding : {Sharding::None, Sharding::Optimizer, Sharding::Gradients}) {
    if (word == to_string(sharding)) return sharding;
  }
  return Sharding::Parameters;
}

void read_defaults(const Field& field, SoftwareStack& stack) {
  field.allow_only({"sharding",
                    "keep_gathered",
                    "recompute",
                    "sequence_parallel",
                    "interleaved",
                    "vocabulary_multiple",
                    "overlap",
                    "optimizer",
                    "expert_imbalance",
                    "fp32_gradients",
                    "fp32_master",
                    "bf16_moments",
                    "flash_attention",
                    "dropout",
                    "fused_loss",
                    "cuda_graphs",
                    "quantised_parameters",
                    "cached_quantised",
                    "transposed_quantised",
                    "source"});
  check_evidence(field);
  const Field overlap = field["overlap"];
  overlap.allow_only({"tensor", "gradients", "parameters", "pipeline", "context", "experts",
                      "dispatch", "mutual_slowdown", "kernels", "bucket", "scatter_boundary",
                      "source"});
  // A default that nobody stated would be one without a source.
  for (const std::string_view key : option_keys()) static_cast<void>(field[key]);
  for (const std::string_view key : overlap_keys()) static_cast<void>(overlap[key]);
  read_options(field, stack.options);
  read_overlap(overlap, stack.overlap);
  stack.sharding = read_sharding(field["sharding"]);
  stack.keep_gathered = field["keep_gathered"].boolean();
  RecomputeChoice recompute = read_recompute(field["recompute"]);
  stack.recompute = recompute.recompute;
  stack.recompute_modules = std::move(recompute.modules);
  stack.sequence_parallel = field["sequence_parallel"].boolean();
  stack.interleaved = field["interleaved"].boolean();
  stack.vocabulary_multiple = field["vocabulary_multiple"].count(0, 65536);
}

}  // namespace

std::vector<std::string> stack_names() {
  return config_names(family);
}

Document stack_document(std::string_view name) {
  return config_document(family, name);
}

SoftwareStack read_stack(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format", "name", "summary", "date", "kernels", "source", "frameworks",
                   "slowdowns", "host", "message_slowdown", "interference", "defaults"});
  const std::string format = root["format"].text();
  if (format != format_name) {
    root["format"].fail(fmt::format("expected \"{}\", got \"{}\"", format_name, format));
  }
  SoftwareStack stack;
  stack.name = root["name"].text();
  stack.summary = root["summary"].text();
  stack.date = root["date"].text();
  if (!is_month(stack.date)) {
    root["date"].fail(fmt::format("expected a month such as \"2024-11\", got \"{}\"", stack.date));
  }
  stack.kernels = root["kernels"].text();
  if (!stack.kernels.ends_with(".json")) {
    static_cast<void>(root["kernels"].one_of(kernel_model_names()));
  }
  stack.source = root["source"].text();
  if (stack.source.empty()) root["source"].fail("expected where the stack is described");
  stack.frameworks = read_frameworks(root["frameworks"]);
  read_slowdowns(root["slowdowns"], stack);
  read_host(root["host"], stack);
  read_message_slowdown(root["message_slowdown"], stack);
  read_interference(root["interference"], stack);
  read_defaults(root["defaults"], stack);
  return stack;
}

SoftwareStack load_stack(std::string_view name) {
  return read_stack(stack_document(name));
}

std::vector<SoftwareStack> shipped_stacks() {
  std::vector<SoftwareStack> stacks;
  for (const std::string& name : stack_names()) stacks.push_back(load_stack(name));
  return stacks;
}

std::string default_stack(std::string_view architecture) {
  return architecture.starts_with("cdna") ? "rocm-2025" : "nemo-25";
}

}  // namespace flyover::io
