#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace flyover {

// A table for the terminal: words to the left, numbers to the right, a line of titles on top.
struct TextTable {
  struct Column {
    std::string title;
    bool words = false;  // Left-aligned.
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // As long as columns; shorter rows end early.
};

// Lines with a final newline. Where `width` (0: any) is too small, columns are left out from the
// right and a last line names them.
[[nodiscard]] std::string render(const TextTable& table, std::size_t width);

// Columns that a string takes on a terminal (UTF-8, no wide characters).
[[nodiscard]] std::size_t display_width(const std::string& text);

}  // namespace flyover
