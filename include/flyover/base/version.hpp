#pragma once

#include <string_view>

namespace flyover {

[[nodiscard]] std::string_view version();  // "0.1.0"

}  // namespace flyover
