#pragma once

// Finding words in the free text of measurements. All ignore case.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace flyover {

[[nodiscard]] std::string lower_case(std::string_view text);
// `text` must be in lower case.
[[nodiscard]] bool mentions(std::string_view text, std::initializer_list<std::string_view> words);

// "16x200G" as 16 ports of 200 Gb/s.
struct PortCount {
  std::uint32_t ports = 0;
  double gigabits = 0;
};
[[nodiscard]] std::optional<PortCount> port_count(std::string_view text);

// "two nvlink domains", "2x nvl72": the number of scale-up domains that the text counts.
[[nodiscard]] std::optional<std::uint32_t> domain_count(std::string_view text);

}  // namespace flyover
