#pragma once

// What rules of kernel models and stacks have in common.

#include "flyover/io/document.hpp"
#include "flyover/layout/kernel_model.hpp"

namespace flyover::io {

// "source" says where the rule's values come from, and "fitted", if it is there, how they were
// fitted.
void check_evidence(const Field& rule);

// "where", if it is there: "architectures", "gpus", "types".
[[nodiscard]] KernelScope read_scope(const Field& rule);

// "bf16", ..., "nvfp4".
[[nodiscard]] KernelType read_kernel_type(const Field& field);

}  // namespace flyover::io
