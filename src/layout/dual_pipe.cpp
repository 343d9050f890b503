#include <array>

#include "flyover/base/error.hpp"
#include "layout/schedule_steps.hpp"

namespace flyover {

namespace {

// Steps by phase: the way that starts at this half's end of the pipeline (0), and the other one.
// Micro-batches of a way come in order; weight gradients in that of their input gradients.
class DualWriter {
 public:
  DualWriter(const PipelineShape& shape, bool second_half)
      : ways_(streams(shape)),
        turned_(ways_ > 1 && second_half) {}

  void forward(std::uint32_t phase) {
    const std::uint32_t chunk = chunk_of(phase);
    steps_.push_back({StepKind::Forward, chunk, next(forwards_, chunk)});
  }
  void backward(std::uint32_t phase) {
    const std::uint32_t chunk = chunk_of(phase);
    steps_.push_back({StepKind::Backward, chunk, next(backwards_, chunk)});
  }
  void input_gradient(std::uint32_t phase) {
    const std::uint32_t chunk = chunk_of(phase);
    steps_.push_back({StepKind::InputGradient, chunk, next(backwards_, chunk)});
    owed_.push_back({StepKind::WeightGradient, chunk, steps_.back().micro_batch});
  }
  void weight_gradient() { steps_.push_back(owed_.at(paid_++)); }
  void both(std::uint32_t forward_phase, std::uint32_t backward_phase) {
    const std::uint32_t chunk = chunk_of(forward_phase);
    const std::uint32_t back = chunk_of(backward_phase);
    steps_.push_back(
        {StepKind::ForwardBackward, chunk, next(forwards_, chunk), back, next(backwards_, back)});
  }
  [[nodiscard]] std::vector<PipelineStep> steps() && { return std::move(steps_); }

 private:
  [[nodiscard]] std::uint32_t chunk_of(std::uint32_t phase) const {
    return turned_ ? 1 - phase : phase;
  }
  // The two ways share the numbers out: even ones and odd ones.
  std::uint32_t next(std::array<std::uint32_t, 2>& counts, std::uint32_t chunk) const {
    const std::uint32_t count = counts[chunk]++;
    return ways_ > 1 ? 2 * count + chunk : count;
  }

  std::uint32_t ways_;
  bool turned_;
  std::array<std::uint32_t, 2> forwards_{};
  std::array<std::uint32_t, 2> backwards_{};
  std::vector<PipelineStep> owed_;
  std::size_t paid_ = 0;
  std::vector<PipelineStep> steps_;
};

}  // namespace

// The eight parts of dualpipe.py and dualpipev.py, github.com/deepseek-ai/DualPipe.
std::vector<PipelineStep> dual_pipe(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t p = shape.stages;
  const std::uint32_t m = shape.micro_batches;
  const bool both_ways = streams(shape) > 1;
  require(m >= 2 * p && (!both_ways || (p % 2 == 0 && m % 2 == 0)),
          "dual_pipe: micro-batches that fill the pipeline, in pairs where it has two ends");
  // From the nearer end, and to where the ways meet: the middle of the pipeline, or the turn.
  const bool second_half = both_ways && stage >= p / 2;
  const std::uint32_t near = second_half ? p - 1 - stage : stage;
  const std::uint32_t far = (both_ways ? p / 2 : p) - 1 - near;
  const std::uint32_t steady = (both_ways ? m / 2 + near + 1 - p : m + near + 1 - 2 * p);

  DualWriter writer(shape, second_half);
  for (std::uint32_t i = 0; i < 2 * far; ++i) writer.forward(0);
  for (std::uint32_t i = 0; i <= near; ++i) {
    writer.forward(0);
    writer.forward(1);
  }
  for (std::uint32_t i = 0; i < far; ++i) {
    writer.input_gradient(1);
    writer.weight_gradient();
    writer.forward(1);
  }
  for (std::uint32_t i = 0; i < steady; ++i) {
    if (i == 0 && far == 0) {
      // Where the ways meet the first two come one after the other, which makes the bubble smaller.
      writer.forward(0);
      writer.backward(1);
    } else {
      writer.both(0, 1);
    }
    writer.both(1, 0);
  }
  for (std::uint32_t i = 0; i < far; ++i) {
    writer.backward(1);
    writer.both(1, 0);
  }
  // From the middle of this part on input gradients alone, which others wait for.
  for (std::uint32_t i = 0; i < 2 * (near + 1); ++i) {
    const std::uint32_t phase = 1 - i % 2;
    if (i > near) {
      writer.input_gradient(phase);
    } else {
      writer.backward(phase);
    }
  }
  for (std::uint32_t i = 0; i < far; ++i) {
    writer.weight_gradient();
    writer.input_gradient(0);
  }
  for (std::uint32_t i = 0; i <= near; ++i) writer.weight_gradient();
  return std::move(writer).steps();
}

}  // namespace flyover
