#include "flyover/layout/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "flyover/base/error.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

using Catch::Matchers::Message;
using enum PipelineSchedule;

PipelineShape shape_of(PipelineSchedule schedule, std::uint32_t p, std::uint32_t v, std::uint32_t m,
                       std::uint32_t group = 0) {
  return {.schedule = schedule, .stages = p, .chunks = v, .micro_batches = m, .group = group};
}

PipelineRun run(const PipelineShape& shape, ChunkTimes times, Duration hop = {}) {
  const std::vector<ChunkTimes> all(model_chunks(shape), times);
  return run_pipeline(pipeline_program(shape), all, hop);
}

// "F3'" is micro-batch 3 in chunk 1, "F4+B1'" a forward with a backward.
std::string text(const std::vector<PipelineStep>& steps) {
  std::string line;
  for (const PipelineStep& step : steps) {
    line += fmt::format("{}{}{}", "FBIWF"[static_cast<std::size_t>(step.kind)], step.micro_batch,
                        std::string(step.chunk, '\''));
    if (step.kind == StepKind::ForwardBackward) {
      line += fmt::format("+B{}{}", step.back_micro_batch, std::string(step.back_chunk, '\''));
    }
    line += ' ';
  }
  if (!line.empty()) line.pop_back();
  return line;
}

double in_flight(const PipelineShape& shape, std::uint32_t stage) {
  return peak_in_flight(stage_steps(shape, stage), std::vector(shape.chunks, 1.0));
}

// Every shape of the schedule with p <= 8, v <= 4 and m <= 32 that a layout may have, and those
// with fewer micro-batches than stages.
std::vector<PipelineShape> all_shapes(PipelineSchedule schedule) {
  std::vector<PipelineShape> shapes;
  for (std::uint32_t p = 1; p <= 8; ++p) {
    for (std::uint32_t m = 1; m <= 32; ++m) {
      if (schedule == ZeroBubbleV) {
        shapes.push_back(shape_of(schedule, p, 2, m));
      } else if (schedule == DualPipe || schedule == DualPipeV) {
        const bool pairs = schedule == DualPipeV || (p % 2 == 0 && m % 2 == 0);
        if (m >= 2 * p && pairs) shapes.push_back(shape_of(schedule, p, 2, m));
      } else if (schedule != Interleaved) {
        shapes.push_back(shape_of(schedule, p, 1, m));
      } else {
        for (std::uint32_t v = 1; v <= 4; ++v) {
          for (std::uint32_t group = p; group <= m; ++group) {
            const std::uint32_t rest = m % group;
            if (rest == 0 || rest >= p) shapes.push_back(shape_of(schedule, p, v, m, group));
          }
        }
      }
    }
  }
  return shapes;
}

std::string describe(const PipelineShape& shape) {
  return fmt::format("{} p={} v={} m={} group={}", to_string(shape.schedule), shape.stages,
                     shape.chunks, shape.micro_batches, shape.group);
}

}  // namespace

TEST_CASE("small schedules read as in the papers", "[schedule]") {
  CHECK(text(stage_steps(shape_of(GPipe, 2, 1, 3), 0)) == "F0 F1 F2 B2 B1 B0");
  CHECK(text(stage_steps(shape_of(OneForwardOneBackward, 4, 1, 6), 1)) ==
        "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  CHECK(text(stage_steps(shape_of(OneForwardOneBackward, 4, 1, 2), 0)) == "F0 F1 B0 B1");
  // Narayanan et al. 2021, figure 4: device 4 of 4, two chunks.
  CHECK(text(stage_steps(shape_of(Interleaved, 4, 2, 8), 3)) ==
        "F0 F1 F2 F3 F0' B0' F1' B1' F2' B2' F3' B3' F4 B0 F5 B1 F6 B2 F7 B3 "
        "F4' B4' F5' B5' F6' B6' F7' B7' B4 B5 B6 B7");
  // Qi et al. 2023, figure 3: devices 1 and 4 of 4.
  CHECK(text(stage_steps(shape_of(ZeroBubbleH1, 4, 1, 5), 0)) ==
        "F0 F1 F2 F3 I0 W0 F4 I1 W1 I2 W2 I3 W3 I4 W4");
  CHECK(text(stage_steps(shape_of(ZeroBubbleH1, 4, 1, 5), 3)) ==
        "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 W2 W3 W4");
  CHECK(text(stage_steps(shape_of(ZeroBubbleV, 2, 2, 3), 1)) ==
        "F0 F0' F1 F1' I0' W0' F2 I0 W0 F2' I1' W1' I1 I2' I2 W1 W2' W2");
}

TEST_CASE("chunks go round the stages, and come back in a V", "[schedule]") {
  const PipelineShape round = shape_of(Interleaved, 4, 3, 4);
  CHECK(model_chunk(round, 1, 2) == 9);
  const PipelineShape vee = shape_of(ZeroBubbleV, 4, 2, 8);
  CHECK(model_chunk(vee, 0, 1) == 7);
  CHECK(model_chunk(vee, 3, 1) == 4);
  for (const PipelineShape& shape : {round, vee, shape_of(DualPipeV, 4, 2, 8)}) {
    std::vector<std::uint32_t> chunks;
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
        chunks.push_back(model_chunk(shape, stage, chunk));
        CHECK(stage_of(shape, chunks.back()) == stage);
      }
    }
    std::ranges::sort(chunks);
    std::vector<std::uint32_t> all(chunks.size());
    std::iota(all.begin(), all.end(), 0U);
    CHECK(chunks == all);
  }
}

