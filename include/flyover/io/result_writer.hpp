#pragma once

#include <string>

#include "flyover/simulate/result.hpp"
#include "flyover/trace/record.hpp"

namespace flyover::io {

// The result object of docs/formats/result.md, indented JSON with a final newline.
[[nodiscard]] std::string result_json(const Result& result);
// One row per kind of collective, with a header line (RFC 4180).
[[nodiscard]] std::string result_csv(const Result& result);
// Chrome trace format (JSON object form), which Perfetto and chrome://tracing open. One process per
// rank and one for links; one thread per track.
[[nodiscard]] std::string timeline_json(const Trace& trace, const Result& result);

}  // namespace flyover::io
