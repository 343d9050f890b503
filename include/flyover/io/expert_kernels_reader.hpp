#pragma once

// Kernel libraries of expert parallelism as files: those of configs/moe/, compiled in, or one of
// the user's own (docs/formats/expert-kernels.md).

#include <string>
#include <string_view>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/workload/expert_exchange.hpp"

namespace flyover::io {

// The library of that name ("deepep-v1"), or the file when it ends in ".json". A file with
// "extends" states only what differs (a merge patch, RFC 7386). Throws InputError with the nearest
// name when there is none.
[[nodiscard]] Document expert_kernels_document(std::string_view name);
// The names of those compiled in, in alphabetical order.
[[nodiscard]] std::vector<std::string> expert_kernels_names();

// The library's kernels for one mode. Checks those of all modes. Throws InputError, with the place,
// for whatever is missing, unknown or impossible, and, naming the modes that there are, when it has
// none for this one. A plain all-to-all is the communication library's: every library has mode
// Nccl.
[[nodiscard]] ExpertKernels read_expert_kernels(const Document& document, ExpertMode mode);

}  // namespace flyover::io