TEST_CASE("every schedule does every step once and ends", "[schedule]") {
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    for (const PipelineShape& shape : all_shapes(schedule)) {
      CAPTURE(describe(shape));
      const PipelineProgram program = pipeline_program(shape);
      REQUIRE(problems(program).empty());
      const std::vector<ChunkTimes> times(model_chunks(shape), {3_ps, 4_ps, 2_ps});
      const PipelineRun done = run_pipeline(program, times, 1_ps);
      for (const Duration busy : done.busy) {
        REQUIRE(busy == 9_ps * shape.chunks * shape.micro_batches / streams(shape));
      }
    }
  }
}

TEST_CASE("dualpipe's second chunk is the mirror stage's", "[schedule]") {
  const PipelineShape shape = shape_of(DualPipe, 6, 2, 12);
  CHECK(streams(shape) == 2);
  CHECK(model_chunks(shape) == 6);
  for (std::uint32_t stage = 0; stage < 6; ++stage) {
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
      const std::uint32_t number = model_chunk(shape, stage, chunk);
      CHECK(number == (chunk == 0 ? stage : 5 - stage));
      // Even micro-batches pass through chunk 0, odd ones through chunk 1.
      CHECK(stage_of(shape, number, 4 + chunk) == stage);
    }
  }
}

TEST_CASE("dualpipes read as in DeepSeek's code", "[schedule]") {
  // dualpipe.py for 4 ranks and 10 micro-batches, 5 from each end: ranks 0, 1 and 3.
  const PipelineShape shape = shape_of(DualPipe, 4, 2, 10);
  CHECK(text(stage_steps(shape, 0)) ==
        "F0 F2 F4 F1' I1' W1' F3' F6+B3' F5'+B0 F8+B5' F7'+B2 B7' F9'+B4 B9' I6 W6 I8 W8");
  CHECK(text(stage_steps(shape, 1)) ==
        "F0 F1' F2 F3' F4 B1' F5'+B0 F6+B3' F7'+B2 F8+B5' F9'+B4 B7' B6 I9' I8 W9' W8");
  CHECK(text(stage_steps(shape, 3)) ==
        "F1' F3' F5' F0 I0 W0 F2 F7'+B2 F4+B1' F9'+B4 F6+B3' B6 F8+B5' B8 I7' W7' I9' W9'");
  CHECK(text(without_fused_steps(pipeline_program(shape)).stages[0]) ==
        "F0 F2 F4 F1' I1' W1' F3' F6 B3' F5' B0 F8 B5' F7' B2 B7' F9' B4 B9' I6 W6 I8 W8");
  // dualpipev.py for 2 ranks and 5 micro-batches.
  const PipelineShape vee = shape_of(DualPipeV, 2, 2, 5);
  CHECK(text(stage_steps(vee, 0)) ==
        "F0 F1 F2 F0' I0' W0' F1' F3+B1' F2'+B0 F4+B2' F3'+B1 B3' F4'+B2 B4' I3 W3 I4 W4");
  CHECK(text(stage_steps(vee, 1)) ==
        "F0 F0' F1 F1' F2 B0' F2'+B0 F3+B1' F3'+B1 F4+B2' F4'+B2 B3' B3 I4' I4 W4' W4");
}

