// Transport: bytes over one established connection, plain or TLS; non-blocking, never buffers what it was not able to
// write. Sticky readiness bits are hints for a syscall, never a verdict (DESIGN §7).
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "exec/loop.h"

namespace carpool::proxy::net {

enum class Io : std::uint8_t {
  ok,           // `bytes` moved, at least 1
  would_block,  // wait for readiness
  eof,          // clean end: FIN, or close_notify on TLS. A FIN without close_notify on TLS is `failed`
  failed,       // `error` says why
};

struct IoResult {
  Io io = Io::would_block;
  std::size_t bytes = 0;
  int error = 0;            // errno; 0 with TLS errors
  std::string_view detail;  // static text for a person
};

// TLS facts for /connections and logs; empty for plain text.
struct SecurityInfo {
  std::string_view version, cipher, alpn;
  bool resumed = false;
};

class Transport {
 public:
  virtual ~Transport() = default;  // closes the descriptor; TLS says close_notify if it costs no wait

  virtual IoResult read(std::span<char> into) = 0;
  // Gathered; may take a part.
  virtual IoResult write(std::span<const iovec> from) = 0;
  // Nothing more will be written (FIN; on TLS close_notify first).
  virtual void shut_write() = 0;
  // Is the wire silent? True: nothing but control records (tickets, KeyUpdate) and EAGAIN behind them.
  // False: data, EOF or an error. Consumes only control records.
  virtual bool no_data_pending() = 0;
  // It is not quiet: because the peer ended it in order (FIN, close_notify), with nothing said before that? Consumes
  // nothing of use: for a connection that is about to be closed.
  virtual bool ended_in_order() = 0;
  virtual SecurityInfo security() const { return {}; }

  int fd() const { return fd_; }
  // What went out must not look whole: the peer sees a reset, the one end that nobody takes for the end of a body.
  // Where there is none (a Unix socket) it sees the end.
  void reset_on_close() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  void on_readiness(exec::Ready ready) {
    readable_ |= ready.readable || ready.hangup || (ready.writable && read_needs_write_);
    writable_ |= ready.writable || ready.hangup;
    hangup_ |= ready.hangup;
  }
  // Before it is watched anew (by another loop): the new registration reports what stands.
  void forget_readiness() {
    readable_ = hangup_ = false;
    writable_ = true;
  }
  bool maybe_readable() const { return readable_ || pending_; }
  bool maybe_writable() const { return writable_; }
  bool hangup_seen() const { return hangup_; }
  // Nothing is known to stand anywhere between here and the wire; else only no_data_pending() can tell.
  bool nothing_pending() const { return !maybe_readable() && !partial_; }

 protected:
  explicit Transport(int fd) : fd_(fd) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  int fd_;
  bool readable_ = false;  // cleared by EAGAIN, and by a short recv while no hangup was seen
  bool writable_ = true;   // cleared by EAGAIN or a short write
  bool hangup_ = false;
  bool pending_ = false;           // TLS: something to read stands in user space, where no event tells of it
  bool partial_ = false;           // TLS: the beginning of a record was taken from the socket
  bool read_needs_write_ = false;  // TLS: reading goes on only after the answer to a KeyUpdate could be written
};

}  // namespace carpool::proxy::net
