#include "flyover/io/step_error_reader.hpp"

#include <fmt/format.h>

#include "flyover/io/embedded.hpp"

namespace flyover::io {

namespace {

constexpr std::string_view format_name = "flyover-training-residuals-1";
constexpr std::string_view shipped_file = "training-residuals.json";  // Of configs/.

double deviation(const Field& field) {
  const double value = field.number();
  if (value < 0 || value > 1) field.fail("expected a standard deviation from 0 to 1");
  return value;
}

}  // namespace

StepErrors read_step_errors(const Document& document) {
  const Field root = document.root();
  if (!root.has("format") || root["format"].text() != format_name) {
    root.fail(fmt::format(
        "expected residuals of scripts/training_residuals.py (\"format\": \"{}\")", format_name));
  }
  root.allow_only({"format", "summary", "pooled", "stacks"});
  const Field pooled = root["pooled"];
  pooled.allow_only({"records", "families", "layouts", "common", "own"});
  StepErrors errors;
  errors.pooled = {deviation(pooled["common"]), deviation(pooled["own"])};
  const Field stacks = root["stacks"];
  for (const std::string& name : stacks.keys()) {
    const Field stack = stacks[name];
    stack.allow_only({"records", "families", "layouts", "common", "own"});
    StepError error = errors.pooled;
    if (stack.has("common")) error.common = deviation(stack["common"]);
    if (stack.has("own")) error.own = deviation(stack["own"]);
    errors.of_stack[name] = error;
  }
  return errors;
}

StepErrors shipped_step_errors() {
  return read_step_errors(
      Document::parse(std::string(shipped_file), std::string(embedded_file(shipped_file))));
}

}  // namespace flyover::io
