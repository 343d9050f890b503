#pragma once

// What a sweep's results say: the best points, what no point beats, which inputs matter.
// docs/formats/sweep.md has the formulas. All answers depend on the set of rows, not on their
// order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flyover/study/sweep.hpp"
#include "flyover/study/sweep_config.hpp"

namespace flyover {

// The objective of a row; nothing for a row that is not Done or where it has no value. Throws
// InputError when it is no number.
[[nodiscard]] std::optional<double> objective_value(const SweepObjective& objective,
                                                    const PointResult& row);

// A row by its index, with its objective.
struct RankedPoint {
  std::size_t row = 0;
  double value = 0;
};

// The best `count` rows, best first; of equal ones the lower number. O(rows log count).
[[nodiscard]] std::vector<RankedPoint> best_points(std::span<const PointResult> rows,
                                                   const SweepObjective& objective,
                                                   std::size_t count);

// Indices of rows that no other row beats: none is at least as good in every objective and better
// in one. Rows that are equal in all of them stay together. Best in the first objective first, then
// in the next, then by number. Rows without a value for an objective are left out. O(n log n) for
// one and two objectives; beyond, O(n log n + n x front).
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const PointResult> rows,
                                                    std::span<const SweepObjective> objectives);

// What one input says about the objective.
struct InputEffect {
  std::string name;
  std::size_t rows = 0;    // That have it and a value of the objective.
  std::size_t groups = 0;  // Of equal values, or of neighbouring numbers.
  // Of the variance of the objective over these rows, the share that the means of groups have: its
  // first-order effect. Exact on a full grid; on samples an input without any effect still has
  // about `chance`.
  double share = 0;
  double chance = 0;  // (groups - 1) / (rows - 1)
  double lowest_mean = 0;
  double highest_mean = 0;
  std::string lowest_at;  // "4", "\"ring\"", or "1.5 to 2.75" of a group of numbers.
  std::string highest_at;
  std::optional<double> rank_correlation;  // Spearman's; of numeric inputs.
};

struct SweepSensitivity {
  std::size_t rows = 0;
  double mean = 0;
  double deviation = 0;              // Standard, of the rows as a population.
  std::vector<InputEffect> effects;  // The largest share first, then by name.
};

// Of the inputs named, or of all that any row has.
[[nodiscard]] SweepSensitivity sweep_sensitivity(std::span<const PointResult> rows,
                                                 const SweepObjective& objective,
                                                 std::span<const std::string> inputs = {});

struct SweepAnswer {
  std::string name;
  std::size_t considered = 0;  // Done rows that have a value of the objective;
  std::size_t holding = 0;  // of these, where all conditions hold. One that has no value does not.
  std::optional<RankedPoint> best;
};
[[nodiscard]] SweepAnswer answer(std::span<const PointResult> rows, const SweepQuestion& question);

}  // namespace flyover
