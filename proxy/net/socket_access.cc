#include "proxy/net/socket_access.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace carpool::proxy::net {

namespace {
Fault refused(const char* what, const char* path) {
  return {FaultKind::unroutable, Side::self,
          std::string(what) + " of " + path + ": " + std::strerror(errno)};  // NOLINT(concurrency-mt-unsafe)
}
}  // namespace

Status set_access(const Address& address, const SocketAccess& access) {
  if (address.family() != AF_UNIX) return Done{};
  const char* const path = reinterpret_cast<const sockaddr_un*>(address.get())->sun_path;
  constexpr uid_t kSameOwner = static_cast<uid_t>(-1);
  // The group is set first: until then the mode must not admit the members of another one.
  if (access.group && ::chown(path, kSameOwner, *access.group) != 0) return refused("group", path);
  if (access.mode && ::chmod(path, *access.mode) != 0) return refused("mode", path);
  return Done{};
}

}  // namespace carpool::proxy::net
