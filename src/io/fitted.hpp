#pragma once

#include "flyover/io/document.hpp"

namespace flyover::io {

// What scripts/fit knows of a rule's values ("fitted"). No model uses it; only the form is checked.
void check_fitted(const Field& rule);

}  // namespace flyover::io
