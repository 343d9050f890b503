#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flyover {

// How data and flags travel: LL flags every 4 bytes, LL128 every 120, Simple signals per chunk.
enum class Protocol : std::uint8_t { LL, LL128, Simple };
inline constexpr Protocol all_protocols[] = {Protocol::LL, Protocol::LL128, Protocol::Simple};
[[nodiscard]] std::string_view to_string(Protocol protocol);            // "LL", "LL128", "Simple"
[[nodiscard]] std::optional<Protocol> protocol(std::string_view name);  // Case is ignored.

}  // namespace flyover
