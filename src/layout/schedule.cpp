#include "flyover/layout/schedule.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "layout/schedule_steps.hpp"

namespace flyover {

namespace {

// Writes the steps of one stage; counts the micro-batches that each kind of step of each chunk has
// had, as all schedules but the interleaved take them in order.
class StepWriter {
 public:
  explicit StepWriter(const PipelineShape& shape) : micro_batches_(shape.micro_batches) {
    steps_.reserve(std::size_t{3} * shape.chunks * shape.micro_batches);
  }

  // The next micro-batch; those that do not exist are passed over.
  void forward(std::uint32_t chunk = 0) { add(StepKind::Forward, chunk, forwards_[chunk]++); }
  void backward(std::uint32_t chunk = 0) { add(StepKind::Backward, chunk, inputs_[chunk]++); }
  void input_gradient(std::uint32_t chunk = 0) {
    add(StepKind::InputGradient, chunk, inputs_[chunk]++);
  }
  void weight_gradient(std::uint32_t chunk = 0) {
    add(StepKind::WeightGradient, chunk, weights_[chunk]++);
  }
  void add(StepKind kind, std::uint32_t chunk, std::uint32_t micro_batch) {
    if (micro_batch < micro_batches_) steps_.push_back({kind, chunk, micro_batch});
  }

  [[nodiscard]] std::uint32_t forwards(std::uint32_t chunk) const { return forwards_[chunk]; }
  [[nodiscard]] std::uint32_t input_gradients(std::uint32_t chunk) const { return inputs_[chunk]; }
  [[nodiscard]] std::uint32_t weight_gradients(std::uint32_t chunk) const {
    return weights_[chunk];
  }
  [[nodiscard]] std::vector<PipelineStep> steps() && { return std::move(steps_); }

 private:
  std::uint32_t micro_batches_;
  std::array<std::uint32_t, 2> forwards_{};
  std::array<std::uint32_t, 2> inputs_{};
  std::array<std::uint32_t, 2> weights_{};
  std::vector<PipelineStep> steps_;
};

std::vector<PipelineStep> gpipe(const PipelineShape& shape) {
  StepWriter writer(shape);
  for (std::uint32_t i = 0; i < shape.micro_batches; ++i) writer.forward();
  for (std::uint32_t i = shape.micro_batches; i > 0; --i) writer.add(StepKind::Backward, 0, i - 1);
  return std::move(writer).steps();
}

std::vector<PipelineStep> one_forward_one_backward(const PipelineShape& shape,
                                                   std::uint32_t stage) {
  StepWriter writer(shape);
  for (std::uint32_t i = 0; i < shape.stages - stage; ++i) writer.forward();
  for (std::uint32_t i = 0; i < shape.micro_batches; ++i) {
    writer.backward();
    writer.forward();
  }
  return std::move(writer).steps();
}

std::vector<PipelineStep> interleaved(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint64_t total = std::uint64_t{shape.micro_batches} * shape.chunks;
  const std::uint64_t warm_up = interleaved_warm_up(shape, stage);
  InterleavedCursor forward(shape, StepKind::Forward);
  InterleavedCursor backward(shape, StepKind::Backward);
  std::vector<PipelineStep> steps;
  steps.reserve(2 * total);
  std::uint64_t forwards = 0;
  for (; forwards < warm_up; ++forwards) steps.push_back(forward.next());
  for (std::uint64_t backwards = 0; backwards < total; ++backwards) {
    if (forwards++ < total) steps.push_back(forward.next());
    steps.push_back(backward.next());
  }
  return steps;
}

std::vector<PipelineStep> zero_bubble_h1(const PipelineShape& shape, std::uint32_t stage) {
  StepWriter writer(shape);
  for (std::uint32_t i = 0; i < shape.stages - stage; ++i) writer.forward();
  for (std::uint32_t i = 0; i < shape.micro_batches; ++i) {
    writer.input_gradient();
    // Later stages put weight gradients off for as long as the first one's micro-batches stay in
    // flight; they fill the end of the pipeline.
    if (i >= stage) writer.weight_gradient();
    writer.forward();
  }
  while (writer.weight_gradients(0) < shape.micro_batches) writer.weight_gradient();
  return std::move(writer).steps();
}

std::vector<PipelineStep> zero_bubble_v(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t p = shape.stages;
  // Fewer micro-batches do not fill the V: the full schedule without those that do not exist.
  const std::uint32_t count = std::max(shape.micro_batches, 2 * p - 1);
  StepWriter writer(shape);
  const auto both = [&](std::uint32_t chunk) {
    writer.input_gradient(chunk);
    writer.weight_gradient(chunk);
  };

  // Down the V until the first micro-batch comes back up; then forwards of both legs until its
  // gradient starts down the second leg.
  for (std::uint32_t i = 0; i < 2 * (p - stage) - 1; ++i) writer.forward(0);
  for (std::uint32_t i = 0; i < stage; ++i) {
    writer.forward(1);
    writer.forward(0);
  }
  for (std::uint32_t i = 0; i < p - stage; ++i) {
    writer.forward(1);
    both(1);
  }
  // Six steps per micro-batch and no gap.
  while (writer.forwards(1) < writer.forwards(0) || writer.forwards(0) < count) {
    if (writer.forwards(0) < count) writer.forward(0);
    both(0);
    writer.forward(1);
    both(1);
  }
  // Input gradients first, as others wait for them; weight gradients fill the end.
  for (std::uint32_t i = 0; i < stage; ++i) {
    writer.input_gradient(0);
    writer.input_gradient(1);
  }
  for (std::uint32_t i = 0; i < p - stage; ++i) both(0);
  while (writer.weight_gradients(1) < writer.input_gradients(1)) writer.weight_gradient(1);
  while (writer.weight_gradients(0) < writer.input_gradients(0)) writer.weight_gradient(0);
  return std::move(writer).steps();
}

bool comes_back(const PipelineShape& shape) {
  return shape.schedule == PipelineSchedule::ZeroBubbleV ||
         shape.schedule == PipelineSchedule::DualPipeV;
}

// Counts what a stage's steps do, and tells what is wrong with that.
class StepCounts {
 public:
  StepCounts(const PipelineShape& shape, std::uint32_t stage)
      : shape_(shape),
        stage_(stage),
        per_kind_(std::size_t{shape.chunks} * shape.micro_batches),
        // A full backward does what the two kinds of gradients do, where a schedule has those.
        kinds_(
            splits_gradients(shape.schedule)
                ? std::vector{StepKind::Forward, StepKind::InputGradient, StepKind::WeightGradient}
                : std::vector{StepKind::Forward, StepKind::Backward}),
        times_(kinds_.size() * per_kind_) {}

