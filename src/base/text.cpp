#include "flyover/base/text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover {

namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Insertions, deletions, substitutions and swaps of neighbours (Damerau 1964), no part edited
// twice.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> back(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_back.swap(back);
    back.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
  }
  return row.back();
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::string wanted = lower_case(name);
  if (wanted.empty()) return {};

  // A third of the letters wrong is still a slip; more is another word.
  const std::size_t limit = std::clamp<std::size_t>(wanted.size() / 3, 1, 3);
  const std::string* best = nullptr;
  std::size_t best_distance = limit + 1;
  std::size_t best_prefix = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t gap =
        std::max(candidate.size(), wanted.size()) - std::min(candidate.size(), wanted.size());
    if (gap > limit) continue;
    const std::string word = lower_case(candidate);
    const std::size_t distance = edit_distance(wanted, word);
    const std::size_t prefix = common_prefix(wanted, word);
    if (distance < best_distance ||
        (distance == best_distance && best != nullptr && prefix > best_prefix)) {
      best = &candidate;
      best_distance = distance;
      best_prefix = prefix;
    }
  }
  // All letters of a short word replaced is no slip.
  if (best != nullptr && best_distance < wanted.size()) return *best;

  // A part of a name ("h100" of "dgx-h100"), or a name with more around it.
  best = nullptr;
  for (const std::string& candidate : candidates) {
    const std::string word = lower_case(candidate);
    const bool part = wanted.size() >= 3 && word.find(wanted) != std::string::npos;
    const bool whole = word.size() >= 3 && wanted.find(word) != std::string::npos;
    const auto gap = [&](const std::string& other) {
      return std::max(other.size(), wanted.size()) - std::min(other.size(), wanted.size());
    };
    if ((part || whole) && (best == nullptr || gap(candidate) < gap(*best))) best = &candidate;
  }
  return best == nullptr ? std::string{} : *best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string candidate = nearest(name, candidates);
  return candidate.empty() ? std::string{} : fmt::format(", did you mean \"{}\"?", candidate);
}

std::vector<std::uint32_t> parse_index_list(std::string_view text, std::uint32_t limit) {
  const auto number = [&](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    std::uint64_t value = 0;
    const char* last = part.data() + part.size();
    const auto [end, error] = std::from_chars(part.data(), last, value);
    if (part.empty() || end != last || error == std::errc::invalid_argument) {
      throw InputError(
          fmt::format("expected a list of numbers such as \"0-3,8,12-15\", got \"{}\"", text));
    }
    if (error == std::errc::result_out_of_range || value >= limit) {
      throw InputError(limit == 0
                           ? fmt::format("{} is out of range: there are none to name", part)
                           : fmt::format("{} is out of range, expected 0 to {}", part, limit - 1));
    }
    return static_cast<std::uint32_t>(value);
  };

  std::vector<std::uint32_t> list;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest = more ? rest.substr(comma + 1) : std::string_view{};

    const std::size_t dash = item.find('-');
    const std::uint32_t first = number(item.substr(0, dash));
    const std::uint32_t last =
        dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (last < first) {
      throw InputError(fmt::format("the range {}-{} falls, write {}-{}", first, last, last, first));
    }
    for (std::uint32_t i = first; i <= last; ++i) list.push_back(i);
    // Repeats show as soon as there are more numbers than there can be, before memory runs out.
    if (list.size() > limit) break;
  }

  std::vector<std::uint32_t> sorted = list;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    throw InputError(fmt::format("{} is named twice in \"{}\"", *twice, text));
  }
  return list;
}

std::string index_list(std::span<const std::uint32_t> numbers) {
  std::string list;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    list += fmt::format("{}{}", first == 0 ? "" : ",", numbers[first]);
    if (last > first) list += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return list;
}

}  // namespace flyover
