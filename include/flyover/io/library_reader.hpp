#pragma once

// Communication libraries as files: those of configs/libraries/, compiled in, or one of the user's
// own.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/cost/library.hpp"
#include "flyover/io/document.hpp"

namespace flyover::io {

// The text of a library: the file `name` when it ends in ".json", else the shipped one of that name
// ("nccl-2.27", "ideal"), else the highest version of it ("nccl"), else the nearest older version
// ("nccl-2.20" takes 2.19, which the library's notes then say; of "nccl-2.27.7" only 2.27 counts).
// A file with "extends": "nccl-2.27" states only what differs: it is laid over that library as a
// merge patch (RFC 7386), and errors count the lines of the result. Throws InputError with the
// nearest name when there is none.
[[nodiscard]] Document library_document(std::string_view name);
// The names of shipped libraries, in alphabetical order.
[[nodiscard]] std::vector<std::string> library_names();

// The text of a library file by its stem ("nccl-2.27").
using LibraryTexts = std::function<std::string(const std::string& stem)>;
// Reads the library `stem` and what it extends from other texts than the shipped ones.
[[nodiscard]] Library read_library_from(const std::string& stem, const LibraryTexts& texts);

// Reads one library. Throws InputError, with the place, for whatever is missing, unknown or
// impossible.
[[nodiscard]] Library read_library(const Document& document);

struct LibraryInput {
  Library library;
  std::string digest;  // Of the text and every setting but variables.
};
// The library of this name with settings of its file, then variables ("NCCL_ALGO") set. Throws
// InputError; of variables with the place "--set nccl.NAME".
[[nodiscard]] LibraryInput load_library_input(std::string_view name,
                                              std::span<const Setting> settings,
                                              std::span<const Setting> variables);

}  // namespace flyover::io
