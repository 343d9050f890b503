#pragma once

// Communication libraries as files: those of configs/libraries/, compiled in, or one of the user's
// own.

#include <string>
#include <string_view>
#include <vector>

#include "flyover/cost/library.hpp"
#include "flyover/io/document.hpp"

namespace flyover::io {

// The text of a library: the file `name` when it ends in ".json", else the shipped one of that name
// ("nccl-2.27", "ideal"), else the highest version of it ("nccl"). Throws InputError with the
// nearest name when there is none.
[[nodiscard]] Document library_document(std::string_view name);
// The names of shipped libraries, in alphabetical order.
[[nodiscard]] std::vector<std::string> library_names();

// Reads one library. Throws InputError, with the place, for whatever is missing, unknown or
// impossible.
[[nodiscard]] Library read_library(const Document& document);

}  // namespace flyover::io