TEST_CASE("dualpipes idle for (PP/2 - 1)(F&B + B - 3W) where a pair takes as long as its parts",
          "[schedule]") {
  // Unit times; PP is 2p of dualpipe-v.
  const auto [schedule, p, m, makespan, idle] =
      GENERATE(table<PipelineSchedule, std::uint32_t, std::uint32_t, int, int>({
          {DualPipe, 8, 20, 66, 6},
          {DualPipe, 8, 32, 102, 6},
          {DualPipe, 16, 120, 374, 14},
          {DualPipe, 4, 10, 32, 2},
          {DualPipeV, 4, 10, 66, 6},
          {DualPipeV, 4, 16, 102, 6},
          {DualPipeV, 8, 32, 206, 14},
      }));
  const PipelineShape shape = shape_of(schedule, p, 2, m);
  CAPTURE(describe(shape));
  const PipelineRun done = run(shape, {1_ps, 1_ps, 1_ps});
  CHECK(done.makespan == Duration{makespan});
  for (const Duration busy : done.busy) CHECK(done.makespan - busy == Duration{idle});
  const std::uint32_t stages = model_chunks(shape);
  CHECK(idle == static_cast<int>((stages / 2 - 1) * (3 + 2 - 3)));
}

TEST_CASE("a fused pair that saves time makes ranks idle unequally", "[schedule]") {
  const PipelineShape shape = shape_of(DualPipe, 8, 2, 20);
  const std::vector<ChunkTimes> times(8, {2_ps, 2_ps, 2_ps});
  const std::vector<Duration> pairs(16, 5_ps);
  const PipelineRun done = run_pipeline(pipeline_program(shape), times, {}, pairs);
  CHECK(done.makespan == 2 * 59_ps);
  std::vector<Duration> idle;
  for (const Duration busy : done.busy) idle.push_back(done.makespan - busy);
  CHECK(idle == std::vector{7_ps, 8_ps, 9_ps, 9_ps, 9_ps, 9_ps, 8_ps, 7_ps});
  CHECK_THROWS_AS(run_pipeline(pipeline_program(shape), times, {}, std::vector{5_ps}),
                  InternalError);
}

TEST_CASE("DeepSeek-V3's ranks have 97 to 103 fused pairs each", "[schedule]") {
  const PipelineShape shape = shape_of(DualPipe, 16, 2, 120);
  const auto count = [&](std::uint32_t stage, StepKind kind) {
    const std::vector<PipelineStep> steps = stage_steps(shape, stage);
    return std::ranges::count(steps, kind, &PipelineStep::kind);
  };
  for (std::uint32_t stage = 0; stage < 16; ++stage) {
    const std::uint32_t near = std::min(stage, 15 - stage);
    CAPTURE(stage);
    const bool middle = near == 7;
    CHECK(count(stage, StepKind::Forward) == 23 - near + (middle ? 1 : 0));
    CHECK(count(stage, StepKind::ForwardBackward) == 97 + near - (middle ? 1 : 0));
    CHECK(count(stage, StepKind::Backward) == 8 + (middle ? 1 : 0));
    CHECK(count(stage, StepKind::InputGradient) == 15 - near);
    CHECK(count(stage, StepKind::WeightGradient) == 15 - near);
  }
}

TEST_CASE("dualpipes hold one stage more than there are stages", "[schedule]") {
  for (const PipelineSchedule schedule : {DualPipe, DualPipeV}) {
    for (const PipelineShape& shape : all_shapes(schedule)) {
      CAPTURE(describe(shape));
      for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
        REQUIRE(in_flight(shape, stage) ==
                std::min(model_chunks(shape) + 1, shape.chunks * shape.micro_batches));
      }
    }
  }
}

TEST_CASE("gpipe and 1f1b idle for p - 1 micro-batches", "[schedule]") {
  const auto [f, i, w] =
      GENERATE(table<int, int, int>({{1, 1, 1}, {2, 3, 1}, {5, 4, 3}, {1, 7, 0}}));
  const ChunkTimes times{Duration{f}, Duration{i}, Duration{w}};
  const Duration micro_batch{f + i + w};
  for (const PipelineSchedule schedule : {GPipe, OneForwardOneBackward}) {
    for (const PipelineShape& shape : all_shapes(schedule)) {
      CAPTURE(describe(shape));
      const PipelineRun done = run(shape, times);
      REQUIRE(done.bubble == (shape.stages - 1) * micro_batch);
      REQUIRE(done.makespan == (shape.stages - 1 + shape.micro_batches) * micro_batch);
    }
  }
}

