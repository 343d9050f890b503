#pragma once

// What a sweep file says, as data: docs/formats/sweep.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flyover/study/sweep.hpp"
#include "flyover/study/sweep_space.hpp"

namespace flyover {

enum class Goal : std::uint8_t { Maximise, Minimise };

struct SweepObjective {
  std::string name;  // Of the output, or the text of the expression.
  Goal goal = Goal::Minimise;
  Expression expression;  // Over inputs and outputs.
};

// "The cheapest that does X."
struct SweepQuestion {
  std::string name;
  SweepObjective objective;
  std::vector<Expression> where;  // Over inputs and outputs.
};

// How the points are evaluated: all in closed form, all simulated, or those simulated that a bound
// lets be among the best.
enum class SweepEvaluation : std::uint8_t { Estimate, Replay, Adaptive };

struct SweepConfig {
  std::string name;
  std::string topology;  // As -t has it; "" where an axis is the topology itself.
  std::string workload;  // As -w has it; likewise.
  std::string library;   // As --library has it, or "".
  SweepSpace space;
  // Values derived from outputs, in order; may use inputs, outputs and those before.
  std::vector<std::pair<std::string, Expression>> measures;
  std::optional<SweepObjective> objective;
  std::vector<SweepObjective> pareto;
  std::vector<SweepQuestion> find;
  SweepEvaluation evaluate = SweepEvaluation::Replay;
  // Prices that differ from the shipped ones: a file, and dotted paths with their values, which
  // win.
  std::string prices_file;
  std::vector<std::pair<std::string, SweepValue>> prices;
  std::uint32_t top = 10;
};

// A value that evaluating a point can give.
struct SweepOutput {
  std::string_view name;
  std::optional<Goal> better;  // Where that goes without saying.
  std::string_view meaning;    // With the unit, where the name has none.
};
[[nodiscard]] std::span<const SweepOutput> sweep_outputs();

// The second half of a point that was evaluated: adds the measures to the outputs, leaving out
// those that have no value at this point, and makes it Refused, with the reason, when a condition
// on outputs does not hold. Does nothing to points that are not Done.
void finish_point(const SweepConfig& config, PointResult& result);

// Inputs and outputs together, by name. Requires that no name is in both.
[[nodiscard]] SweepValues all_values(const PointResult& result);

}  // namespace flyover
