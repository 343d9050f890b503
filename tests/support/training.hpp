#pragma once

#include <memory>
#include <utility>

#include "flyover/io/kernel_reader.hpp"
#include "flyover/layout/expand.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_parts.hpp"
#include "support/cluster.hpp"
#include "support/clusters.hpp"

namespace flyover::test {

// A model whose sizes 2 and 3 divide.
inline Model small_model(std::uint32_t layers = 8) {
  Model model;
  model.name = "small";
  model.layers = layers;
  model.hidden = 384;
  model.attention.heads = 12;
  model.attention.kv_heads = 6;
  model.attention.head_dim = 32;
  model.ffn_hidden = 768;
  model.vocabulary = 4608;
  return model;
}

inline Model small_expert_model(std::uint32_t layers = 8) {
  Model model = small_model(layers);
  model.ffn_hidden = 0;
  model.experts = Experts{};
  model.experts->count = 6;
  model.experts->chosen = 2;
  model.experts->hidden = 96;
  return model;
}

inline constexpr std::uint32_t small_sequence = 384;

// A stack that adds nothing: no slow-down, no host code, no contention.
inline SoftwareStack plain_stack() {
  SoftwareStack stack;
  stack.name = "plain";
  stack.slowdowns = {{{}, 1, 1, 1, 1}};
  stack.message_slowdown.fill(1);
  return stack;
}

inline TrainingJob small_job(Model model) {
  TrainingJob job;
  job.model = std::move(model);
  job.sequence = small_sequence;
  job.stack = plain_stack();
  return job;
}

inline StepParts parts_of(TrainingJob job, const GpuModel& gpu = plain_gpu()) {
  return {std::move(job), io::read_kernels(io::kernel_document("2025")), gpu, 8};
}

// `micro_batches` for each pipeline.
inline Layout with_batch(Layout layout, std::uint32_t micro_batches) {
  layout.global_batch = layout.data * layout.micro_batch * micro_batches;
  return layout;
}

}  // namespace flyover::test
