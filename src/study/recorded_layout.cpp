#include "recorded_layout.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "words.hpp"

namespace flyover {

namespace {

// "True" and "1", with or without JSON's quotes; nothing when the setting is not there.
std::optional<bool> setting(const std::map<std::string, std::string>& settings, const char* name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return std::nullopt;
  return mentions(lower_case(found->second), {"true", "1"});
}

std::string knob(const TrainingRecord& record, const char* name) {
  const auto found = record.layout.knobs.find(name);
  return found == record.layout.knobs.end() ? "" : lower_case(found->second);
}

std::uint32_t needed(const std::optional<std::uint32_t>& size, std::string_view name) {
  if (!size) throw InputError(fmt::format("the layout is not stated: {} is missing", name));
  return *size;
}

// Frameworks' names of modules, and ours.
struct ModuleWord {
  std::string_view word;
  std::string_view module;
};
constexpr std::array module_words = {ModuleWord{"layernorm", "norm"},
                                     ModuleWord{"norm", "norm"},
                                     ModuleWord{"moe_act", "activation"},
                                     ModuleWord{"act", "activation"},
                                     ModuleWord{"core_attn", "attention"},
                                     ModuleWord{"mla_up_proj", "mla_up_proj"},
                                     ModuleWord{"shared_experts", "shared_experts"},
                                     ModuleWord{"shared_expert", "shared_experts"},
                                     ModuleWord{"mlp", "mlp"},
                                     ModuleWord{"moe", "moe"}};

// The words of `["layernorm", "moe_act"]` or `norm,act`.
std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else if (std::string_view("[]\" ").find(c) == std::string_view::npos) {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return words;
}

void selective(std::string_view list, Layout& layout) {
  layout.recompute = Recompute::Selective;
  for (const std::string& word : listed(list)) {
    const auto found = std::ranges::find(module_words, word, &ModuleWord::word);
    if (found == module_words.end()) {
      throw InputError(fmt::format("recomputation of \"{}\" is not known", word));
    }
    const std::string module(found->module);
    if (std::ranges::find(layout.recompute_modules, module) == layout.recompute_modules.end()) {
      layout.recompute_modules.push_back(module);
    }
  }
}

void set_recompute(const TrainingRecord& record, const SoftwareStack& stack, Layout& layout,
                   std::vector<std::string>& assumptions) {
  const std::string word = lower_case(record.layout.recompute);
  if (const std::string count = knob(record, "recompute_num_layers");
      word.empty() && knob(record, "recompute_granularity") == "\"full\"" && !count.empty()) {
    // Layouts recompute a whole stage or nothing of it.
    assumptions.push_back(
        fmt::format("recompute of {} layers of each stage is not modelled: none", count));
  } else if (word.empty()) {
    layout.recompute = stack.recompute;
    layout.recompute_modules = stack.recompute_modules;
    assumptions.push_back(fmt::format("recompute is not stated: {}, the default of {}",
                                      to_string(stack.recompute), stack.name));
  } else if (word == "none") {
    layout.recompute = Recompute::None;
  } else if (word == "full") {
    layout.recompute = Recompute::Full;
  } else if (word == "selective-op") {
    selective("norm,act", layout);
    layout.recompute_modules.emplace_back("second_matrices");
  } else if (word.starts_with("selective:")) {
    selective(std::string_view(word).substr(10), layout);
  } else if (word.starts_with("selective")) {
    layout.recompute = Recompute::Selective;
    if (word != "selective" && word != "selective-attention") {
      assumptions.emplace_back("selective recompute without its modules: attention's core");
    }
  } else {
    selective(word, layout);
  }
}

void set_sharding(const TrainingRecord& record, const SoftwareStack& stack, Layout& layout,
                  std::vector<std::string>& assumptions) {
  const RecordedLayout& stated = record.layout;
  const bool gathered = stated.fsdp_strategy == "SHARD_GRAD_OP";
  if (gathered || stated.zero == 3U || (!stated.zero && stated.fsdp.value_or(0) > 0)) {
    layout.sharding = Sharding::Parameters;
  } else if (!stated.zero) {
    layout.sharding = stack.sharding;
    assumptions.push_back(fmt::format("sharding is not stated: {}, the default of {}",
                                      to_string(stack.sharding), stack.name));
  } else {
    layout.sharding = static_cast<Sharding>(*stated.zero);
  }
  const bool parameters = layout.sharding == Sharding::Parameters;
  layout.keep_gathered = parameters && (gathered || (stack.keep_gathered && layout.pipeline > 1));
  // Of FSDP over one of several replicas (HSDP), and of a distributed optimizer in instances.
  const std::uint32_t replicas = layout.data * layout.context;
  const std::uint32_t group = parameters ? stated.fsdp.value_or(0) : stated.zero1_group.value_or(0);
  const bool whole = group == 0 || group >= replicas || (parameters && group == layout.data);
  if (layout.sharding != Sharding::None && !whole) layout.shard_group = group;
}

void set_pipeline(const TrainingRecord& record, const SoftwareStack& stack, Layout& layout,
                  std::vector<std::string>& assumptions) {
  const std::string& word = record.layout.schedule;
  layout.schedule = PipelineSchedule::OneForwardOneBackward;
  if (layout.pipeline == 1) return;
  if (!word.empty()) {
    const auto schedule = pipeline_schedule(word);
    if (!schedule) throw InputError(fmt::format("the schedule \"{}\" is not known", word));
    layout.schedule = *schedule;
  }
  layout.virtual_stages = record.layout.virtual_stages.value_or(1);
  const std::uint32_t deepest = record.model->layers / layout.pipeline;
  if (!record.layout.virtual_stages && word.empty() && stack.interleaved && deepest > 1 &&
      record.model->layers % layout.pipeline == 0 && micro_batches(layout) % layout.pipeline == 0) {
    layout.virtual_stages = deepest;
    assumptions.emplace_back(
        fmt::format("virtual stages are not stated: {}, a layer each, as recipes of {} have it",
                    deepest, stack.name));
  }
  if (layout.schedule == PipelineSchedule::Interleaved && layout.virtual_stages == 1) {
    layout.virtual_stages = 2;
    assumptions.emplace_back("virtual stages of the interleaved schedule are not stated: 2");
  }
  if (layout.schedule == PipelineSchedule::OneForwardOneBackward && layout.virtual_stages > 1) {
    layout.schedule = PipelineSchedule::Interleaved;
  }
  // Frameworks count embedding and head as a layer each where layers alone do not divide.
  const std::uint32_t chunks = layout.pipeline * layout.virtual_stages;
  const std::uint32_t layers = record.model->layers;
  if (layers % chunks != 0 && (layers + 2) % chunks == 0) {
    layout.chunk_layers.assign(chunks, (layers + 2) / chunks);
    --layout.chunk_layers.front();
    --layout.chunk_layers.back();
    assumptions.emplace_back("embedding and head stand for a layer each in their stages");
  } else if (layers % chunks != 0) {
    assumptions.emplace_back("layers do not divide: as even as can be with the head counted");
  }
}

void set_experts(const TrainingRecord& record, Layout& layout,
                 std::vector<std::string>& assumptions) {
  if (!record.model->experts) return;
  layout.expert = record.layout.expert.value_or(1);
  layout.expert_tensor = record.layout.expert_tensor.value_or(1);
  if (record.layout.expert_tensor || layout.tensor == 1) return;
  // Megatron-Core's own default is the tensor size; recipes of Megatron-Bridge set 1.
  const std::uint32_t stage = layout.tensor * layout.context * layout.data;
  if (!record.framework.starts_with("Megatron-Bridge") &&
      stage % (layout.expert * layout.tensor) == 0) {
    layout.expert_tensor = layout.tensor;
  }
  assumptions.push_back(fmt::format("expert tensor is not stated: {}", layout.expert_tensor));
}

struct PrecisionWord {
  std::string_view word;
  KernelType type;
};
constexpr std::array precision_words = {
    PrecisionWord{"bf16", KernelType::Bf16},
    PrecisionWord{"bf16/fp16", KernelType::Bf16},
    PrecisionWord{"fp16", KernelType::Fp16},
    PrecisionWord{"tf32", KernelType::Tf32},
    PrecisionWord{"fp8", KernelType::Fp8},
    PrecisionWord{"fp8-cs", KernelType::Fp8},
    PrecisionWord{"fp8-ds", KernelType::Fp8},
    PrecisionWord{"fp8-tensorwise", KernelType::Fp8},
    PrecisionWord{"fp8-rowwise", KernelType::Fp8Block},
    PrecisionWord{"fp8-sc", KernelType::Fp8Block},
    PrecisionWord{"fp8-block", KernelType::Fp8Block},
    PrecisionWord{"mxfp8", KernelType::Mxfp8},
    PrecisionWord{"nvfp4", KernelType::Nvfp4},
};

}  // namespace

Layout recorded_layout(const TrainingRecord& record, const SoftwareStack& stack,
                       std::vector<std::string>& assumptions) {
  const RecordedLayout& stated = record.layout;
  Layout layout;
  layout.tensor = needed(stated.tensor, "tensor");
  layout.pipeline = needed(stated.pipeline, "pipeline");
  layout.context = stated.context.value_or(1);
  layout.global_batch = needed(stated.global_batch, "the global batch");
  const std::uint64_t replica = std::uint64_t{layout.tensor} * layout.pipeline * layout.context;
  layout.data = stated.data.value_or(static_cast<std::uint32_t>(
      std::max<std::uint64_t>(*record.hardware.gpus / std::max<std::uint64_t>(replica, 1), 1)));
  layout.micro_batch = stated.micro_batch.value_or(1);
  if (!stated.micro_batch) assumptions.emplace_back("the micro-batch is not stated: 1");
  set_pipeline(record, stack, layout, assumptions);
  set_experts(record, layout, assumptions);
  layout.sequence_parallel =
      layout.tensor > 1 && stated.sequence_parallel.value_or(stack.sequence_parallel);
  // torchtitan's default rotates nothing but gathers keys and values; a ring cannot serve windows.
  const bool gathers = record.framework.starts_with("torchtitan");
  if (gathers || record.model->attention.window != 0) layout.exchange = ContextExchange::AllGather;
  set_sharding(record, stack, layout, assumptions);
  set_recompute(record, stack, layout, assumptions);
  layout.vocabulary_multiple = stack.vocabulary_multiple;
  return layout;
}

TrainingOptions recorded_options(const TrainingRecord& record, const SoftwareStack& stack,
                                 std::vector<std::string>& assumptions) {
  const RecordedLayout& stated = record.layout;
  TrainingOptions options = stack.options;
  const auto precision = std::ranges::find(precision_words, record.precision, &PrecisionWord::word);
  if (precision == precision_words.end()) {
    throw InputError(fmt::format("the precision \"{}\" is not known", record.precision));
  }
  options.compute = precision->type;
  if (record.kind == "lora") {
    options.lora = Lora{.rank = 16, .attention = true, .ffn = false};
    assumptions.emplace_back("adapters of rank 16 on attention's projections");
  }
  if (!stated.mixed_precision.empty()) options.fp32_gradients = stated.mixed_precision != "PURE";
  for (const char* name : {"FP8_PARAMS", "FP8_PARAM_GATHER"}) {
    if (const auto on = setting(stated.environment, name)) options.quantised_parameters = *on;
  }
  if (const std::string graphs = knob(record, "cuda_graph_impl"); !graphs.empty()) {
    options.cuda_graphs = !mentions(graphs, {"none"});
  }
  std::optional<bool> graphs;
  for (const char* name : {"FULL_CUDA_GRAPH", "LAYER_CUDA_GRAPH", "MCORE_CUDA_GRAPH"}) {
    if (const auto on = setting(stated.environment, name)) graphs = graphs.value_or(false) || *on;
  }
  if (graphs) options.cuda_graphs = *graphs;
  if (mentions(record.notes, {"Muon"})) options.optimizer = Optimizer::Momentum;
  if (setting(stated.environment, "FP8_DPA").value_or(false)) {
    assumptions.emplace_back("attention in fp8 is not modelled: bf16");
  }
  if (mentions(record.notes, {"packed"})) {
    assumptions.emplace_back("packed sequences attend as one");
  }
  if (mentions(record.notes, {"real routing"})) {
    assumptions.emplace_back("experts take equal shares although routing is real");
  }
  if (const std::string layers = knob(record, "cpu_offloading_num_layers"); !layers.empty()) {
    assumptions.push_back(fmt::format("offloading of {} layers is not modelled", layers));
  }
  return options;
}

Overlap recorded_overlap(const TrainingRecord& record, const SoftwareStack& stack) {
  const RecordedLayout& stated = record.layout;
  Overlap overlap = stack.overlap;
  const auto tensor = stated.tensor_overlap ? stated.tensor_overlap : stated.async_tensor;
  if (tensor) overlap.tensor = *tensor ? TensorOverlap::Pipelined : TensorOverlap::None;
  if (const auto on = setting(stated.environment, "OVERLAP_GRAD_REDUCE")) overlap.gradients = *on;
  if (const auto on = setting(stated.environment, "OVERLAP_PARAM_GATHER")) overlap.parameters = *on;
  if (stated.expert_overlap) overlap.experts = *stated.expert_overlap;
  if (const auto on = setting(stated.knobs, "overlap_moe_expert_parallel_comm")) {
    overlap.experts = *on;
  }
  const std::string dispatcher = lower_case(stated.dispatcher) + " " + lower_case(stated.kernels) +
                                 " " + knob(record, "moe_token_dispatcher_type");
  if (mentions(dispatcher, {"deepep", "hybridep", "flex"})) {
    overlap.dispatch = ExpertDispatch::Fused;
  } else if (mentions(dispatcher, {"alltoall"})) {
    overlap.dispatch = ExpertDispatch::AllToAll;
  }
  return overlap;
}

}  // namespace flyover
