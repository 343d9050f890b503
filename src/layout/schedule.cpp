#include "flyover/layout/schedule.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

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

std::uint32_t group_of(const PipelineShape& shape) {
  return shape.group == 0 ? shape.stages : shape.group;
}

// Forwards of an interleaved schedule before its first backward.
std::uint64_t interleaved_warm_up(const PipelineShape& shape, std::uint32_t stage) {
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
  return shape.schedule == PipelineSchedule::ZeroBubbleV;
}

bool splits_gradients(const PipelineShape& shape) {
  return shape.schedule == PipelineSchedule::ZeroBubbleH1 ||
         shape.schedule == PipelineSchedule::ZeroBubbleV;
}

bool apart(const PipelineStep& before, const PipelineStep& after, std::int64_t micro_batches) {
  return before.kind == after.kind && before.chunk == after.chunk &&
         std::int64_t{before.micro_batch} + micro_batches == std::int64_t{after.micro_batch};
}

// The longest part in which steps a period apart are alike, from the first one that begins so.
std::optional<StepRepeat> find_repeat(const std::vector<PipelineStep>& steps, std::size_t from,
                                      std::size_t period, std::int64_t micro_batches) {
  std::optional<StepRepeat> longest;
  for (std::size_t i = from; i + period < steps.size();) {
    std::size_t j = i;
    while (j + period < steps.size() && apart(steps[j], steps[j + period], micro_batches)) ++j;
    if (j > i && (!longest || j + period - i > longest->end - longest->begin)) {
      longest = StepRepeat{i, j + period, period};
    }
    i = std::max(j, i + 1);
  }
  return longest;
}

// Whether `longer` is `steps` with one more period in each repeat.
bool one_period_more(const std::vector<PipelineStep>& steps, const std::vector<StepRepeat>& repeats,
                     const std::vector<std::int64_t>& apart_by,
                     const std::vector<PipelineStep>& longer) {
  std::vector<PipelineStep> made;
  std::int64_t moved = 0;
  std::size_t next = 0;
  const auto put = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      PipelineStep step = steps[i];
      step.micro_batch = static_cast<std::uint32_t>(step.micro_batch + moved);
      made.push_back(step);
    }
  };
  for (std::size_t r = 0; r < repeats.size(); ++r) {
    put(next, repeats[r].begin + repeats[r].period);
    moved += apart_by[r];
    next = repeats[r].begin;
  }
  put(next, steps.size());
  return made == longer;
}

// The repeats of a stage when `period` micro-batches more are one period more: either one part of
// the program grows, or one with ascending and one with descending micro-batches do.
std::vector<StepRepeat> repeats_of(const PipelineShape& shape, std::uint32_t stage,
                                   std::uint32_t period) {
  PipelineShape more = shape;
  more.micro_batches += period;
  const std::vector<PipelineStep> steps = stage_steps(shape, stage);
  const std::vector<PipelineStep> longer = stage_steps(more, stage);
  const std::size_t grown = longer.size() - steps.size();
  const std::int64_t up = period;
  if (const auto one = find_repeat(steps, 0, grown, up)) {
    if (one_period_more(steps, {*one}, {up}, longer)) return {*one};
  }
  if (grown % 2 != 0) return {};
  const auto ascending = find_repeat(steps, 0, grown / 2, up);
  if (!ascending) return {};
  const auto descending = find_repeat(steps, ascending->end, grown / 2, -up);
  if (!descending) return {};
  const std::vector<StepRepeat> both{*ascending, *descending};
  return one_period_more(steps, both, {up, -up}, longer) ? both : std::vector<StepRepeat>{};
}

// What a repeat has to have: two periods to compare, and room until all stages are in their steady
// state together; that is dear where a period is a group of micro-batches in all chunks. Two steps
// may turn out to be special (the first and the last of a chunk).
bool enough(const std::vector<StepRepeat>& repeats, std::uint32_t micro_batches) {
  const double periods = micro_batches == 1 ? 4 : 2.75;
  return std::ranges::all_of(repeats, [&](const StepRepeat& repeat) {
    return static_cast<double>(repeat.end - repeat.begin) >=
           periods * static_cast<double>(repeat.period) + 2;
  });
}

