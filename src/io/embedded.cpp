#include "flyover/io/embedded.hpp"

#include <algorithm>

#include "flyover/base/error.hpp"

namespace flyover::io {

std::string_view embedded_file(std::string_view path) {
  const auto found = std::ranges::find(embedded_files(), path, &EmbeddedFile::path);
  require(found != embedded_files().end(), "the file is one of configs/");
  return found->text;
}

}  // namespace flyover::io
