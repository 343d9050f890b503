#include "flyover/layout/fused_chunk.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

using namespace std::chrono_literals;

// Means of one layer in DeepSeek's trace (MOE.md 4.3), 20 SMs for messages.
FusedChunk deepseek_v3() {
  FusedChunk chunk;
  for (int layer = 0; layer < 4; ++layer) {
    chunk.forward.push_back({4363us, 4346us, 4604us, 6181us, {}});
    chunk.backward.push_back({{}, 3405us, 5306us, 5063us, 6181us, 9341us, 2389us});
  }
  return chunk;
}

}  // namespace

TEST_CASE("four layers of DeepSeek-V3 take what the trace shows", "[layout][fused]") {
  const FusedRun run = run_fused_chunk(deepseek_v3());
  CHECK(run.kernels == 4 * 31066us);
  CHECK(run.messages == 4 * 20113us);
  // Kernels without a gap: every message has kernels beside it.
  CHECK(run.span == run.kernels);
  CHECK(run.exposed == 0us);
  CHECK(to_seconds(run.span) == Approx(0.129).epsilon(0.05));
}

TEST_CASE("a pair of layers follows its two streams to the picosecond", "[layout][fused]") {
  FusedChunk chunk;
  chunk.forward = {{1_ps, 10_ps, 2_ps, 3_ps, 1_ps}};
  chunk.backward = {{{}, 5_ps, 4_ps, 1_ps, 2_ps, 6_ps, 7_ps}};
  // Messages: combine B 0-5, dispatch F 5-15, dispatch B 15-17. Kernels: attention F 0-1, experts B
  // 5-9, expert weights 9-10, experts F 15-17, attention B 17-23, weights 23-30, after 30-31;
  // combine F 17-20.
  const FusedRun run = run_fused_chunk(chunk);
  CHECK(run.span == 31_ps);
  CHECK(run.kernels == 22_ps);
  CHECK(run.messages == 20_ps);
  CHECK(run.exposed == 9_ps);
}

TEST_CASE("one micro-batch alone is one segment after the other but for weights",
          "[layout][fused]") {
  FusedChunk chunk;
  chunk.forward.assign(3, {1_ps, 2_ps, 3_ps, 4_ps, 5_ps});
  CHECK(run_fused_chunk(chunk).span == 3 * 15_ps);
  chunk.forward.clear();
  chunk.backward.assign(2, {1_ps, 2_ps, 3_ps, 4_ps, 5_ps, 6_ps, 7_ps});
  // Expert weights hide a part of the dispatch, weights the next combine.
  CHECK(run_fused_chunk(chunk).span ==
        1_ps + 2_ps + 3_ps + 5_ps + 6_ps + 1_ps + 7_ps + 3_ps + 5_ps + 6_ps + 7_ps);
  CHECK(run_fused_chunk({}).span == 0_ps);
}

TEST_CASE("layers without experts have kernels alone", "[layout][fused]") {
  FusedChunk chunk;
  chunk.forward = {{8_ps, {}, {}, {}, {}}, {1_ps, 2_ps, 3_ps, 4_ps, {}}};
  chunk.backward = {{{}, {}, {}, {}, {}, 9_ps, 2_ps}, {{}, {}, {}, {}, {}, 9_ps, 2_ps}};
  const FusedRun run = run_fused_chunk(chunk);
  CHECK(run.kernels == 34_ps);
  // The dispatch has nothing beside it, the combine the second layer's backward.
  CHECK(run.span == 36_ps);
}

TEST_CASE("kernels lose SMs only while messages are under way", "[layout][fused]") {
  FusedChunk chunk;
  chunk.forward = {{6_ps, 2_ps, {}, {}, {}}};
  chunk.backward = {{{}, 10_ps, 4_ps, {}, {}, {}, {}}};
  // Attention takes 8 beside the combine; the experts' backward runs at 3/4 for the 2 of the
  // dispatch, and alone for what is left.
  const FusedRun run = run_fused_chunk(chunk, 0.75);
  CHECK(run.span == Duration{15});
  CHECK(run.messages == 12_ps);
  CHECK_THROWS_AS(run_fused_chunk(chunk, 0), InternalError);
  CHECK_THROWS_AS(run_fused_chunk(chunk, 1.5), InternalError);
}
