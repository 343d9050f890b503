#pragma once

#include <string>

#include "flyover/simulate/result.hpp"

namespace flyover::io {

// The result object of docs/formats/result.md, indented JSON with a final newline.
[[nodiscard]] std::string result_json(const Result& result);
// One row per kind of collective, with a header line (RFC 4180).
[[nodiscard]] std::string result_csv(const Result& result);

}  // namespace flyover::io
