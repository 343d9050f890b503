#pragma once

#include <string>
#include <vector>

#include "flyover/layout/layout.hpp"
#include "flyover/layout/stack.hpp"
#include "flyover/layout/training_options.hpp"
#include "flyover/study/training_record.hpp"

namespace flyover {

// What a record says of its layout, options and overlap, filled up with the stack's defaults.
// Require a record with a model, a sequence and a number of GPUs; throw InputError for what is not
// stated or not known.
[[nodiscard]] Layout recorded_layout(const TrainingRecord& record, const SoftwareStack& stack,
                                     std::vector<std::string>& assumptions);
[[nodiscard]] TrainingOptions recorded_options(const TrainingRecord& record,
                                               const SoftwareStack& stack,
                                               std::vector<std::string>& assumptions);
[[nodiscard]] Overlap recorded_overlap(const TrainingRecord& record, const SoftwareStack& stack);

}  // namespace flyover
