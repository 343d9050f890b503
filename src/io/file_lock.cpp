#include "io/file_lock.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "flyover/base/error.hpp"

namespace flyover::io {

namespace {

// Who held the lock before may have removed the file between our open and our lock: then we hold
// one that nobody else will find.
bool is_still(int descriptor, const std::string& file) {
  struct stat ours {};
  struct stat there {};
  return fstat(descriptor, &ours) == 0 && stat(file.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

}  // namespace

FileLock::FileLock(const std::string& path) : file_(path + ".lock") {
  while (true) {
    descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      throw InputError(Place{path, 0, 0, ""},
                       fmt::format("cannot be written, its folder does not take {}: {}", file_,
                                   std::strerror(errno)));
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      close(descriptor_);
      if (error == EINTR) continue;
      if (error == EWOULDBLOCK) {
        throw InputError(Place{path, 0, 0, ""},
                         "another process is writing it; wait for it or choose another file");
      }
      throw InputError(Place{path, 0, 0, ""},
                       fmt::format("cannot be locked ({}: {}); choose a file on a disk that can",
                                   file_, std::strerror(error)));
    }
    if (is_still(descriptor_, file_)) return;
    close(descriptor_);
  }
}

FileLock::~FileLock() {
  // While it is held, so that nobody loses a lock on a file that is no longer there.
  unlink(file_.c_str());
  close(descriptor_);
}

}  // namespace flyover::io
