#pragma once

#include "layout/work_writer.hpp"

namespace flyover {

// Router, dispatch, routed and shared experts, combine.
void write_experts_forward(WorkWriter& writer);
void write_experts_backward(WorkWriter& writer);

// With Overlap::experts: takes dispatch and combine out of the passes and lays them beside kernels.
void hide_expert_messages(const WorkWriter& writer, LayerWork& work);

}  // namespace flyover