std::string describe(const PipelineStep& step) {
  return fmt::format("{} of micro-batch {} in chunk {}", to_string(step.kind), step.micro_batch,
                     step.chunk);
}

// One run: stages go on for as long as their inputs are there, and wake the neighbour that waits
// for what they made.
class Runner {
 public:
  Runner(const PipelineProgram& program, std::span<const ChunkTimes> times, Duration hop)
      : program_(program),
        shape_(program.shape),
        times_(times),
        hop_(hop),
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
  [[nodiscard]] Time arrival(Time end, std::uint32_t from, std::uint32_t to) const {
    if (end == unknown || stage_of(shape_, from) == stage_of(shape_, to)) return end;
    return time_after(end, hop_);
  }

  [[nodiscard]] Time ready(std::uint32_t stage, const PipelineStep& step) const {
    const std::uint32_t chunk = model_chunk(shape_, stage, step.chunk);
    const std::uint32_t i = step.micro_batch;
    if (step.kind == StepKind::Forward) {
      return chunk == 0 ? Time{} : arrival(forward_end_[slot(chunk - 1, i)], chunk - 1, chunk);
    }
    if (step.kind == StepKind::WeightGradient) return gradient_end_[slot(chunk, i)];
    const Time own = forward_end_[slot(chunk, i)];
    if (chunk + 1 == times_.size()) return own;
    return std::max(own, arrival(gradient_end_[slot(chunk + 1, i)], chunk + 1, chunk));
  }

  [[nodiscard]] Duration length(std::uint32_t chunk, StepKind kind) const {
    const ChunkTimes& times = times_[chunk];
    switch (kind) {
      case StepKind::Forward:
        return times.forward;
      case StepKind::Backward:
        return times.input_gradient + times.weight_gradient;
      case StepKind::InputGradient:
        return times.input_gradient;
      case StepKind::WeightGradient:
        return times.weight_gradient;
    }
    return {};
  }

  void advance(std::uint32_t stage) {
    const std::vector<PipelineStep>& steps = program_.stages[stage];
    for (; next_[stage] < steps.size(); ++next_[stage]) {
      const PipelineStep& step = steps[next_[stage]];
      const Time input = ready(stage, step);
      if (input == unknown) return;
      const std::uint32_t chunk = model_chunk(shape_, stage, step.chunk);
      const Time start = std::max(free_[stage], input);
      const Duration span = length(chunk, step.kind);
      const Time end = time_after(start, span);
      free_[stage] = end;
      run_.busy[stage] += span;
      run_.steps[stage].push_back({start, end});
      if (step.kind == StepKind::Forward) {
        forward_end_[slot(chunk, step.micro_batch)] = end;
        if (chunk + 1 < times_.size()) wake(stage, stage_of(shape_, chunk + 1));
      } else if (step.kind != StepKind::WeightGradient) {
        gradient_end_[slot(chunk, step.micro_batch)] = end;
        if (chunk > 0) wake(stage, stage_of(shape_, chunk - 1));
      }
    }
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
  std::vector<std::size_t> next_;
  std::vector<Time> free_;
  std::vector<Time> forward_end_;
  std::vector<Time> gradient_end_;
  std::vector<std::uint32_t> awake_;
  PipelineRun run_;
};

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

}  // namespace

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
  }
  return "";
}

PipelineShape pipeline_shape(const Layout& layout) {
  return {
      .schedule = layout.schedule,
      .stages = layout.pipeline,
      .chunks = layout.virtual_stages,
      .micro_batches = micro_batches(layout),
      .group = layout.micro_batch_group,
  };
}

std::uint32_t model_chunk(const PipelineShape& shape, std::uint32_t stage, std::uint32_t chunk) {
  if (comes_back(shape) && chunk == 1) return 2 * shape.stages - 1 - stage;
  return chunk * shape.stages + stage;
}

std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t model_chunk) {
  if (comes_back(shape) && model_chunk >= shape.stages) return 2 * shape.stages - 1 - model_chunk;
  return model_chunk % shape.stages;
}

