#include "flyover/study/plan.hpp"

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

LayoutSearch search_of(std::uint32_t gpus) {
  Model model;
  model.layers = 8;
  model.hidden = 1024;
  model.attention.heads = 8;
  model.attention.kv_heads = 8;
  model.attention.head_dim = 128;
  model.ffn_hidden = 4096;
  model.vocabulary = 32000;
  return {.model = model,
          .sequence = 4096,
          .gpus = gpus,
          .global_batch = 64,
          .domain = 8,
          .sequence_parallel = true,
          .flash_attention = true,
          .choices = {}};
}

StepEstimate estimate_of(std::initializer_list<std::pair<StepPart, Duration>> parts) {
  StepEstimate estimate;
  for (const auto& [part, time] : parts) {
    estimate.parts[static_cast<std::size_t>(part)] = time;
    estimate.time += time;
  }
  return estimate;
}

// A made-up cluster on which every dimension has its own price. The bound is the compute.
StepEstimate made_up(const Layout& layout) {
  return estimate_of({{StepPart::Compute, 1s + 10ms * layout.micro_batch},
                      {StepPart::Tensor, 5ms * (layout.tensor - 1)},
                      {StepPart::Context, 9ms * (layout.context - 1)},
                      {StepPart::Bubble, 7ms * (layout.pipeline - 1) / layout.virtual_stages},
                      {StepPart::Data, 1ms * (layout.data - 1)}});
}
LayoutTimer made_up_timer() {
  return {.estimate = made_up,
          .bound = [](const Layout& layout) { return made_up(layout)[StepPart::Compute]; }};
}

constexpr Bytes plenty = 1000_GiB;

}  // namespace

TEST_CASE("a plan has the fastest layouts, whatever the bound leaves out", "[plan]") {
  const LayoutSpace space(search_of(16));
  PlanOptions options;
  options.top = 7;
  const Plan quick = make_plan(space, {}, plenty, made_up_timer, options);
  options.estimate_all = true;
  const Plan full = make_plan(space, {}, plenty, made_up_timer, options);

  CHECK(quick.considered ==
        quick.refused.layouts() + quick.too_large + quick.excluded + quick.estimated);
  CHECK(full.excluded == 0);
  CHECK(quick.fitting() == full.estimated);
  REQUIRE(quick.best.size() == 7);
  REQUIRE(full.best.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(layout_words(quick.best[i].layout) == layout_words(full.best[i].layout));
    CHECK(quick.best[i].estimate.time == made_up(quick.best[i].layout).time);
    if (i > 0) CHECK(quick.best[i - 1].estimate.time <= quick.best[i].estimate.time);
  }
  REQUIRE(full.ranked.size() == full.estimated);
  for (std::size_t i = 1; i < full.ranked.size(); ++i) {
    REQUIRE(full.ranked[i - 1].estimate.time <= full.ranked[i].estimate.time);
  }
  CHECK(full.ranked.front().estimate.time == full.best.front().estimate.time);
  CHECK(quick.best.front().why.empty());
}

TEST_CASE("a bound that is sharp saves estimates", "[plan]") {
  const LayoutSpace space(search_of(16));
  const auto sharp = []() -> LayoutTimer {
    return {.estimate = made_up,
            .bound = [](const Layout& layout) { return made_up(layout).time; }};
  };
  PlanOptions options;
  options.top = 1;
  const Plan plan = make_plan(space, {}, plenty, sharp, options);
  CHECK(plan.estimated == 512);  // One round.
  CHECK(plan.excluded > 0);
}

TEST_CASE("a plan does not depend on the number of threads", "[plan]") {
  const LayoutSpace space(search_of(32));
  PlanOptions options;
  options.threads = 1;
  const Plan one = make_plan(space, {}, 6_GiB, made_up_timer, options);
  options.threads = 5;
  const Plan five = make_plan(space, {}, 6_GiB, made_up_timer, options);
  CHECK(one.considered == five.considered);
  CHECK(one.too_large == five.too_large);
  CHECK(one.too_large > 0);
  CHECK(one.estimated == five.estimated);
  REQUIRE(one.best.size() == five.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    CHECK(layout_words(one.best[i].layout) == layout_words(five.best[i].layout));
  }
  REQUIRE(one.misses.size() == five.misses.size());
  for (std::size_t i = 0; i < one.misses.size(); ++i) {
    CHECK(layout_words(one.misses[i].layout) == layout_words(five.misses[i].layout));
  }
}

TEST_CASE("each way to cut the model is among the best once, or with all its variants", "[plan]") {
  const LayoutSpace space(search_of(16));
  PlanOptions options;
  const auto sizes = [](const Layout& l) {
    return std::tuple(l.tensor, l.pipeline, l.context, l.expert, l.data);
  };
  const Plan once = make_plan(space, {}, plenty, made_up_timer, options);
  for (std::size_t i = 0; i < once.best.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(sizes(once.best[i].layout) != sizes(once.best[j].layout));
    }
  }
  options.every_variant = true;
  const Plan all = make_plan(space, {}, plenty, made_up_timer, options);
  CHECK(sizes(all.best[0].layout) == sizes(all.best[1].layout));
  CHECK(all.best[0].estimate.time == all.best[1].estimate.time);
}

TEST_CASE("what does not fit is left out, the nearest misses named", "[plan]") {
  const LayoutSpace space(search_of(8));
  const Plan plan = make_plan(space, {}, Bytes{1'200'000'000}, made_up_timer);
  CHECK(plan.fitting() == 0);
  CHECK(plan.best.empty());
  CHECK(plan.too_large > 0);
  REQUIRE(plan.misses.size() == 3);
  CHECK(plan.misses[0].needed <= plan.misses[1].needed);
  CHECK(plan.misses[0].needed > Bytes{1'200'000'000});
  CHECK_THAT(plan.misses[0].reason, Catch::StartsWith("stage "));
  std::uint64_t sum = 0;
  for (const std::uint64_t count : plan.too_large_by) sum += count;
  CHECK(sum == plan.too_large);
}

TEST_CASE("an error in a thread is the plan's", "[plan]") {
  const auto failing = []() -> LayoutTimer {
    return {.estimate = [](const Layout&) -> StepEstimate { throw InputError("no such kernel"); },
            .bound = [](const Layout&) { return Duration{}; }};
  };
  CHECK_THROWS_WITH(make_plan(LayoutSpace(search_of(8)), {}, plenty, failing), "no such kernel");
}

TEST_CASE("why a layout loses is the largest differences of its parts", "[plan]") {
  using enum StepPart;
  const StepEstimate best = estimate_of({{Compute, 4s}, {Tensor, 100ms}, {Bubble, 200ms}});
  const StepEstimate other =
      estimate_of({{Compute, 4s + 1ms}, {Tensor, 510ms}, {Bubble, 80ms}, {Data, 50ms}});
  CHECK(largest_differences(other, best) ==
        "+0.41 s exposed tp, -0.12 s bubble, +0.05 s exposed dp");
  CHECK(largest_differences(best, best) == "takes the same time");
}

TEST_CASE("days and dollars follow from tokens per second and GPU", "[plan]") {
  StepEstimate estimate;
  estimate.tokens_per_second_per_gpu = 1e12 / 86400 / 1000;
  CHECK(days_per_trillion_tokens(estimate, 1000) == Approx(1));
  estimate.tokens_per_second_per_gpu = 1000;
  CHECK(dollars_per_million_tokens(estimate, 3.6) == Approx(1));
}
