#pragma once

// How sure estimated step times are, and whether two of them differ by more than that.

#include <map>
#include <string>

#include "flyover/base/units.hpp"

namespace flyover {

// Standard deviations of ln(estimated / measured): the part that all layouts of one model on the
// same GPUs and stack have in common (a GPU's clocks, a stack's kernels), and what each layout has
// of its own.
struct StepError {
  double common = 0;
  double own = 0;
  friend bool operator==(const StepError&, const StepError&) = default;
};

// As published results show them that no parameter was fitted to: docs/formats/plan.md, "How sure a
// comparison is".
struct StepErrors {
  StepError pooled;                           // Of all stacks,
  std::map<std::string, StepError> of_stack;  // and of those with results enough.
  [[nodiscard]] const StepError& of(const std::string& stack) const;
};

// `second` against `first`, to first order in the logarithm. On the same GPUs and stack the common
// parts cancel; of errors e1 and e2:
//
//   margin = 1.2816 x sqrt(own1^2 + own2^2 + (same ? 0 : common1^2 + common2^2))
//
// which 80 % of such differences lie within.
struct StepDifference {
  double share = 0;   // first / second - 1: 0.12 when the second is faster by 12 %.
  double margin = 0;  // Of the same kind.
  bool within_error = false;
};
[[nodiscard]] StepDifference step_difference(Duration first, Duration second, bool same_system,
                                             const StepError& first_error,
                                             const StepError& second_error);

// "B beats A by 12 % (+- 8 %)", or "A and B are within error: B ahead by 3 % (+- 8 %)".
[[nodiscard]] std::string verdict(const std::string& first, const std::string& second,
                                  const StepDifference& difference);

}  // namespace flyover
