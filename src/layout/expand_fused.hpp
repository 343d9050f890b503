#pragma once

// Writes a fused step down: a chunk of one micro-batch forward and one of another backward, on the
// streams of kernels and of expert messages.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "layout/expand_passes.hpp"
#include "layout/expand_units.hpp"
#include "layout/program_writer.hpp"

namespace flyover {

struct FusedStep {
  const StageChunk* forward = nullptr;
  std::uint32_t forward_micro_batch = 0;
  const StageChunk* backward = nullptr;
  std::uint32_t backward_micro_batch = 0;
  // Called when what follows may leave for other stages.
  std::function<void()> forward_done;
  std::function<void()> backward_done;
};

// Kernels of a pair of layers lose to its messages the SMs that those hold, or, where it
// `contends`, the stack's contention, and wait for the host code of both.
void write_fused(ProgramWriter& writer, Passes& passes, const FusedStep& step,
                 std::uint32_t held_sms, bool contends);

}  // namespace flyover
