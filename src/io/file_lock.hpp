#pragma once

// One process at a time: a lock on a file beside the one that is meant, which dies with its
// process.
//
// Beside it, because closing any descriptor of a file drops all POSIX locks that the process has on
// it, and those are what SQLite guards its own writes with: we must not open the database
// ourselves. flock(2), because its locks belong to the open file and not to the process, so that a
// second writer in the same process is refused as well.

#include <string>

namespace flyover::io {

class FileLock {
 public:
  // Of `path`, by the file path + ".lock". Throws InputError when another process has it or the
  // folder cannot be written.
  explicit FileLock(const std::string& path);
  ~FileLock();  // Removes the file.
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string file_;
  int descriptor_ = -1;
};

}  // namespace flyover::io
