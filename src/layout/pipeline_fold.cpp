// The steady part of a schedule cut short: folded_pipeline of schedule.hpp.

#include <algorithm>
#include <optional>

#include "layout/schedule_steps.hpp"

namespace flyover {

namespace {

bool apart(const PipelineStep& before, const PipelineStep& after, std::int64_t micro_batches) {
  const bool fused = before.kind == StepKind::ForwardBackward;
  return before.kind == after.kind && before.chunk == after.chunk &&
         before.back_chunk == after.back_chunk &&
         std::int64_t{before.micro_batch} + micro_batches == std::int64_t{after.micro_batch} &&
         std::int64_t{before.back_micro_batch} + (fused ? micro_batches : 0) ==
             std::int64_t{after.back_micro_batch};
}

PipelineStep moved_on(PipelineStep step, std::int64_t micro_batches) {
  step.micro_batch = static_cast<std::uint32_t>(step.micro_batch + micro_batches);
  if (step.kind == StepKind::ForwardBackward) {
    step.back_micro_batch = static_cast<std::uint32_t>(step.back_micro_batch + micro_batches);
  }
  return step;
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
      made.push_back(moved_on(steps[i], moved));
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

// The fewest micro-batches that a schedule has a program for.
std::uint32_t fewest(const PipelineShape& shape) {
  return has_fused_steps(shape.schedule) ? 2 * shape.stages : 0;
}

}  // namespace

FoldedPipeline folded_pipeline(const PipelineShape& shape) {
  const std::uint32_t period =
      shape.schedule == PipelineSchedule::Interleaved ? group_of(shape) : streams(shape);
  FoldedPipeline folded{shape, 0, period, {}};
  PipelineShape& few = folded.shape;
  // Steady is what some times as many micro-batches as the pipeline holds show, or nothing.
  const std::uint32_t most = std::min(shape.micro_batches, 8 * (shape.stages + period));
  few.micro_batches = shape.micro_batches % period + period;
  while (few.micro_batches < fewest(shape)) few.micro_batches += period;
  for (; few.micro_batches < most; few.micro_batches += period) {
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

}  // namespace flyover