TEST_CASE("interleaving divides the bubble by the virtual stages", "[schedule]") {
  // Times of a chunk, so that p - 1 of them are the whole bubble divided by v.
  const auto [f, b] = GENERATE(table<int, int>({{1, 2}, {1, 1}, {3, 5}}));
  const ChunkTimes times{Duration{f}, Duration{b}, 0_ps};
  for (const PipelineShape& shape : all_shapes(Interleaved)) {
    CAPTURE(describe(shape));
    REQUIRE(run(shape, times).bubble == (shape.stages - 1) * Duration{f + b});
  }
}

TEST_CASE("an interleaved schedule with one chunk takes as long as 1f1b", "[schedule]") {
  const ChunkTimes times{2_ps, 3_ps, 1_ps};
  CHECK(run(shape_of(Interleaved, 4, 1, 8), times).makespan ==
        run(shape_of(OneForwardOneBackward, 4, 1, 8), times).makespan);
}

TEST_CASE("zb-h1 fills the end of the pipeline with weight gradients", "[schedule]") {
  // Exact where a weight gradient takes no longer than a forward or an input gradient.
  const auto [f, i, w] =
      GENERATE(table<int, int, int>({{1, 1, 1}, {2, 2, 1}, {3, 4, 2}, {10, 11, 9}, {2, 3, 2}}));
  const ChunkTimes times{Duration{f}, Duration{i}, Duration{w}};
  for (const PipelineShape& shape : all_shapes(ZeroBubbleH1)) {
    CAPTURE(describe(shape), f, i, w);
    const std::uint32_t p = shape.stages;
    const PipelineRun done = run(shape, times);
    if (shape.micro_batches >= p) {
      // (p - 1)(F + B - 2W) with B = both gradients.
      REQUIRE(done.bubble == (p - 1) * Duration{f + i - w});
    } else if (f == i && i == w) {
      REQUIRE(done.bubble == 2 * (p - 1) * Duration{f} - (shape.micro_batches - 1) * Duration{w});
    }
  }
}

TEST_CASE("zb-v has no bubble when its steps take equally long", "[schedule]") {
  for (const PipelineShape& shape : all_shapes(ZeroBubbleV)) {
    CAPTURE(describe(shape));
    const std::uint32_t p = shape.stages;
    const PipelineRun done = run(shape, {1_ps, 1_ps, 1_ps});
    if (shape.micro_batches + 1 < 2 * p) continue;
    REQUIRE(done.bubble == 0_ps);
    // Stages end as they began, one chunk's forward after the other: what a barrier costs.
    REQUIRE(done.makespan == done.busy[0] + Duration{p - 1});
  }
}

TEST_CASE("1f1b holds min(m, p - i) micro-batches, gpipe all, zb-h1 as many as the first stage",
          "[schedule]") {
  for (const PipelineSchedule schedule : {GPipe, OneForwardOneBackward, ZeroBubbleH1}) {
    for (const PipelineShape& shape : all_shapes(schedule)) {
      CAPTURE(describe(shape));
      for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
        const std::uint32_t most = schedule == GPipe                   ? shape.micro_batches
                                   : schedule == OneForwardOneBackward ? shape.stages - stage
                                                                       : shape.stages;
        REQUIRE(in_flight(shape, stage) == std::min(shape.micro_batches, most));
      }
    }
  }
}

TEST_CASE("interleaving holds 1 + (p - 1) / (p v) times as much on the first stage", "[schedule]") {
  for (const PipelineShape& shape : all_shapes(Interleaved)) {
    CAPTURE(describe(shape));
    const std::uint32_t p = shape.stages;
    const std::uint32_t v = shape.chunks;
    for (std::uint32_t stage = 0; stage < p; ++stage) {
      const std::uint32_t most = 2 * (p - stage - 1) + (v - 1) * shape.group + 1;
      REQUIRE(in_flight(shape, stage) == std::min(v * shape.micro_batches, most));
    }
    if (shape.group == p && shape.micro_batches > p) {
      // In micro-batches of a whole stage.
      REQUIRE(in_flight(shape, 0) / v == Approx(p * (1 + (p - 1.0) / (p * v))));
    }
  }
}