  void add(const PipelineStep& step) {
    if (!belongs(step)) {
      found_.push_back(
          fmt::format("stage {}: {} is none of this schedule's", stage_, describe(step)));
      return;
    }
    switch (step.kind) {
      case StepKind::Backward:
        backward(step.chunk, step.micro_batch);
        break;
      case StepKind::ForwardBackward:
        count(StepKind::Forward, step.chunk, step.micro_batch);
        backward(step.back_chunk, step.back_micro_batch);
        break;
      default:
        count(step.kind, step.chunk, step.micro_batch);
    }
  }

  std::vector<std::string> problems() && {
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const std::size_t within = i % per_kind_;
      const PipelineStep step = {kinds_[i / per_kind_],
                                 static_cast<std::uint32_t>(within / shape_.micro_batches),
                                 static_cast<std::uint32_t>(within % shape_.micro_batches)};
      if (times_[i] == 1 || !is_own(step.chunk, step.micro_batch)) continue;
      found_.push_back(fmt::format("stage {}: {} is there {} times, not once", stage_,
                                   describe(step), times_[i]));
    }
    return std::move(found_);
  }

 private:
  // Whether micro-batches of this number pass through the chunk.
  [[nodiscard]] bool is_own(std::uint32_t chunk, std::uint32_t micro_batch) const {
    return chunk < shape_.chunks && micro_batch < shape_.micro_batches &&
           (streams(shape_) == 1 || micro_batch % 2 == chunk);
  }
  [[nodiscard]] bool belongs(const PipelineStep& step) const {
    const bool known =
        has_fused_steps(shape_.schedule) || std::ranges::find(kinds_, step.kind) != kinds_.end();
    return known && is_own(step.chunk, step.micro_batch) &&
           (step.kind != StepKind::ForwardBackward ||
            is_own(step.back_chunk, step.back_micro_batch));
  }
  void count(StepKind kind, std::uint32_t chunk, std::uint32_t micro_batch) {
    const auto place = std::ranges::find(kinds_, kind) - kinds_.begin();
    ++times_[static_cast<std::size_t>(place) * per_kind_ +
             std::size_t{chunk} * shape_.micro_batches + micro_batch];
  }
  void backward(std::uint32_t chunk, std::uint32_t micro_batch) {
    for (const StepKind kind : kinds_) {
      if (kind != StepKind::Forward) count(kind, chunk, micro_batch);
    }
  }

  const PipelineShape& shape_;
  std::uint32_t stage_;
  std::size_t per_kind_;
  std::vector<StepKind> kinds_;
  std::vector<std::uint32_t> times_;
  std::vector<std::string> found_;
};

}  // namespace

