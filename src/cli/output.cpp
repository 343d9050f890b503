#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/gzip.hpp"
#include "flyover/base/error.hpp"

namespace flyover::cli {

namespace {

constexpr std::string_view standard_output = "-";

[[noreturn]] void cannot_write(std::string_view option, std::string_view path,
                               std::string_view reason) {
  throw InputError(fmt::format("{} {}: cannot be written: {}", option, path, reason));
}

std::string last_error() {
  return std::strerror(errno);
}

// A pipe or a device, such as /dev/null: it is written to, never replaced.
bool is_special(const std::filesystem::path& target) {
  const auto status = std::filesystem::status(target);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

std::filesystem::path draft_of(const std::filesystem::path& target) {
  auto draft = target;
  draft.replace_filename(fmt::format(".{}.{}.part", target.filename().string(), ::getpid()));
  return draft;
}

}  // namespace

Terminal detect_terminal(bool quiet) {
  Terminal terminal;
  terminal.quiet = quiet;
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* columns = std::getenv("COLUMNS");
  winsize size{};
  if (columns != nullptr && std::atoi(columns) > 0) {
    terminal.width = static_cast<std::size_t>(std::atoi(columns));
  } else if (is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    terminal.width = size.ws_col;
  }
  return terminal;
}

OutputFiles::~OutputFiles() {
  for (const File& file : files_) {
    std::error_code ignored;
    if (!file.draft.empty() && file.draft != file.target) {
      std::filesystem::remove(file.draft, ignored);
    }
  }
}

void OutputFiles::claim(std::string_view option, const std::string& path) {
  if (path.empty()) return;
  File file{std::string(option), path, {}, {}, {}};
  if (path != standard_output) {
    std::error_code error;
    file.target = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
    if (error) cannot_write(option, path, error.message());
  }
  for (const File& other : files_) {
    if (other.target == file.target) {
      throw InputError(fmt::format("{} and {} both name {}", other.option, option,
                                   path == standard_output ? "standard output" : path));
    }
  }
  if (path != standard_output) {
    if (std::filesystem::is_directory(file.target)) cannot_write(option, path, "is a directory");
    if (std::filesystem::exists(file.target) && ::access(file.target.c_str(), W_OK) != 0) {
      cannot_write(option, path, last_error());
    }
    if (!is_special(file.target) && ::access(file.target.parent_path().c_str(), W_OK | X_OK) != 0) {
      cannot_write(option, path, last_error());
    }
  }
  files_.push_back(std::move(file));
}

void OutputFiles::put(std::string_view option, const std::function<std::string()>& make_text) {
  const auto file = std::ranges::find(files_, option, &File::option);
  if (file == files_.end()) return;
  std::string text = make_text();
  if (file->path.ends_with(".gz")) text = gzip(text);
  if (file->path == standard_output) {
    file->text = std::move(text);
    return;
  }
  file->draft = is_special(file->target) ? file->target : draft_of(file->target);
  std::ofstream stream(file->draft, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) cannot_write(option, file->path, last_error());
}

bool OutputFiles::wants(std::string_view option) const {
  return std::ranges::find(files_, option, &File::option) != files_.end();
}

void OutputFiles::commit() {
  for (File& file : files_) {
    require(file.path == standard_output || !file.draft.empty(), "a claimed file was put");
    if (file.path == standard_output) {
      print(file.text);
      continue;
    }
    if (file.draft != file.target) {
      std::error_code error;
      std::filesystem::rename(file.draft, file.target, error);
      if (error) cannot_write(file.option, file.path, error.message());
    }
    file.draft.clear();
    spdlog::info("wrote {}", file.path);
  }
}

bool OutputFiles::uses_standard_output() const {
  return std::ranges::find(files_, standard_output, &File::path) != files_.end();
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void finish_standard_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw InputError(fmt::format("standard output cannot be written: {}", last_error()));
  }
}

}  // namespace flyover::cli
