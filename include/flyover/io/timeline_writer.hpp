#pragma once

#include <string>

#include "flyover/simulate/result.hpp"
#include "flyover/trace/record.hpp"

namespace flyover::io {

// Chrome trace format (JSON object form), which Perfetto and chrome://tracing open. One process per
// rank with a thread per stream, and one process for links with a counter per class. About 120
// bytes an event; docs/formats/result.md has the members.
[[nodiscard]] std::string timeline_json(const Trace& trace, const Result& result);

}  // namespace flyover::io
