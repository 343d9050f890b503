#pragma once

#include <cstdint>

#include "flyover/layout/layout.hpp"

namespace flyover::test {

// Llama-3.1 405B on 128 x `data` GPUs: TP8, PP16 with 8 chunks a stage, 16 micro-batches. 126
// layers: the first and the last chunk have the embedding and the head instead.
inline Layout pipelined_405b(std::uint32_t data) {
  Layout layout;
  layout.tensor = 8;
  layout.sequence_parallel = true;
  layout.pipeline = 16;
  layout.virtual_stages = 8;
  layout.schedule = PipelineSchedule::Interleaved;
  layout.data = data;
  layout.global_batch = data * 16;
  layout.chunk_layers.assign(128, 1);
  layout.chunk_layers.front() = layout.chunk_layers.back() = 0;
  return layout;
}

}  // namespace flyover::test
