#include "proxy/server/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace carpool::proxy {

namespace {
// open() returns the lowest free number, which is `fd` if all lower ones are open. O_PATH serves for a root directory
// without /dev; such a descriptor only occupies the number.
bool occupy(int fd) {
  const int direction = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
  int opened = ::open("/dev/null", direction);
  if (opened < 0) opened = ::open("/", O_PATH | O_DIRECTORY);
  return opened == fd;
}
}  // namespace

bool open_missing_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && !occupy(fd)) return false;
  }
  return true;
}

}  // namespace carpool::proxy
