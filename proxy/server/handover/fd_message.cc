#include "proxy/server/handover/fd_message.h"

#include <poll.h>
#include <sys/socket.h>

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

// Repeats `transfer`, which must not block, until it succeeds or fails, or `until` has passed (ETIMEDOUT).
template <class Transfer>
ssize_t before(Instant until, int socket, short event, Transfer transfer) {
  for (;;) {
    errno = 0;
    const ssize_t moved = repeat_interrupted(transfer);
    if (moved >= 0 || errno != EAGAIN) return moved;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd waiting{socket, event, 0};
    if (left.count() > 0 && ::poll(&waiting, 1, static_cast<int>(left.count())) != 0) continue;
    errno = ETIMEDOUT;
    return -1;
  }
}

Status send_all(int socket, std::string_view bytes, Instant until) {
  while (!bytes.empty()) {
    const auto send = [&] { return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); };
    const ssize_t sent = before(until, socket, POLLOUT, send);
    if (sent < 0) return failed("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Done{};
}

Status receive_all(int socket, std::span<char> bytes, Instant until) {
  while (!bytes.empty()) {
    const auto receive = [&] { return ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT); };
    const ssize_t received = before(until, socket, POLLIN, receive);
    if (received <= 0) return failed("receive");
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return Done{};
}

constexpr std::size_t kControl = CMSG_SPACE(FdMessage::kMaxDescriptors * sizeof(int));

void read_descriptors(msghdr& message, std::vector<Fd>& descriptors) {
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
  const Instant until = deadline_after(Clock::now(), timeout);
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
  const auto send = [&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); };
  const ssize_t sent = before(until, socket, POLLOUT, send);
  if (sent != static_cast<ssize_t>(sizeof length)) return failed("send");
  return send_all(socket, fd_message.text, until);
}

Result<FdMessage> receive_fds(int socket, Duration timeout) {
  const Instant until = deadline_after(Clock::now(), timeout);
  FdMessage fd_message;
  Length length = 0;
  iovec piece{&length, sizeof length};
  alignas(cmsghdr) std::array<char, kControl> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto receive = [&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); };
  const ssize_t received = before(until, socket, POLLIN, receive);
  if (received > 0) read_descriptors(message, fd_message.descriptors);
  if (received != static_cast<ssize_t>(sizeof length) || (message.msg_flags & MSG_CTRUNC) != 0)
    return failed("receive");
  if (length > FdMessage::kMaxBytes) return Fault{FaultKind::internal, Side::self, "hand-over: the state is too long"};
  fd_message.text.resize(length);
  if (Status whole = receive_all(socket, fd_message.text, until); !whole) return whole.take_fault();
  return fd_message;
}

}  // namespace carpool::proxy