TEST_CASE("zb-v holds what 1f1b holds on its first stage, on every stage", "[schedule]") {
  for (const PipelineShape& shape : all_shapes(ZeroBubbleV)) {
    CAPTURE(describe(shape));
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      const double held = in_flight(shape, stage) / 2;
      REQUIRE(held <= shape.stages);
      REQUIRE(held <= shape.micro_batches);
      if (shape.micro_batches + 1 >= 2 * shape.stages) REQUIRE(held == shape.stages);
    }
  }
}

TEST_CASE("what is in flight is known without the program", "[schedule]") {
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    for (const PipelineShape& shape : all_shapes(schedule)) {
      CAPTURE(describe(shape));
      for (const std::vector<double>& all :
           {std::vector{1.0, 1.0, 1.0, 1.0}, std::vector{2.0, 1.0, 1.0, 1.0},
            std::vector{1.0, 4.0, 2.0, 3.0}}) {
        const std::span<const double> weights(all.data(), shape.chunks);
        for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
          REQUIRE(peak_in_flight(shape, stage, weights) ==
                  peak_in_flight(stage_steps(shape, stage), weights));
        }
      }
    }
  }
}

TEST_CASE("hops between stages delay the fill and drain of 1f1b", "[schedule]") {
  const PipelineShape shape = shape_of(OneForwardOneBackward, 4, 1, 1);
  // One micro-batch: three hops down and three up.
  CHECK(run(shape, {2_ps, 3_ps, 1_ps}, 5_ps).makespan == 4 * 6_ps + 6 * 5_ps);
  // The turn of a V stays on its stage.
  CHECK(run(shape_of(ZeroBubbleV, 2, 2, 1), {1_ps, 1_ps, 0_ps}, 5_ps).makespan == 8_ps + 4 * 5_ps);
}

TEST_CASE("the slowest stage sets the pace", "[schedule]") {
  const PipelineShape shape = shape_of(OneForwardOneBackward, 3, 1, 10);
  const std::vector<ChunkTimes> times = {
      {1_ps, 1_ps, 1_ps}, {2_ps, 2_ps, 2_ps}, {1_ps, 1_ps, 1_ps}};
  const PipelineRun done = run_pipeline(pipeline_program(shape), times);
  // Its own ten; the first stage's forward and both gradients around them; and once a wait of one
  // for the last stage, which gets its first input while the slow stage does its second.
  CHECK(done.makespan == 10 * 6_ps + 3_ps + 1_ps);
  CHECK(done.busy == std::vector{30_ps, 60_ps, 30_ps});
}

TEST_CASE("a program that waits for itself is refused with who waits", "[schedule]") {
  PipelineProgram program = pipeline_program(shape_of(OneForwardOneBackward, 2, 1, 2));
  std::swap(program.stages[1][0], program.stages[1][1]);
  const std::vector<ChunkTimes> times(2, {1_ps, 1_ps, 1_ps});
  CHECK(problems(program).empty());
  CHECK_THROWS_MATCHES(
      run_pipeline(program, times), SimulationError,
      Message("the pipeline cannot end:\n"
              "  stage 0 waits for the input of the backward of micro-batch 0 in chunk 0\n"
              "  stage 1 waits for the input of the backward of micro-batch 0 in chunk 0"));
}

TEST_CASE("a program with steps missing, twice or unknown is refused", "[schedule]") {
  PipelineProgram program = pipeline_program(shape_of(GPipe, 1, 1, 2));
  program.stages[0][0].micro_batch = 1;
  program.stages[0].push_back({StepKind::WeightGradient, 0, 0});
  CHECK(problems(program) ==
        std::vector<std::string>{
            "stage 0: weight gradient of micro-batch 0 in chunk 0 is none of this schedule's",
            "stage 0: forward of micro-batch 0 in chunk 0 is there 0 times, not once",
            "stage 0: forward of micro-batch 1 in chunk 0 is there 2 times, not once"});
  program.stages.emplace_back();
  CHECK(problems(program) == std::vector<std::string>{"there are steps for 2 stages, not 1"});
}

