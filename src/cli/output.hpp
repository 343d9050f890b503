#pragma once

// Where results go: standard output, as people see it, and files that appear whole or not at all.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flyover::cli {

// How the reader looks at standard output.
struct Terminal {
  std::size_t width = 0;  // Columns; 0 when nothing limits the width of a line.
  bool quiet = false;     // --quiet: no text for people.
};

// COLUMNS wins over the width that the terminal reports; what is not a terminal has no width.
[[nodiscard]] Terminal detect_terminal(bool quiet);

// The files that one command was asked for. Claim them all before work starts, put them when it is
// done, and commit last: an error anywhere leaves the folder as it was.
class OutputFiles {
 public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();  // Removes what was not committed.

  // An empty path is no file, "-" is standard output. Throws InputError, naming the option, when
  // the path cannot be written or two options name one path.
  void claim(std::string_view option, const std::string& path);
  // If the option's file was claimed, makes its text and writes it beside the final file;
  // compressed where the name ends in ".gz".
  void put(std::string_view option, const std::function<std::string()>& make_text);
  [[nodiscard]] bool wants(std::string_view option) const;
  // Moves every file to its place and prints what is for standard output.
  void commit();

  // One of the files is standard output, which is then no place for tables.
  [[nodiscard]] bool uses_standard_output() const;

 private:
  struct File {
    std::string option;
    std::string path;              // As the user wrote it.
    std::filesystem::path target;  // With symbolic links followed.
    std::filesystem::path draft;   // Written so far; the target itself for pipes and devices.
    std::string text;              // For standard output.
  };

  std::vector<File> files_;
};

void print(std::string_view text);  // To standard output.
// Throws InputError when something printed could not be written, as on a full disk.
void finish_standard_output();

}  // namespace flyover::cli
