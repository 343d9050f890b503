// How sure estimated step times are.

#include "flyover/study/step_error.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <catch2/catch.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/stack_reader.hpp"
#include "flyover/io/step_error_reader.hpp"

using namespace flyover;
using namespace flyover::literals;

namespace {

StepErrors read(const std::string& json) {
  return io::read_step_errors(io::Document::parse("errors.json", json));
}

}  // namespace

TEST_CASE("a stack without an error of its own has that of all", "[study]") {
  const StepErrors errors = {.pooled = {0.1, 0.05}, .of_stack = {{"known", {0.08, 0.02}}}};
  CHECK(errors.of("known") == StepError{0.08, 0.02});
  CHECK(errors.of("unknown") == errors.pooled);
}

TEST_CASE("two estimates are told apart only beyond their error", "[study]") {
  const StepError error = {.common = 0.1, .own = 0.03};
  const StepDifference clear = step_difference(2s, 1s, false, error, error);
  CHECK(clear.share == Approx(1));
  CHECK_FALSE(clear.within_error);
  CHECK(verdict("A", "B", clear) == "B beats A by 100.0 % (+- 20.8 %)");
  // What systems have in common cancels on one.
  CHECK(step_difference(110ms, 100ms, false, error, error).within_error);
  const StepDifference same = step_difference(110ms, 100ms, true, error, error);
  CHECK_FALSE(same.within_error);
  CHECK(same.margin == Approx(std::exp(1.2816 * std::sqrt(2.0) * 0.03) - 1));
  CHECK(verdict("A", "B", step_difference(100ms, 102ms, true, error, error)) ==
        "A and B are within error: A ahead by 2.0 % (+- 5.6 %)");
  CHECK(verdict("A", "B", step_difference(1s, 1s, true, error, error)) ==
        "A and B take the same time");
  // The same the other way round.
  CHECK(verdict("A", "B", step_difference(100ms, 200ms, true, error, error)) ==
        "A beats B by 100.0 % (+- 5.6 %)");
  // Each side brings its own error.
  CHECK(
      step_difference(110ms, 100ms, false, error, {.common = 0.2, .own = 0.04}).margin ==
      Approx(std::exp(1.2816 * std::sqrt(0.03 * 0.03 + 0.04 * 0.04 + 0.1 * 0.1 + 0.2 * 0.2)) - 1));
}

TEST_CASE("errors of stacks are read, what a stack lacks is that of all", "[study]") {
  const StepErrors errors = read(R"({"format": "flyover-training-residuals-1", "summary": "",
      "pooled": {"records": 9, "families": 3, "layouts": 4, "common": 0.1, "own": 0.05},
      "stacks": {"a": {"common": 0.2}, "b": {"own": 0.02}, "c": {"records": 1}}})");
  CHECK(errors.pooled == StepError{0.1, 0.05});
  CHECK(errors.of("a") == StepError{0.2, 0.05});
  CHECK(errors.of("b") == StepError{0.1, 0.02});
  CHECK(errors.of("c") == errors.pooled);
}

TEST_CASE("what is wrong in a file of errors is told with its place", "[study]") {
  CHECK_THROWS_WITH(
      read(R"({"format": "flyover-residuals-1"})"),
      "errors.json:1:1: expected residuals of scripts/training_residuals.py (\"format\": "
      "\"flyover-training-residuals-1\")");
  CHECK_THROWS_WITH(read(R"({"format": "flyover-training-residuals-1",
"pooled": {"common": 1.5, "own": 0}, "stacks": {}})"),
                    "errors.json:2:22: /pooled/common: expected a standard deviation from 0 to 1");
  CHECK_THROWS_WITH(
      read(R"({"format": "flyover-training-residuals-1",
"pooled": {"common": 0, "own": 0},
"stacks": {"a": {"owm": 0.1}}})"),
      "errors.json:3:18: /stacks/a/owm: is not a known option, did you mean \"own\"?");
}

TEST_CASE("shipped errors are of shipped stacks, and margins are neither nothing nor endless",
          "[study]") {
  const StepErrors errors = io::shipped_step_errors();
  const auto names = io::stack_names();
  for (const auto& [stack, error] : errors.of_stack) {
    CAPTURE(stack);
    CHECK(std::ranges::find(names, stack) != names.end());
    CHECK(error.own > 0.01);
    CHECK(error.own < 0.15);
    CHECK(error.common < 0.4);
  }
  CHECK_FALSE(errors.of_stack.empty());
  CHECK(errors.pooled.own < errors.pooled.common);
}
