// A schedule on given times: run_pipeline of schedule.hpp.

#include <algorithm>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "layout/schedule_steps.hpp"

namespace flyover {

namespace {

// One run: stages go on for as long as their inputs are there, and wake the neighbour that waits
// for what they made.
class Runner {
 public:
  Runner(const PipelineProgram& program, std::span<const ChunkTimes> times, Duration hop,
         std::span<const Duration> pairs)
      : program_(program),
        shape_(program.shape),
        times_(times),
        hop_(hop),
        pairs_(pairs),
        next_(shape_.stages),
        free_(shape_.stages),
        forward_end_(times.size() * shape_.micro_batches, unknown),
        gradient_end_(times.size() * shape_.micro_batches, unknown) {
    run_.steps.resize(shape_.stages);
    run_.busy.resize(shape_.stages);
    for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) {
      run_.steps[stage].reserve(program.stages[stage].size());
    }
  }

  PipelineRun run() && {
    for (std::uint32_t stage = shape_.stages; stage > 0; --stage) awake_.push_back(stage - 1);
    while (!awake_.empty()) {
      const std::uint32_t stage = awake_.back();
      awake_.pop_back();
      advance(stage);
    }
    refuse_deadlock();
    summarise();
    return std::move(run_);
  }

 private:
  static constexpr Time unknown = Time::max();

  [[nodiscard]] std::size_t slot(std::uint32_t chunk, std::uint32_t micro_batch) const {
    return std::size_t{chunk} * shape_.micro_batches + micro_batch;
  }

  // When what it gets from another chunk has arrived.
  [[nodiscard]] Time arrival(Time end, std::uint32_t from, std::uint32_t to,
                             std::uint32_t micro_batch) const {
    if (end == unknown ||
        stage_of(shape_, from, micro_batch) == stage_of(shape_, to, micro_batch)) {
      return end;
    }
    return time_after(end, hop_);
  }

  [[nodiscard]] Time forward_ready(std::uint32_t chunk, std::uint32_t i) const {
    return chunk == 0 ? Time{} : arrival(forward_end_[slot(chunk - 1, i)], chunk - 1, chunk, i);
  }
  [[nodiscard]] Time backward_ready(std::uint32_t chunk, std::uint32_t i) const {
    const Time own = forward_end_[slot(chunk, i)];
    if (chunk + 1 == times_.size()) return own;
    return std::max(own, arrival(gradient_end_[slot(chunk + 1, i)], chunk + 1, chunk, i));
  }
  [[nodiscard]] Time ready(std::uint32_t stage, const PipelineStep& step) const {
    const std::uint32_t chunk = model_chunk(shape_, stage, step.chunk);
    switch (step.kind) {
      case StepKind::Forward:
        return forward_ready(chunk, step.micro_batch);
      case StepKind::ForwardBackward:
        return std::max(
            forward_ready(chunk, step.micro_batch),
            backward_ready(model_chunk(shape_, stage, step.back_chunk), step.back_micro_batch));
      case StepKind::WeightGradient:
        return gradient_end_[slot(chunk, step.micro_batch)];
      case StepKind::Backward:
      case StepKind::InputGradient:
        return backward_ready(chunk, step.micro_batch);
    }
    return {};
  }

  [[nodiscard]] Duration length(std::uint32_t stage, const PipelineStep& step) const {
    const ChunkTimes& times = times_[model_chunk(shape_, stage, step.chunk)];
    switch (step.kind) {
      case StepKind::Forward:
        return times.forward;
      case StepKind::Backward:
        return times.input_gradient + times.weight_gradient;
      case StepKind::InputGradient:
        return times.input_gradient;
      case StepKind::WeightGradient:
        return times.weight_gradient;
      case StepKind::ForwardBackward: {
        if (!pairs_.empty()) return pairs_[std::size_t{2} * stage + step.chunk];
        const ChunkTimes& back = times_[model_chunk(shape_, stage, step.back_chunk)];
        return times.forward + back.input_gradient + back.weight_gradient;
      }
    }
    return {};
  }

