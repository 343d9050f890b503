// What stages hold at most: peak_in_flight of schedule.hpp.

#include <algorithm>
#include <functional>

#include "flyover/base/error.hpp"
#include "layout/schedule_steps.hpp"

namespace flyover {

namespace {

// What stage_steps would hold at most, forward by forward, without making the steps.
double interleaved_peak(const PipelineShape& shape, std::uint32_t stage,
                        std::span<const double> weights) {
  // Full after two groups at most; a third, and what the last lacks, show every mixture of chunks.
  PipelineShape enough = shape;
  const std::uint64_t group = group_of(shape);
  enough.micro_batches = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(shape.micro_batches, 3 * group + shape.micro_batches % group));
  const std::uint64_t total = std::uint64_t{enough.micro_batches} * enough.chunks;
  const std::uint64_t warm_up = interleaved_warm_up(enough, stage);
  InterleavedCursor forward(enough, StepKind::Forward);
  InterleavedCursor backward(enough, StepKind::Backward);
  double now = 0;
  for (std::uint64_t i = 0; i < warm_up; ++i) now += weights[forward.next().chunk];
  double peak = now;
  for (std::uint64_t i = warm_up; i < total; ++i) {
    now += weights[forward.next().chunk];
    peak = std::max(peak, now);
    now -= weights[backward.next().chunk];
  }
  return peak;
}

// The V is fullest when the first micro-batch that came back up is about to leave, or when the
// next one starts down: with enough micro-batches 2p - i - 1 and i + 1 chunks, or 2p - i and i.
double zero_bubble_v_peak(const PipelineShape& shape, std::uint32_t stage,
                          std::span<const double> weights) {
  const std::uint32_t p = shape.stages;
  const std::uint32_t m = shape.micro_batches;
  const auto held = [&](std::uint32_t down, std::uint32_t up) {
    return std::min(m, down) * weights[0] + up * weights[1];
  };
  return std::max(held(2 * p - stage - 1, std::min(m, stage + 1)),
                  held(2 * p - stage, std::min(m, p) - std::min(m, p - stage)));
}

// The fill and the drain, and a few steady pairs between them, which repeat.
double dual_pipe_peak(const PipelineShape& shape, std::uint32_t stage,
                      std::span<const double> weights) {
  PipelineShape enough = shape;
  enough.micro_batches = std::min(shape.micro_batches, 2 * shape.stages + 2 * streams(shape));
  return peak_in_flight(dual_pipe(enough, stage), weights);
}

}  // namespace

double peak_in_flight(std::span<const PipelineStep> steps, std::span<const double> weights) {
  double now = 0;
  double peak = 0;
  for (const PipelineStep& step : steps) {
    require(step.chunk < weights.size(), "peak_in_flight: a weight for every chunk");
    const double weight = weights[step.chunk];
    if (step.kind == StepKind::Forward || step.kind == StepKind::ForwardBackward) {
      now += weight;
      peak = std::max(peak, now);
      if (step.kind == StepKind::ForwardBackward) now -= weights[step.back_chunk];
    } else if (step.kind != StepKind::InputGradient) {
      now -= weight;
    }
  }
  return peak;
}

double peak_in_flight(const PipelineShape& shape, std::uint32_t stage,
                      std::span<const double> weights) {
  require(weights.size() == shape.chunks, "peak_in_flight: a weight for every chunk");
  const std::uint32_t m = shape.micro_batches;
  switch (shape.schedule) {
    case PipelineSchedule::GPipe:
      return m * weights[0];
    case PipelineSchedule::OneForwardOneBackward:
      return std::min(m, shape.stages - stage) * weights[0];
    case PipelineSchedule::ZeroBubbleH1:
      return std::min(m, shape.stages) * weights[0];
    case PipelineSchedule::Interleaved:
      if (std::ranges::adjacent_find(weights, std::ranges::not_equal_to()) == weights.end()) {
        const std::uint64_t total = std::uint64_t{m} * shape.chunks;
        return static_cast<double>(std::min(total, interleaved_warm_up(shape, stage) + 1)) *
               weights[0];
      }
      return interleaved_peak(shape, stage, weights);
    case PipelineSchedule::ZeroBubbleV:
      return zero_bubble_v_peak(shape, stage, weights);
    case PipelineSchedule::DualPipe:
    case PipelineSchedule::DualPipeV:
      return dual_pipe_peak(shape, stage, weights);
  }
  return 0;
}

}  // namespace flyover
