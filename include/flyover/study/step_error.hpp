#pragma once

// How sure estimated step times are, and whether two of them differ by more than that.

#include <string>

#include "flyover/base/units.hpp"

namespace flyover {

// Standard deviations of ln(estimated / measured): the part that all layouts of one model's family
// on the same GPUs and stack have in common (a GPU's clocks, a stack's kernels), and what each
// layout has of its own.
struct StepError {
  double common = 0;
  double own = 0;
};

// The one place that says how large they are. Provisional until `flyover validate --training`
// states them per stack: issue 4 asks for a median error of 8 % on training records that no
// parameter was fitted to, which is a standard deviation of 0.08 / 0.6745 = 0.119 altogether, and
// for the best predicted layout of a family to lie within 5 % of the best measured one, which is
// about what 0.05 of its own gives; the rest, sqrt(0.119^2 - 0.05^2), is common.
[[nodiscard]] StepError provisional_step_error();

// `second` against `first`, to first order in the logarithm. On the same GPUs and stack the common
// part cancels:
//
//   margin = 1.2816 x sqrt(2 own^2 + (same ? 0 : 2 common^2))      (80 % of such errors)
struct StepDifference {
  double share = 0;   // first / second - 1: 0.12 when the second is faster by 12 %.
  double margin = 0;  // Of the same kind.
  bool within_error = false;
};
[[nodiscard]] StepDifference step_difference(Duration first, Duration second, bool same_system,
                                             const StepError& error = provisional_step_error());

// "B beats A by 12 % (+- 8 %)", or "A and B are within error: B ahead by 3 % (+- 8 %)".
[[nodiscard]] std::string verdict(const std::string& first, const std::string& second,
                                  const StepDifference& difference);

}  // namespace flyover
