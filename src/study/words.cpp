#include "words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace flyover {

namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// The number whose last digit is before `end`; of "nvl72" too.
std::optional<std::uint32_t> number_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  std::uint32_t value = 0;
  const auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, value);
  if (begin == end || error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::optional<PortCount> port_count(std::string_view text) {
  for (std::size_t x = text.find('x'); x != std::string_view::npos; x = text.find('x', x + 1)) {
    const auto ports = number_before(text, x);
    std::size_t end = x + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    const auto gigabits = number_before(text, end);
    const bool in_gigabits = end < text.size() && (text[end] == 'g' || text[end] == 'G');
    if (ports && *ports > 0 && end > x + 1 && gigabits && *gigabits > 0 && in_gigabits) {
      return PortCount{*ports, static_cast<double>(*gigabits)};
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> domain_count(std::string_view text) {
  const std::size_t rack = text.find("x nvl72");
  if (rack != std::string_view::npos) {
    if (const auto number = number_before(text, rack)) return number;
  }
  constexpr std::array<std::string_view, 8> words = {"one",  "two", "three", "four",
                                                     "five", "six", "seven", "eight"};
  for (const std::string_view unit : {"nvlink domains", "nvl72 racks", "racks"}) {
    const std::size_t at = text.find(unit);
    if (at == std::string_view::npos || at == 0) continue;
    const std::string_view before = text.substr(0, at - 1);
    const std::size_t space = before.rfind(' ');
    const std::string_view word = space == before.npos ? before : before.substr(space + 1);
    if (std::ranges::all_of(word, is_digit)) return number_before(word, word.size());
    const auto named = std::ranges::find(words, word);
    if (named != words.end()) return static_cast<std::uint32_t>(named - words.begin() + 1);
  }
  return std::nullopt;
}

}  // namespace flyover
