#include "proxy/server/handover/fd_message.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/repeat_interrupted.h"

namespace carpool::proxy {

namespace {
// Length: size of the text, sent first together with the descriptors.
using Length = std::uint64_t;

Fault failed(const char* what) {
  const std::string why =
      errno == 0 ? "the peer closed the connection" : std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  return {FaultKind::internal, Side::self, std::string("hand-over: ") + what + ": " + why};
}

void bound(int socket, int option, Duration timeout) {
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  const timeval limit{whole / 1'000'000, whole % 1'000'000};
  ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
}

Status send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = repeat_interrupted([&] { return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (sent < 0) return failed("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Done{};
}

Status receive_all(int socket, std::span<char> bytes) {
  while (!bytes.empty()) {
    errno = 0;
    const ssize_t received = repeat_interrupted([&] { return ::recv(socket, bytes.data(), bytes.size(), 0); });
    if (received <= 0) return failed("receive");
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return Done{};
}

constexpr std::size_t kControl = CMSG_SPACE(FdMessage::kMaxDescriptors * sizeof(int));

void take_descriptors(msghdr& message, std::vector<Fd>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}
}  // namespace

Status send_fds(int socket, const FdMessage& fd_message, Duration timeout) {
  bound(socket, SO_SNDTIMEO, timeout);
  Length length = fd_message.text.size();
  if (length > FdMessage::kMaxBytes || fd_message.descriptors.size() > FdMessage::kMaxDescriptors) {
    return Fault{FaultKind::internal, Side::self, "hand-over: too many sockets"};
  }
  iovec piece{&length, sizeof length};
  alignas(cmsghdr) std::array<char, kControl> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fd_message.descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fd_message.descriptors.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fd_message.descriptors.size() * sizeof(int));
    for (std::size_t i = 0; i < fd_message.descriptors.size(); ++i) {
      const int fd = fd_message.descriptors[i].get();
      std::memcpy(CMSG_DATA(part) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  const ssize_t sent = repeat_interrupted([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
  if (sent != static_cast<ssize_t>(sizeof length)) return failed("send");
  return send_all(socket, fd_message.text);
}

Result<FdMessage> receive_fds(int socket, Duration timeout) {
  bound(socket, SO_RCVTIMEO, timeout);
  FdMessage fd_message;
  Length length = 0;
  iovec piece{&length, sizeof length};
  alignas(cmsghdr) std::array<char, kControl> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  errno = 0;
  const ssize_t received =
      repeat_interrupted([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL); });
  if (received > 0) take_descriptors(message, fd_message.descriptors);
  if (received != static_cast<ssize_t>(sizeof length) || (message.msg_flags & MSG_CTRUNC) != 0)
    return failed("receive");
  if (length > FdMessage::kMaxBytes) return Fault{FaultKind::internal, Side::self, "hand-over: the state is too long"};
  fd_message.text.resize(length);
  if (Status whole = receive_all(socket, fd_message.text); !whole) return whole.take_fault();
  return fd_message;
}

}  // namespace carpool::proxy