std::string describe(const PipelineStep& step) {
  const StepKind kind = step.kind == StepKind::ForwardBackward ? StepKind::Forward : step.kind;
  std::string text = fmt::format("{} of micro-batch {} in chunk {}", to_string(kind),
                                 step.micro_batch, step.chunk);
  if (step.kind == StepKind::ForwardBackward) {
    text += fmt::format(" with backward of micro-batch {} in chunk {}", step.back_micro_batch,
                        step.back_chunk);
  }
  return text;
}

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::Forward:
      return "forward";
    case StepKind::Backward:
      return "backward";
    case StepKind::InputGradient:
      return "input gradient";
    case StepKind::WeightGradient:
      return "weight gradient";
    case StepKind::ForwardBackward:
      return "forward and backward";
  }
  return "";
}

PipelineShape pipeline_shape(const Layout& layout) {
  return {
      .schedule = layout.schedule,
      .stages = layout.pipeline,
      .chunks = goes_both_ways(layout.schedule) ? 2 : layout.virtual_stages,
      .micro_batches = micro_batches(layout),
      .group = layout.micro_batch_group,
  };
}

std::uint32_t streams(const PipelineShape& shape) {
  return goes_both_ways(shape.schedule) ? 2 : 1;
}

std::uint32_t model_chunks(const PipelineShape& shape) {
  return shape.stages * shape.chunks / streams(shape);
}

std::uint32_t model_chunk(const PipelineShape& shape, std::uint32_t stage, std::uint32_t chunk) {
  if (streams(shape) > 1) return chunk == 0 ? stage : shape.stages - 1 - stage;
  if (comes_back(shape) && chunk == 1) return 2 * shape.stages - 1 - stage;
  return chunk * shape.stages + stage;
}

std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t model_chunk,
                       std::uint32_t micro_batch) {
  if (micro_batch % streams(shape) != 0) return shape.stages - 1 - model_chunk;
  if (comes_back(shape) && model_chunk >= shape.stages) return 2 * shape.stages - 1 - model_chunk;
  return model_chunk % shape.stages;
}

std::vector<PipelineStep> stage_steps(const PipelineShape& shape, std::uint32_t stage) {
  require(stage < shape.stages, "stage_steps: a stage of the pipeline");
  const std::uint32_t chunks = comes_back(shape) || streams(shape) > 1 ? 2 : 1;
  require(shape.schedule == PipelineSchedule::Interleaved || shape.chunks == chunks,
          "stage_steps: as many chunks as the schedule has");
  switch (shape.schedule) {
    case PipelineSchedule::GPipe:
      return gpipe(shape);
    case PipelineSchedule::OneForwardOneBackward:
      return one_forward_one_backward(shape, stage);
    case PipelineSchedule::Interleaved:
      return interleaved(shape, stage);
    case PipelineSchedule::ZeroBubbleH1:
      return zero_bubble_h1(shape, stage);
    case PipelineSchedule::ZeroBubbleV:
      return zero_bubble_v(shape, stage);
    case PipelineSchedule::DualPipe:
    case PipelineSchedule::DualPipeV:
      return dual_pipe(shape, stage);
  }
  return {};
}

PipelineProgram pipeline_program(const PipelineShape& shape) {
  PipelineProgram program{shape, {}};
  program.stages.reserve(shape.stages);
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    program.stages.push_back(stage_steps(shape, stage));
  }
  return program;
}

PipelineProgram without_fused_steps(PipelineProgram program) {
  for (std::vector<PipelineStep>& steps : program.stages) {
    std::vector<PipelineStep> apart;
    apart.reserve(steps.size());
    for (const PipelineStep& step : steps) {
      if (step.kind != StepKind::ForwardBackward) {
        apart.push_back(step);
        continue;
      }
      apart.push_back({StepKind::Forward, step.chunk, step.micro_batch});
      apart.push_back({StepKind::Backward, step.back_chunk, step.back_micro_batch});
    }
    steps = std::move(apart);
  }
  return program;
}

std::vector<std::string> problems(const PipelineProgram& program) {
  const PipelineShape& shape = program.shape;
  if (program.stages.size() != shape.stages) {
    return {
        fmt::format("there are steps for {} stages, not {}", program.stages.size(), shape.stages)};
  }
  std::vector<std::string> found;
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    StepCounts counts(shape, stage);
    for (const PipelineStep& step : program.stages[stage]) counts.add(step);
    for (std::string& problem : std::move(counts).problems()) found.push_back(std::move(problem));
  }
  return found;
}

}  // namespace flyover
