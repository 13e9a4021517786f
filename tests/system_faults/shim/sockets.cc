// socket, connect, accept, bind and listen.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "descriptors.h"

using system_faults::fails;
using system_faults::Function;
using system_faults::Made;

namespace {

bool is_local(int fd) {
  int family = 0;
  socklen_t length = sizeof family;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == AF_UNIX;
}

}  // namespace

extern "C" {

int socket(int family, int type, int protocol) noexcept {
  SYSTEM_FAULTS_NEXT(socket);
  if (fails(Function::socket)) return -1;
  const int fd = next(family, type, protocol);
  const bool datagram = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_DGRAM;
  system_faults::note_made(fd, datagram ? Made::datagram : family == AF_UNIX ? Made::local : Made::stream);
  return fd;
}

int connect(int fd, const sockaddr* address, socklen_t length) {
  SYSTEM_FAULTS_NEXT(connect);
  if (!fails(Function::connect)) return next(fd, address, length);
  if (errno == EINTR) next(fd, address, length);  // the connection is made nevertheless
  if (errno != EINPROGRESS) errno = static_cast<int>(system_faults::control()->error);
  return -1;
}

int accept4(int fd, sockaddr* peer, socklen_t* length, int flags) {
  SYSTEM_FAULTS_NEXT(accept4);
  const bool failing = fails(Function::accept);
  const int error = errno;
  if (failing && error == EAGAIN) system_faults::owe_event(fd);
  if (failing && error != ECONNABORTED) return -1;
  const int client = next(fd, peer, length, flags);
  system_faults::note_made(client, is_local(fd) ? Made::local : Made::accepted);
  if (!failing || client < 0) return client;
  ::close(client);  // the client disconnected before it was accepted
  errno = error;
  return -1;
}

int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  SYSTEM_FAULTS_NEXT(bind);
  return fails(Function::bind) ? -1 : next(fd, address, length);
}

int listen(int fd, int backlog) noexcept {
  SYSTEM_FAULTS_NEXT(listen);
  return fails(Function::listen) ? -1 : next(fd, backlog);
}

}  // extern "C"
