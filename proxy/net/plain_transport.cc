#include "proxy/net/plain_transport.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/repeat_interrupted.h"
#include "proxy/net/pipe.h"

namespace carpool::proxy::net {
namespace {

constexpr std::size_t kMaxCallPieces = 1024;  // IOV_MAX

bool again(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

std::size_t total(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(Fd socket) : Transport(std::move(socket)) {}

  IoResult read(std::span<char> into) override {
    CARPOOL_ASSERT(!into.empty());
    const ssize_t received = repeat_interrupted([&] { return ::recv(fd(), into.data(), into.size(), 0); });
    if (received < 0) return failed(readable_, "read failed");
    if (received == 0) return ended();
    const auto bytes = static_cast<std::size_t>(received);
    readable_ = bytes == into.size() || reads_to_end_;
    return {Io::ok, bytes, 0, {}};
  }

  IoResult write(std::span<const iovec> from) override {
    const auto pieces = from.first(std::min(from.size(), kMaxCallPieces));
    const std::size_t asked = total(pieces);
    CARPOOL_ASSERT(asked > 0);
    const ssize_t sent = repeat_interrupted([&] { return send_once(pieces); });
    if (sent < 0) return write_failed();
    const auto bytes = static_cast<std::size_t>(sent);
    writable_ = bytes == asked;
    return {Io::ok, bytes, 0, {}};
  }

  bool splices() const override { return true; }

  // A part of `most` does not mean that the socket is empty: small pieces fill the pipe before.
  IoResult splice_to(Pipe& pipe, std::size_t most) override {
    const ssize_t moved = pipe.fill(fd(), most);
    if (moved < 0) return failed(readable_, "read failed");
    if (moved == 0) return ended();
    return {Io::ok, static_cast<std::size_t>(moved), 0, {}};
  }

  IoResult splice_from(Pipe& pipe) override {
    const ssize_t moved = pipe.drain(fd());
    if (moved < 0) return write_failed();
    return {Io::ok, static_cast<std::size_t>(moved), 0, {}};
  }

  void shut_write() override { ::shutdown(fd(), SHUT_WR); }

  bool no_data_pending() override {
    if (hangup_ || lost_) return false;
    const bool silent = peek_byte() < 0 && !lost_;
    if (silent) readable_ = false;
    return silent;
  }

  std::size_t unacknowledged() const override { return net::unacknowledged(fd()); }

  bool ended_in_order() override { return peek_byte() == 0 && !lost_; }

 private:
  ssize_t peek_byte() {
    char byte = 0;
    const ssize_t received = peek(fd(), &byte, sizeof byte);
    lost_ = lost_ || (received < 0 && !again(errno));
    return received;
  }
  ssize_t send_once(std::span<const iovec> pieces) const {
    if (pieces.size() == 1) return ::send(fd(), pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    return ::sendmsg(fd(), &message, MSG_NOSIGNAL);
  }
  static IoResult failed(bool& bit, std::string_view detail) {
    if (!again(errno)) return {Io::failed, 0, errno, detail};
    bit = false;
    return {};
  }
  // EPIPE tells that the peer's FIN preceded the reset.
  IoResult write_failed() {
    lost_ = lost_ || !(again(errno) || errno == EPIPE || cannot_splice(errno));
    return failed(writable_, "write failed");
  }
  IoResult ended() const {
    return lost_ ? IoResult{Io::failed, 0, ECONNRESET, "reset by peer"} : IoResult{Io::eof, 0, 0, "closed by peer"};
  }

  // A write or a peek failed because the connection was reset or has timed out. The system reports that once: a later
  // read finds only the end of the stream.
  bool lost_ = false;
};

}  // namespace

std::uint32_t send_queue_size(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::uint32_t>(bytes) : 0;
}

std::size_t unacknowledged(int fd) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  const bool tcp = ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
  return tcp ? send_queue_size(fd) : 0;
}

ssize_t peek(int fd, void* into, std::size_t size) {
  return repeat_interrupted([&] { return ::recv(fd, into, size, MSG_PEEK | MSG_DONTWAIT); });
}

void prepare_socket(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if ((flags & O_NONBLOCK) == 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails on Unix sockets, which do not delay
}

std::unique_ptr<Transport> make_accepted(Fd socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> make_plain(Fd socket) {
  prepare_socket(socket.get());
  return std::make_unique<PlainTransport>(std::move(socket));
}

}  // namespace carpool::proxy::net
