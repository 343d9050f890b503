#pragma once

// Communication libraries as files: configs/libraries/*.json, or one of the user's own.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "flyover/cost/library.hpp"
#include "flyover/io/document.hpp"

namespace flyover::io {

// Reads one library. Throws InputError, with the place, for whatever is missing, unknown or impossible.
[[nodiscard]] Library read_library(const Document& document);

// The file of a library: `name` itself when it ends in ".json", else the file of `folder` that has the
// name ("nccl-2.27", "ideal"), else its highest version ("nccl"). Throws InputError with the nearest
// name when there is none.
[[nodiscard]] std::filesystem::path find_library(const std::filesystem::path& folder,
                                                 std::string_view name);
// The names that find_library knows, in alphabetical order.
[[nodiscard]] std::vector<std::string> library_names(const std::filesystem::path& folder);

}  // namespace flyover::io