  void advance(std::uint32_t stage) {
    const std::vector<PipelineStep>& steps = program_.stages[stage];
    for (; next_[stage] < steps.size(); ++next_[stage]) {
      const PipelineStep& step = steps[next_[stage]];
      const Time input = ready(stage, step);
      if (input == unknown) return;
      const Time start = std::max(free_[stage], input);
      const Duration span = length(stage, step);
      const Time end = time_after(start, span);
      free_[stage] = end;
      run_.busy[stage] += span;
      run_.steps[stage].push_back({start, end});
      switch (step.kind) {
        case StepKind::Forward:
          forward_done(stage, step.chunk, step.micro_batch, end);
          break;
        case StepKind::Backward:
        case StepKind::InputGradient:
          gradient_done(stage, step.chunk, step.micro_batch, end);
          break;
        case StepKind::ForwardBackward:
          forward_done(stage, step.chunk, step.micro_batch, end);
          gradient_done(stage, step.back_chunk, step.back_micro_batch, end);
          break;
        case StepKind::WeightGradient:
          break;
      }
    }
  }

  void forward_done(std::uint32_t stage, std::uint32_t own_chunk, std::uint32_t i, Time end) {
    const std::uint32_t chunk = model_chunk(shape_, stage, own_chunk);
    forward_end_[slot(chunk, i)] = end;
    if (chunk + 1 < times_.size()) wake(stage, stage_of(shape_, chunk + 1, i));
  }
  void gradient_done(std::uint32_t stage, std::uint32_t own_chunk, std::uint32_t i, Time end) {
    const std::uint32_t chunk = model_chunk(shape_, stage, own_chunk);
    gradient_end_[slot(chunk, i)] = end;
    if (chunk > 0) wake(stage, stage_of(shape_, chunk - 1, i));
  }

  void wake(std::uint32_t self, std::uint32_t stage) {
    if (stage != self && (awake_.empty() || awake_.back() != stage)) awake_.push_back(stage);
  }

  void refuse_deadlock() const {
    std::string waiting;
    for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) {
      const std::vector<PipelineStep>& steps = program_.stages[stage];
      if (next_[stage] == steps.size()) continue;
      waiting += fmt::format("\n  stage {} waits for the input of the {}", stage,
                             describe(steps[next_[stage]]));
    }
    if (!waiting.empty()) throw SimulationError("the pipeline cannot end:" + waiting);
  }

  void summarise() {
    Time first = Time::max();
    Time last{};
    for (const std::vector<PipelineRun::Span>& steps : run_.steps) {
      if (steps.empty()) continue;
      first = std::min(first, steps.front().start);
      last = std::max(last, steps.back().end);
      run_.longest_span =
          std::max(run_.longest_span, Duration{steps.back().end - steps.front().start});
    }
    if (first != Time::max()) run_.makespan = last - first;
    run_.bubble = run_.longest_span - *std::ranges::max_element(run_.busy);
  }

  const PipelineProgram& program_;
  const PipelineShape& shape_;
  std::span<const ChunkTimes> times_;
  Duration hop_;
  std::span<const Duration> pairs_;
  std::vector<std::size_t> next_;
  std::vector<Time> free_;
  std::vector<Time> forward_end_;
  std::vector<Time> gradient_end_;
  std::vector<std::uint32_t> awake_;
  PipelineRun run_;
};

}  // namespace

PipelineRun run_pipeline(const PipelineProgram& program, std::span<const ChunkTimes> times,
                         Duration hop, std::span<const Duration> pairs) {
  const PipelineShape& shape = program.shape;
  require(times.size() == model_chunks(shape), "run_pipeline: times for every chunk of the model");
  require(program.stages.size() == shape.stages, "run_pipeline: a program for every stage");
  require(pairs.empty() || pairs.size() == std::size_t{2} * shape.stages,
          "run_pipeline: two pairs' times for every stage");
  return Runner(program, times, hop, pairs).run();
}

}  // namespace flyover
