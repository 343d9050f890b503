#pragma once

#include "flyover/io/document.hpp"
#include "flyover/simulate/result.hpp"

namespace flyover::io {

// Reads back what result_json wrote. Throws InputError for anything else.
[[nodiscard]] Result read_result(const Document& document);

}  // namespace flyover::io
