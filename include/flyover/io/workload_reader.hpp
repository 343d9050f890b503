#pragma once

#include <cstdint>

#include "flyover/workload/operation_graph.hpp"

namespace flyover::io {

class Document;

// Reads a workload file (docs/formats/workload.md) for a cluster of `gpus` GPUs; rank r runs on GPU
// r.
//
// The result is valid and canonical: it does not depend on the order of ranks, groups, programs and
// streams in the file. Throws InputError, with the place, for anything that is wrong, a number of
// ranks other than `gpus` among it.
[[nodiscard]] Workload read_workload(const Document& document, std::uint32_t gpus);

}  // namespace flyover::io
