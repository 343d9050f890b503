#pragma once

// The "training" form of a workload file: a model, a batch and a layout.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/layout/layout.hpp"
#include "flyover/layout/step_parts.hpp"

namespace flyover::io {

struct TrainingWorkload {
  std::string name;
  TrainingJob job;
  Layout layout;
  // What the file left out and the stack decided, a sentence each.
  std::vector<std::string> assumptions;
};

// Models and stacks by name, which are read once however many workloads name them: a few hundred
// at most. Not safe to share between threads.
class TrainingFiles {
 public:
  [[nodiscard]] const Model& model(const std::string& name);
  [[nodiscard]] const SoftwareStack& stack(const std::string& name);

 private:
  std::map<std::string, Model> models_;
  std::map<std::string, SoftwareStack> stacks_;
};

// Reads {"training": {...}} as docs/formats/workload.md says, for a cluster of `gpus` ("dp":
// "auto" is what they leave). What the file leaves out is the stack's default,
// the stack the default for the GPUs' architecture. Throws InputError,
// with the place, for what is missing, unknown or impossible, the layout's problems among it.
[[nodiscard]] TrainingWorkload read_training(const Document& document, std::uint32_t gpus,
                                             std::string_view architecture = {});
[[nodiscard]] TrainingWorkload read_training(const Document& document, std::uint32_t gpus,
                                             std::string_view architecture, TrainingFiles& files);
// Whether the file has that form, and no other.
[[nodiscard]] bool is_training(const Document& document);

// The precision words: "bf16", "fp16", "fp8" (per tensor), "fp8-block", "mxfp8", "nvfp4", "tf32".
[[nodiscard]] KernelType precision(const Field& field);

}  // namespace flyover::io
