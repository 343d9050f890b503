#pragma once

// From a job and a layout to the operation graph of one training step.

#include <cstdint>

#include "flyover/layout/layout.hpp"
#include "flyover/layout/message_times.hpp"
#include "flyover/layout/step_parts.hpp"
#include "flyover/workload/operation_graph.hpp"

namespace flyover {

// One program per pipeline stage, which the ranks of a stage share. Kernels are Compute operations
// with the times of StepParts, their FLOPs and bytes; kernels in a row with no message between them
// are one operation, named after the longest of them, its layer, pass and micro-batch. A message
// that is hidden in part is two operations.
//
// Streams: "compute"; one per kind of group, named as it is, since messages of one communicator
// follow each other; and for each chunk of a stage "pp-send-f0", "pp-recv-f0" for activations,
// "pp-send-b0", "pp-recv-b0" for gradients. Receives wait for nothing, so that a message leaves
// when it is ready. Families of groups are named by their kinds.
//
// The step starts with the gathering of parameters and ends with the optimizer and the host's own
// time. `times` tells what the operations themselves do not: how much kernels lose to messages
// beside them, those of states included (SoftwareStack::contention), and for how long a layer waits
// for its host code. SoftwareStack::straggling is left out: it multiplies what a replay says.
//
// Micro-batches of the steady part of the schedule are sections that repeat (repetition.hpp), of
// which a few copies are written down unless all are asked for. Messages of a chunk and direction
// share a tag, since they are sent and received in one order; their names say which micro-batch.
//
// Requires a layout without problems for the job's model and sequence. O(stages x operations of one
// rank + ranks), however many micro-batches there are.
enum class MicroBatches : std::uint8_t { Few, All };
[[nodiscard]] Workload expand(const StepParts& parts, const Layout& layout,
                              const MessageTimes& times, MicroBatches written = MicroBatches::Few);

// Operations that `expand` writes down, as many times as there are ranks of their stage, without
// making them.
[[nodiscard]] std::uint64_t expanded_operations(const StepParts& parts, const Layout& layout,
                                                const MessageTimes& times);

}  // namespace flyover
