#pragma once

// Pipeline schedules as data: what each stage does, in which order. A program knows no times; a run
// of it on given times tells what depends on them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/layout/layout.hpp"

namespace flyover {

enum class StepKind : std::uint8_t {
  Forward,
  Backward,        // Both gradients at once, or apart:
  InputGradient,   // for the stage before,
  WeightGradient,  // and for the optimizer, whenever there is time.
  // A forward of one micro-batch and a Backward of another, each one's messages beside the other's
  // kernels (fused_chunk.hpp).
  ForwardBackward
};
[[nodiscard]] std::string_view to_string(StepKind kind);

struct PipelineStep {
  StepKind kind = StepKind::Forward;
  std::uint32_t chunk = 0;  // Of this stage, 0 .. chunks - 1.
  std::uint32_t micro_batch = 0;
  // Of a ForwardBackward: what goes backward; the two above go forward.
  std::uint32_t back_chunk = 0;
  std::uint32_t back_micro_batch = 0;
  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

// The shape of a pipeline: what its schedule depends on.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  std::uint32_t stages = 1;         // p
  std::uint32_t chunks = 1;         // v, per stage; 2 of dualpipe.
  std::uint32_t micro_batches = 1;  // m
  std::uint32_t group = 0;          // Of an interleaved schedule; 0: p.
};
[[nodiscard]] PipelineShape pipeline_shape(const Layout& layout);

// Ways that micro-batches take through the pipeline: 1; of dualpipe 2, from stage 0 up those with
// even numbers, from stage p - 1 down the others.
[[nodiscard]] std::uint32_t streams(const PipelineShape& shape);
// Chunks that the model is cut into: p v, and p of dualpipe.
[[nodiscard]] std::uint32_t model_chunks(const PipelineShape& shape);

// Which of the model's chunks, in its order, is this one of the stage, and the other way round for
// a micro-batch. Chunks go round the stages, but for zb-v and dualpipe-v, which come back the way
// they went (stage 0 has the first and the last), and dualpipe, whose stage i has chunk i for
// micro-batches with even numbers and chunk p - 1 - i for the others.
[[nodiscard]] std::uint32_t model_chunk(const PipelineShape& shape, std::uint32_t stage,
                                        std::uint32_t chunk);
[[nodiscard]] std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t model_chunk,
                                     std::uint32_t micro_batch = 0);

// The steps of one stage in order; every step starts when the one before has ended and its input is
// there. Any number of micro-batches has a program, also fewer than there are stages:
//
//   gpipe             all forward, then all backward, last first (a stack)
//   1f1b              p - i forwards on stage i, then one backward and one forward in turn
//                     (PipeDream-flush; Narayanan et al. 2021, 2.2.1)
//   interleaved-1f1b  2 (p - i - 1) + (v - 1) group forwards first; chunks take turns after each
//                     group of micro-batches (Narayanan et al. 2021, 2.2.2, as in Megatron-Core,
//                     whose rules about the last group `problems` of a layout states; they are
//                     required)
//   zb-h1             1f1b whose weight gradients wait for i more backwards on stage i (Qi et al.
//                     2023, 2.2)
//   zb-v              two chunks in a V (Qi et al. 2024; its unit-time schedule)
//   dualpipe          micro-batches from both ends, each rank with a stage of either way, forwards
//                     and backwards of the two ways fused (DeepSeek-V3, 3.2.1; the order is that of
//                     github.com/deepseek-ai/DualPipe). Requires an even p and even m >= 2p.
//   dualpipe-v        the same cut in half: two chunks in a V. Requires m >= 2p.
//
// Requires chunks = 1 for gpipe, 1f1b and zb-h1, and 2 for zb-v and the two dualpipes. O(steps of
// the stage).
[[nodiscard]] std::vector<PipelineStep> stage_steps(const PipelineShape& shape,
                                                    std::uint32_t stage);

struct PipelineProgram {
  PipelineShape shape;
  std::vector<std::vector<PipelineStep>> stages;
};
[[nodiscard]] PipelineProgram pipeline_program(const PipelineShape& shape);

// The same with a Forward and then a Backward for every ForwardBackward: where nothing runs beside
// anything, the output of the first need not wait for the second.
[[nodiscard]] PipelineProgram without_fused_steps(PipelineProgram program);

// A part of a stage's steps in which each one is like the one `period` before, its micro-batches
// apart.
struct StepRepeat {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t period = 0;
};

// A pipeline whose steady part is cut short: with `elided` periods more in each repeat it is that
// of all micro-batches, of which one period has `period`.
struct FoldedPipeline {
  PipelineShape shape;  // With the micro-batches that are left.
  std::uint64_t elided = 0;
  std::uint32_t period = 0;
  std::vector<std::vector<StepRepeat>> repeats;  // By stage; all have as many, none if elided is 0.
};

// Leaves as few micro-batches as show the steady state in every stage: each repeat has two periods
// and some more. Nothing is left out where that saves nothing, or where the schedule has no such
// part. Costs a few periods of steps, however many micro-batches there are.
[[nodiscard]] FoldedPipeline folded_pipeline(const PipelineShape& shape);

// What is wrong with a program whatever its times are: steps missing, twice or unknown. Empty for
// those of pipeline_program.
[[nodiscard]] std::vector<std::string> problems(const PipelineProgram& program);

// Activations that a stage holds when it holds most, in units of `weights` (one per chunk of the
// stage): from a chunk's forward until its last gradient. It depends on the order alone.
[[nodiscard]] double peak_in_flight(std::span<const PipelineStep> steps,
                                    std::span<const double> weights);

// The same of a stage of pipeline_program, without the program: in closed form where there is one,
// else from as many micro-batches as fill the pipeline.
[[nodiscard]] double peak_in_flight(const PipelineShape& shape, std::uint32_t stage,
                                    std::span<const double> weights);

// Of one micro-batch in one chunk. A Backward takes both gradients' times, a ForwardBackward what
// `pairs` of run_pipeline say.
struct ChunkTimes {
  Duration forward{};
  Duration input_gradient{};
  Duration weight_gradient{};
};

struct PipelineRun {
  struct Span {
    Time start;
    Time end;
  };
  std::vector<std::vector<Span>> steps;  // As in the program.
  Duration makespan{};                   // From the first step's start to the last one's end.
  std::vector<Duration> busy;            // Per stage; makespan - busy: idle.
  // Between a stage's first and last step, the longest; steps in a row can follow each other so
  // closely when no barrier parts them.
  Duration longest_span{};
  // longest_span less the time of the busiest stage: FORMULAS.md, section 5.
  Duration bubble{};
};

// Runs the program as soon as its dependencies allow: `times` per model chunk, `hop` for what is
// sent between two stages (nothing within one). `pairs`: of a ForwardBackward, two per stage, that
// with chunk 0's forward first; empty: as long as forward and backward one after the other. It
// starts when both inputs are there, and both outputs leave at its end. Throws SimulationError with
// who waits for what when it cannot end. O(steps).
[[nodiscard]] PipelineRun run_pipeline(const PipelineProgram& program,
                                       std::span<const ChunkTimes> times, Duration hop = {},
                                       std::span<const Duration> pairs = {});

}  // namespace flyover
