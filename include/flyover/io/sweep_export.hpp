#pragma once

// A sweep's rows for programs that do not read SQLite. The same bytes for the same results: what
// differs from run to run (CPU time, when a point was finished) is left out.

#include <string>

#include "flyover/io/sweep_store.hpp"

namespace flyover::io {

// Quoted as RFC 4180 has it, lines end in \n. The first has the names: number, status, reason,
// inputs, outputs, as the columns of view `results` are called. A value that a point does not have
// is an empty field; an empty text is "".
[[nodiscard]] std::string sweep_csv(const StoredSweep& sweep);

// docs/formats/sweep-database.md, "Exports".
[[nodiscard]] std::string sweep_json(const StoredSweep& sweep);

}  // namespace flyover::io