std::vector<PipelineStep> stage_steps(const PipelineShape& shape, std::uint32_t stage) {
  require(stage < shape.stages, "stage_steps: a stage of the pipeline");
  const std::uint32_t chunks = comes_back(shape) ? 2 : 1;
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

FoldedPipeline folded_pipeline(const PipelineShape& shape) {
  const std::uint32_t period =
      shape.schedule == PipelineSchedule::Interleaved ? group_of(shape) : 1;
  FoldedPipeline folded{shape, 0, period, {}};
  PipelineShape& few = folded.shape;
  // Steady is what some times as many micro-batches as the pipeline holds show, or nothing.
  const std::uint32_t most = std::min(shape.micro_batches, 8 * (shape.stages + period));
  for (few.micro_batches = shape.micro_batches % period + period; few.micro_batches < most;
       few.micro_batches += period) {
    folded.repeats.clear();
    bool found = true;
    for (std::uint32_t stage = 0; found && stage < shape.stages; ++stage) {
      folded.repeats.push_back(repeats_of(few, stage, period));
      const std::vector<StepRepeat>& own = folded.repeats.back();
      found = !own.empty() && own.size() == folded.repeats.front().size() && enough(own, period);
    }
    if (!found) continue;
    folded.elided = (shape.micro_batches - few.micro_batches) / period;
    return folded;
  }
  few.micro_batches = shape.micro_batches;
  folded.repeats.assign(shape.stages, {});
  return folded;
}

std::vector<std::string> problems(const PipelineProgram& program) {
  const PipelineShape& shape = program.shape;
  if (program.stages.size() != shape.stages) {
    return {
        fmt::format("there are steps for {} stages, not {}", program.stages.size(), shape.stages)};
  }
  std::vector<std::string> found;
  const std::vector<StepKind> kinds =
      splits_gradients(shape)
          ? std::vector{StepKind::Forward, StepKind::InputGradient, StepKind::WeightGradient}
          : std::vector{StepKind::Forward, StepKind::Backward};
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    const std::size_t per_kind = std::size_t{shape.chunks} * shape.micro_batches;
    std::vector<std::uint32_t> times(kinds.size() * per_kind);
    for (const PipelineStep& step : program.stages[stage]) {
      const auto kind = std::ranges::find(kinds, step.kind);
      if (kind == kinds.end() || step.chunk >= shape.chunks ||
          step.micro_batch >= shape.micro_batches) {
        found.push_back(
            fmt::format("stage {}: {} is none of this schedule's", stage, describe(step)));
        continue;
      }
      ++times[static_cast<std::size_t>(kind - kinds.begin()) * per_kind +
              std::size_t{step.chunk} * shape.micro_batches + step.micro_batch];
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] == 1) continue;
      const std::size_t within = i % per_kind;
      const PipelineStep step = {kinds[i / per_kind],
                                 static_cast<std::uint32_t>(within / shape.micro_batches),
                                 static_cast<std::uint32_t>(within % shape.micro_batches)};
      found.push_back(
          fmt::format("stage {}: {} is there {} times, not once", stage, describe(step), times[i]));
    }
  }
  return found;
}

double peak_in_flight(std::span<const PipelineStep> steps, std::span<const double> weights) {
  double now = 0;
  double peak = 0;
  for (const PipelineStep& step : steps) {
    require(step.chunk < weights.size(), "peak_in_flight: a weight for every chunk");
    const double weight = weights[step.chunk];
    if (step.kind == StepKind::Forward) {
      now += weight;
      peak = std::max(peak, now);
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
  }
  return 0;
}

PipelineRun run_pipeline(const PipelineProgram& program, std::span<const ChunkTimes> times,
                         Duration hop) {
  const PipelineShape& shape = program.shape;
  require(times.size() == std::size_t{shape.stages} * shape.chunks,
          "run_pipeline: times for every chunk of the model");
  require(program.stages.size() == shape.stages, "run_pipeline: a program for every stage");
  return Runner(program, times, hop).run();
}

}  // namespace flyover
