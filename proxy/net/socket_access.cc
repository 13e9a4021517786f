#include "proxy/net/socket_access.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/fd.h"

namespace carpool::proxy::net {

namespace {
Fault refused(const char* what, const char* path, const char* why) {
  return {FaultKind::unroutable, Side::self, std::string(what) + " of " + path + ": " + why};
}

const char* system_error() {
  return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
}
}  // namespace

// Another user who may write to the folder may have put another file, or a link to one, at the path. The descriptor
// refers to what is at the path now, and both calls change this file.
Status set_access(const Address& address, const SocketAccess& access) {
  if (address.family() != AF_UNIX || (!access.group && !access.mode)) return Done{};
  const char* const path = reinterpret_cast<const sockaddr_un*>(address.get())->sun_path;
  const char* const first = access.group ? "group" : "mode";
  const Fd file(::open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return refused(first, path, system_error());
  if (!S_ISSOCK(status.st_mode)) return refused(first, path, "another file has replaced the socket");
  if (status.st_uid != ::geteuid()) return refused(first, path, "another user's socket has replaced this process's");
  constexpr uid_t kSameOwner = static_cast<uid_t>(-1);
  // The group is set first: until then the mode must not admit the members of another one.
  if (access.group && ::fchownat(file.get(), "", kSameOwner, *access.group, AT_EMPTY_PATH) != 0)
    return refused("group", path, system_error());
  // fchmod() refuses such a descriptor; this path refers to the same file.
  const std::string same = "/proc/self/fd/" + std::to_string(file.get());
  if (access.mode && ::chmod(same.c_str(), *access.mode) != 0) return refused("mode", path, system_error());
  return Done{};
}

}  // namespace carpool::proxy::net
