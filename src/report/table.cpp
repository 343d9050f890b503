#include "flyover/report/table.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace flyover {

namespace {

constexpr std::string_view gap = "  ";

void append_cell(std::string& line, const std::string& text, std::size_t width, bool left) {
  const std::string padding(width - display_width(text), ' ');
  line += left ? text + padding : padding + text;
}

}  // namespace

std::size_t display_width(const std::string& text) {
  // Every byte but UTF-8's continuation bytes (10xxxxxx) begins a character.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string render(const TextTable& table, std::size_t width) {
  std::vector<std::size_t> widths;
  for (const auto& column : table.columns) widths.push_back(display_width(column.title));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }

  std::size_t shown = 0;
  std::size_t used = 0;
  while (shown < widths.size()) {
    const std::size_t more = widths[shown] + (shown == 0 ? 0 : gap.size());
    if (width != 0 && shown > 0 && used + more > width) break;
    used += more;
    ++shown;
  }

  std::string out;
  const auto append_line = [&](const auto& cell, std::size_t cells) {
    std::string line;
    for (std::size_t i = 0; i < std::min(shown, cells); ++i) {
      if (i > 0) line += gap;
      append_cell(line, cell(i), widths[i], table.columns[i].words);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  append_line([&](std::size_t i) { return table.columns[i].title; }, table.columns.size());
  for (const auto& row : table.rows) {
    append_line([&](std::size_t i) { return row[i]; }, row.size());
  }
  if (shown < widths.size()) {
    std::vector<std::string> hidden;
    for (std::size_t i = shown; i < widths.size(); ++i) hidden.push_back(table.columns[i].title);
    out += fmt::format("(left out for lack of width: {})\n", fmt::join(hidden, ", "));
  }
  return out;
}

}  // namespace flyover
