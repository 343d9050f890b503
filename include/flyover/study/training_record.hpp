#pragma once

// A published training result, as docs/formats/training-results.md describes it. What a source does
// not state stays empty; nothing is filled in here.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "flyover/layout/model.hpp"

namespace flyover {

struct RecordedHardware {
  std::string gpu;
  std::optional<std::uint32_t> gpus;
  std::optional<std::uint32_t> gpus_per_node;
  std::optional<std::uint32_t> nodes;
  std::string nic;  // "8x200 Gb/s HDR InfiniBand per node"
};

// Sizes as stated; words as the frameworks have them.
struct RecordedLayout {
  std::optional<std::uint32_t> tensor;
  std::optional<std::uint32_t> context;
  std::optional<std::uint32_t> pipeline;
  std::optional<std::uint32_t> virtual_stages;
  std::optional<std::uint32_t> expert;
  std::optional<std::uint32_t> expert_tensor;
  std::optional<std::uint32_t> data;
  std::optional<std::uint32_t> micro_batch;
  std::optional<std::uint32_t> global_batch;
  std::optional<std::uint32_t> zero;         // 0 to 3.
  std::optional<std::uint32_t> fsdp;         // Ranks that share parameters; 0: no FSDP.
  std::optional<std::uint32_t> zero1_group;  // Ranks that share optimizer states.
  std::optional<bool> sequence_parallel;
  std::optional<bool> tensor_overlap;
  std::optional<bool> async_tensor;
  std::optional<bool> expert_overlap;
  std::string schedule;         // "1f1b"
  std::string recompute;        // "none", "full", "selective:[\"moe_act\"]", ...
  std::string fsdp_strategy;    // "FULL_SHARD", "SHARD_GRAD_OP"
  std::string mixed_precision;  // Composer's: "DEFAULT", "PURE".
  std::string dispatcher;       // "DeepEP", "AllToAll"
  std::string kernels;          // "TE + DeepEP"
  // Settings of the recipe (JSON texts) and of the job's environment.
  std::map<std::string, std::string> knobs;
  std::map<std::string, std::string> environment;
};

struct TrainingRecord {
  std::string id;
  std::string group;   // Records of one share what a fit would learn from either.
  std::string source;  // A key: "mlperf-v5.0".
  std::string kind;    // "pretrain", "sft", "lora", ...
  std::string model_name;
  std::optional<Model> model;  // Empty when the architecture is not known.
  std::optional<std::uint32_t> sequence;
  RecordedHardware hardware;
  std::string precision;
  RecordedLayout layout;
  std::string framework;
  std::string version;
  std::optional<double> step_seconds;  // Stated, or what stated tokens per second imply.
  std::string notes;
  char quality = 'C';  // 'A' to 'C'.
};

}  // namespace flyover
