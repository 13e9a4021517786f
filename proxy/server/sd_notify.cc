#include "proxy/server/sd_notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "base/repeat_interrupted.h"

namespace carpool::proxy {

void sd_notify(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): the environment is never modified
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // Linux's abstract namespace
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const timeval limit{.tv_sec = 1, .tv_usec = 0};  // without one, the start would wait for a manager that never reads
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  static_cast<void>(
      repeat_interrupted([&] { return ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL, to, size); }));
}

}  // namespace carpool::proxy
