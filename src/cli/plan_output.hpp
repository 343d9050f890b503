#pragma once

// How `flyover plan` writes what it found.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "flyover/layout/step_parts.hpp"
#include "flyover/simulate/result.hpp"
#include "flyover/study/plan.hpp"
#include "flyover/study/step_replay.hpp"

namespace flyover::cli {

// What was found for one number of GPUs.
struct GpuPlan {
  std::uint32_t gpus = 0;
  std::uint32_t global_batch = 0;
  bool batch_stated = false;
  Plan plan;
  std::vector<StepReplay> replays;        // Of the first ones of plan.best, in its order.
  std::vector<std::size_t> replay_order;  // Those that were replayed, fastest first.
};

enum class PlanObjective : std::uint8_t { Step, Throughput, Cost };
[[nodiscard]] std::string_view to_string(PlanObjective objective);

struct PlanReport {
  std::vector<InputDigest> inputs;
  std::string model;  // As the user named them.
  std::string stack;
  TrainingJob job;
  std::string topology;
  std::string gpu;
  std::string library;
  Bytes capacity;
  PlanObjective objective = PlanObjective::Step;
  std::optional<double> gpu_hour;  // Dollars.
  std::string gpu_hour_from;       // In words, with its date; or why there is none.
  std::uint64_t replay_limit = 0;
  std::vector<GpuPlan> plans;  // In order of GPUs.
  bool show_invalid = false;
  std::vector<std::string> warnings;

  // The place of the best of all in `plans`; nothing when nothing fits.
  [[nodiscard]] std::optional<std::size_t> winner() const;
};

[[nodiscard]] std::string plan_text(const PlanReport& report, std::size_t width);
[[nodiscard]] std::string plan_json(const PlanReport& report);
[[nodiscard]] std::string plan_csv(const PlanReport& report);

// "layout", "schedule", ... of a training workload.
[[nodiscard]] nlohmann::ordered_json training_json(const PlanReport& report, const Layout& layout);

}  // namespace flyover::cli