TEST_CASE("a schedule with the wrong number of chunks is a broken promise", "[schedule]") {
  CHECK_THROWS_AS(stage_steps(shape_of(OneForwardOneBackward, 2, 2, 2), 0), InternalError);
  CHECK_THROWS_AS(stage_steps(shape_of(ZeroBubbleV, 2, 1, 2), 0), InternalError);
  CHECK_THROWS_AS(stage_steps(shape_of(GPipe, 2, 1, 2), 2), InternalError);
  CHECK_THROWS_AS(stage_steps(shape_of(DualPipe, 2, 1, 4), 0), InternalError);
  // Too few micro-batches, or not as many from both ends.
  CHECK_THROWS_AS(stage_steps(shape_of(DualPipe, 4, 2, 6), 0), InternalError);
  CHECK_THROWS_AS(stage_steps(shape_of(DualPipe, 4, 2, 9), 0), InternalError);
  CHECK_THROWS_AS(stage_steps(shape_of(DualPipe, 3, 2, 8), 0), InternalError);
  CHECK_THROWS_AS(stage_steps(shape_of(DualPipeV, 4, 2, 7), 0), InternalError);
}

TEST_CASE("schedules are found by their names", "[schedule]") {
  for (const PipelineSchedule schedule : all_pipeline_schedules) {
    CHECK(pipeline_schedule(to_string(schedule)) == schedule);
  }
  CHECK_FALSE(pipeline_schedule("chimera").has_value());
}

namespace {

// The steps with so many periods more behind the first of each repeat, micro-batches counted on.
std::vector<PipelineStep> unfolded(const std::vector<PipelineStep>& steps,
                                   const std::vector<StepRepeat>& repeats, std::uint64_t periods) {
  std::vector<PipelineStep> all;
  std::int64_t moved = 0;
  std::size_t next = 0;
  const auto put = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      all.push_back(steps[i]);
      all.back().micro_batch = static_cast<std::uint32_t>(steps[i].micro_batch + moved);
      if (steps[i].kind == StepKind::ForwardBackward) {
        all.back().back_micro_batch = static_cast<std::uint32_t>(steps[i].back_micro_batch + moved);
      }
    }
  };
  for (const StepRepeat& repeat : repeats) {
    put(next, repeat.begin);
    const std::int64_t apart = std::int64_t{steps[repeat.begin + repeat.period].micro_batch} -
                               steps[repeat.begin].micro_batch;
    for (std::uint64_t period = 0; period < periods; ++period) {
      put(repeat.begin, repeat.begin + repeat.period);
      moved += apart;
    }
    next = repeat.begin;
  }
  put(next, steps.size());
  return all;
}

}  // namespace

TEST_CASE("a folded pipeline with its periods put back is the whole one", "[layout][schedule]") {
  const auto [schedule, chunks] = GENERATE(
      std::pair{PipelineSchedule::GPipe, 1U},
      std::pair{PipelineSchedule::OneForwardOneBackward, 1U},
      std::pair{PipelineSchedule::Interleaved, 2U}, std::pair{PipelineSchedule::Interleaved, 5U},
      std::pair{PipelineSchedule::ZeroBubbleH1, 1U}, std::pair{PipelineSchedule::ZeroBubbleV, 2U},
      std::pair{PipelineSchedule::DualPipe, 2U}, std::pair{PipelineSchedule::DualPipeV, 2U});
  for (const std::uint32_t stages : {1U, 2U, 3U, 4U, 8U, 16U}) {
    for (const std::uint32_t micro_batches : {1U, 2U, 7U, 16U, 30U, 64U, 96U, 120U, 127U, 256U}) {
      PipelineShape shape{schedule, stages, chunks, micro_batches, 0};
      if (schedule == PipelineSchedule::Interleaved && micro_batches % stages != 0) continue;
      const bool dual =
          schedule == PipelineSchedule::DualPipe || schedule == PipelineSchedule::DualPipeV;
      if (dual && micro_batches < 2 * stages) continue;
      if (streams(shape) > 1 && (stages % 2 != 0 || micro_batches % 2 != 0)) continue;
      CAPTURE(to_string(schedule), stages, chunks, micro_batches);
      const FoldedPipeline folded = folded_pipeline(shape);
      CHECK(folded.shape.micro_batches + folded.elided * folded.period == micro_batches);
      if (micro_batches == 256) CHECK(folded.shape.micro_batches <= 6 * stages + 8);
      REQUIRE(folded.repeats.size() == stages);
      for (std::uint32_t stage = 0; stage < stages; ++stage) {
        CAPTURE(stage);
        CHECK((unfolded(stage_steps(folded.shape, stage), folded.repeats[stage], folded.elided) ==
               stage_steps(shape, stage)));
      }
    }
  }
}
