#pragma once

#include "flyover/io/document.hpp"
#include "flyover/study/step_error.hpp"

namespace flyover::io {

// A file of scripts/training_residuals.py (docs/formats/plan.md, "How sure a comparison is"). A
// stack that states one of the two deviations has the other one from all stacks. Throws InputError,
// with the place, for what is missing, unknown or impossible.
[[nodiscard]] StepErrors read_step_errors(const Document& document);

// Those of configs/training-residuals.json, compiled in.
[[nodiscard]] StepErrors shipped_step_errors();

}  // namespace flyover::io
