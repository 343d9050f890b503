#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flyover {

// The candidate nearest to `name` by edit distance (case ignored), or "" when none is near enough
// to be what was meant.
[[nodiscard]] std::string nearest(std::string_view name, std::span<const std::string> candidates);

// ", did you mean \"x\"?" for the nearest candidate, or "".
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       std::span<const std::string> candidates);

// Reads "0-3,8,12-15" as {0,1,2,3,8,12,13,14,15}. Throws InputError on syntax, on a falling range,
// on a repeated number, and on numbers of `limit` or more.
[[nodiscard]] std::vector<std::uint32_t> parse_index_list(std::string_view text,
                                                          std::uint32_t limit);

// The shortest list that parse_index_list reads as these numbers: "0-3,8".
[[nodiscard]] std::string index_list(std::span<const std::uint32_t> numbers);

}  // namespace flyover
