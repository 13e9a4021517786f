#include "proxy/net/bind.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace carpool::proxy::net {

namespace {
constexpr mode_t kOwnerOnly = 0600;

Fault system_fault(std::string what) {
  return {FaultKind::unroutable, Side::self,
          std::move(what) + ": " + std::strerror(errno)};  // NOLINT(concurrency-mt-unsafe)
}

// Removes a socket file that a crash left behind: connections to it are refused, as they are to a regular file. The
// probe does not wait for room in the accept queue of a live listener (EAGAIN).
void remove_dead_socket(const Address& address) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe || ::connect(probe.get(), address.get(), address.length()) == 0 || errno != ECONNREFUSED) return;
  remove_socket_file(address);
}
}  // namespace

SocketFile::~SocketFile() {
  if (address_.family() == AF_UNIX) remove_socket_file(address_);
}

void remove_socket_file(const Address& address) {
  const char* path = reinterpret_cast<const sockaddr_un*>(address.get())->sun_path;
  struct stat file {};
  if (::lstat(path, &file) == 0 && S_ISSOCK(file.st_mode)) ::unlink(path);
}

Result<Bound> bind_and_listen(const std::string& text, int backlog, const SocketAccess& access) {
  Result<Address> wanted = Address::parse(text);
  if (!wanted) return wanted.take_fault();
  Bound bound;
  bound.fd.reset(::socket(wanted->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!bound.fd) return system_fault("socket for " + text);
  const int on = 1;
  if (wanted->family() != AF_UNIX) {
    // Accepted sockets inherit all options. The second limits what the kernel buffers for a slow reader and makes the
    // client's progress visible: a socket becomes writable again when less than that is unsent.
    const int unsent = 128 * 1024;
    ::setsockopt(bound.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(bound.fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    // Keep-alive probes end the stream of a vanished client within two minutes, even without data, as for origins.
    ::setsockopt(bound.fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    for (const auto& [option, value] : {std::pair{TCP_KEEPIDLE, 60}, {TCP_KEEPINTVL, 15}, {TCP_KEEPCNT, 4}}) {
      ::setsockopt(bound.fd.get(), IPPROTO_TCP, option, &value, sizeof value);
    }
  }
  if (wanted->family() == AF_UNIX) {
    remove_dead_socket(*wanted);
    // bind() creates the file with the mode of the socket, reduced by the umask.
    if (access.mode || access.group) ::fchmod(bound.fd.get(), kOwnerOnly);
  } else {
    ::setsockopt(bound.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (::bind(bound.fd.get(), wanted->get(), wanted->length()) != 0) return system_fault("bind " + text);
  bound.file = SocketFile(*wanted);
  if (Status set = set_access(*wanted, access); !set) return set.take_fault();
  if (::listen(bound.fd.get(), backlog) != 0) return system_fault("listen " + text);
  bound.address = Address::local_of(bound.fd.get());
  return bound;
}

Result<Bound> bind_for_owner(const std::string& text, int backlog) {
  return bind_and_listen(text, backlog, {.mode = kOwnerOnly, .group = std::nullopt});
}

}  // namespace carpool::proxy::net
