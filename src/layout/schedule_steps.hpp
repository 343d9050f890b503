#pragma once

// What the files that make, fold, run and measure pipeline schedules share.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "flyover/layout/schedule.hpp"

namespace flyover {

// "forward of micro-batch 3 in chunk 0"
[[nodiscard]] std::string describe(const PipelineStep& step);

// Of both dualpipes. Requires what stage_steps does.
[[nodiscard]] std::vector<PipelineStep> dual_pipe(const PipelineShape& shape, std::uint32_t stage);

// Micro-batches that an interleaved schedule sends through a chunk before the next.
inline std::uint32_t group_of(const PipelineShape& shape) {
  return shape.group == 0 ? shape.stages : shape.group;
}

// Forwards of an interleaved schedule before its first backward.
inline std::uint64_t interleaved_warm_up(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint64_t total = std::uint64_t{shape.micro_batches} * shape.chunks;
  return std::min(total, std::uint64_t{2} * (shape.stages - stage - 1) +
                             (shape.chunks - std::uint64_t{1}) * group_of(shape));
}

// Goes through the chunks and micro-batches of an interleaved schedule in the order of their
// forwards; backwards go the same way with the chunks reversed.
class InterleavedCursor {
 public:
  InterleavedCursor(const PipelineShape& shape, StepKind kind)
      : kind_(kind),
        chunks_(shape.chunks),
        micro_batches_(shape.micro_batches),
        group_(group_of(shape)),
        size_(std::min(group_, micro_batches_)) {}

  PipelineStep next() {
    const PipelineStep step = {kind_, kind_ == StepKind::Forward ? chunk_ : chunks_ - 1 - chunk_,
                               first_ + within_};
    if (++within_ == size_) {
      within_ = 0;
      if (++chunk_ == chunks_) {
        chunk_ = 0;
        first_ += size_;
        // The last group may be a smaller one.
        size_ = std::min(group_, micro_batches_ - first_);
      }
    }
    return step;
  }

 private:
  StepKind kind_;
  std::uint32_t chunks_;
  std::uint32_t micro_batches_;
  std::uint32_t group_;
  std::uint32_t size_;
  std::uint32_t first_ = 0;
  std::uint32_t chunk_ = 0;
  std::uint32_t within_ = 0;
};

}  // namespace flyover
