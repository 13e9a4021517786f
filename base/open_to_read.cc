#include "base/open_to_read.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace carpool {

namespace {
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY;

Fault unreadable(std::string why) {
  return {FaultKind::malformed_request, Side::self, std::move(why)};
}

// A FIFO belongs to the file system of its name, a pipe that was opened as /dev/fd/N to that of the pipes.
bool without_name(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

// /dev/null serves as an empty file.
bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}
}  // namespace

bool describes_path(int error) {
  constexpr std::array kOfThePath{ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, ENXIO};
  return std::find(kOfThePath.begin(), kOfThePath.end(), error) != kOfThePath.end();
}

Fault file_fault(int error) {
  Fault fault = unreadable(std::generic_category().message(error));
  if (!describes_path(error)) fault.kind = FaultKind::budget;
  return fault;
}

Result<Fd> open_to_read(const std::string& path) {
  Fd file(::open(path.c_str(), kFlags | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return file_fault(errno);
  if (S_ISDIR(status.st_mode)) return unreadable("is a directory");
  const bool pipe = S_ISFIFO(status.st_mode) && without_name(file.get());
  if (!pipe && !S_ISREG(status.st_mode) && !is_null_device(status)) return unreadable("is not a regular file");
  if (::fcntl(file.get(), F_SETFL, 0) != 0) return file_fault(errno);  // the reader waits for the pipe's bytes
  return file;
}

Result<Fd> open_any_to_read(const std::string& path) {
  Fd file(::open(path.c_str(), kFlags));
  if (!file) return file_fault(errno);
  return file;
}

}  // namespace carpool
