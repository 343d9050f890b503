#pragma once

#include <string>
#include <string_view>

namespace flyover::cli {

// The text as a gzip file (RFC 1952) without time or name, so that equal texts have equal bytes.
[[nodiscard]] std::string gzip(std::string_view text);

}  // namespace flyover::cli
