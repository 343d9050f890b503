#pragma once

// The files of configs/ and validation/, compiled into the library, so that an installed program
// needs no data folder.

#include <span>
#include <string_view>

namespace flyover::io {

struct EmbeddedFile {
  std::string_view path;  // Below configs/: "hardware/gpus.json"; "validation/ID.json".
  std::string_view text;
};

// In order of path.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

// The text of one; it must be there.
[[nodiscard]] std::string_view embedded_file(std::string_view path);

}  // namespace flyover::io
