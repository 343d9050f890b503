#pragma once

// Training steps side by side: layouts on one cluster, or clusters.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/inputs.hpp"
#include "cli/plan_output.hpp"
#include "flyover/base/units.hpp"
#include "flyover/io/document.hpp"
#include "flyover/study/step_error.hpp"

namespace flyover::cli {

// One of the steps that are compared.
struct StepSide {
  std::string name;
  std::string layout;  // In words.
  std::uint32_t gpus = 0;
  // What decides which errors two sides share.
  std::string gpu;
  std::string stack;
  std::string library;
  Duration step{};
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;
  std::vector<std::pair<std::string, Duration>> parts;
  Bytes memory;  // Of the fullest stage.
  Bytes capacity;
  std::optional<double> dollars_per_million_tokens;
  StepError error;  // Of the stack.
};

[[nodiscard]] bool is_plan(const io::Document& document);
// The best layout of a `flyover plan --json` file, for the number of GPUs that it calls best.
// Throws InputError where nothing fitted.
[[nodiscard]] StepSide read_plan_side(const io::Document& document, std::string name);
// The best layout of a search.
[[nodiscard]] StepSide side_of(const PlanReport& report, std::string name);
// The layout of a training workload on a cluster, estimated.
[[nodiscard]] StepSide side_of(const io::Document& training, const Cluster& cluster,
                               std::string name, std::optional<double> gpu_hour);

struct StepPair {
  std::size_t first = 0;
  std::size_t second = 0;
  bool same_system = false;
  StepDifference difference;  // Of the time for as many tokens on as many GPUs.
};
[[nodiscard]] StepPair compare_sides(const std::vector<StepSide>& sides, std::size_t first,
                                     std::size_t second);

[[nodiscard]] std::string sides_text(const std::vector<StepSide>& sides, std::size_t width);
[[nodiscard]] std::string sides_json(const std::vector<StepSide>& sides);

}  // namespace flyover::cli
