#pragma once

// The best layouts of a search: what does not fit is left out, what cannot be among the best is not
// worked out, the rest is ranked by its estimated step time. docs/formats/plan.md.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flyover/base/units.hpp"
#include "flyover/layout/memory.hpp"
#include "flyover/layout/step_estimate.hpp"
#include "flyover/study/layout_space.hpp"

namespace flyover {

// What times layouts; one per thread, so it may remember things.
struct LayoutTimer {
  std::function<StepEstimate(const Layout&)> estimate;
  std::function<Duration(const Layout&)> bound;  // No estimate's time is less.
};

struct PlanOptions {
  std::uint32_t top = 5;
  // Of layouts with equal (tp, pp, cp, ep, dp) only the best counts, so that the top shows
  // different ways to cut the model and not one of them with five micro-batches.
  bool every_variant = false;
  bool estimate_all = false;  // Also what cannot be among the top.
  std::uint32_t threads = 2;  // The result does not depend on it.
  std::uint32_t misses = 3;   // How many of the layouts that almost fit are named.
};

struct PlannedLayout {
  Layout layout;
  StepEstimate estimate;
  MemoryUse memory;
  // By which parts of the step it loses to the best one; "" for that one.
  std::string why;
};

// A layout and its time, for lists.
struct RankedLayout {
  Layout layout;
  StepEstimate estimate;
  Bytes memory;  // Of the fullest stage.
};

struct PlanMiss {
  Layout layout;
  Bytes needed;
  std::string reason;
};

struct Plan {
  std::uint64_t families = 0;    // Ways to choose (tp, pp, cp, ep, etp, dp);
  std::uint64_t considered = 0;  // layouts: the sum of
  Refusals refused;              // those that are impossible,
  std::uint64_t too_large = 0;   // that do not fit in memory,
  std::uint64_t excluded = 0;    // that a lower bound keeps from the top,
  std::uint64_t estimated = 0;   // and the others.
  // Of those too large, what their fullest stage has most of.
  std::array<std::uint64_t, memory_parts> too_large_by{};
  std::vector<PlanMiss> misses;      // At most one per family, least too large first.
  std::vector<PlannedLayout> best;   // Fastest first.
  std::vector<RankedLayout> ranked;  // All that were estimated, fastest first; with estimate_all.
  // Seconds of all threads together; the only part that differs from run to run.
  struct Spent {
    double memory = 0;
    double bounds = 0;
    double estimates = 0;
  };
  Spent spent;
  [[nodiscard]] std::uint64_t fitting() const { return excluded + estimated; }
};

// `make_timer` is called once per thread, in it. O(layouts).
[[nodiscard]] Plan make_plan(const LayoutSpace& space, const TrainingOptions& options,
                             Bytes capacity, const std::function<LayoutTimer()>& make_timer,
                             const PlanOptions& plan = {}, const MemoryOptions& memory = {},
                             bool keep_refusals = false);

// "+0.41 s exposed tp, -0.12 s bubble": the largest differences of parts, at most three.
[[nodiscard]] std::string largest_differences(const StepEstimate& of, const StepEstimate& from);

// What a million million tokens take: days at this rate, and dollars at this price of a GPU-hour.
inline constexpr double trillion = 1e12;
[[nodiscard]] double days_per_trillion_tokens(const StepEstimate& estimate, std::uint32_t gpus);
[[nodiscard]] double dollars_per_million_tokens(const StepEstimate& estimate, double gpu_hour);

}  // namespace flyover
