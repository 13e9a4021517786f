// Transport: bytes over one established connection, plain or TLS; non-blocking; never buffers unwritten data. The
// sticky readiness bits are hints for a syscall, never a verdict.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/fd.h"
#include "exec/loop.h"

namespace carpool::proxy::net {

enum class Io : std::uint8_t {
  ok,           // `bytes` were moved, at least 1
  would_block,  // wait for readiness
  eof,          // clean end: FIN, or close_notify on TLS. A FIN without close_notify on TLS is `failed`
  failed,       // see `error`
};

struct IoResult {
  Io io = Io::would_block;
  std::size_t bytes = 0;
  int error = 0;            // errno; 0 with TLS errors
  std::string_view detail;  // static text for diagnostics
};

// TLS parameters for /connections and logs; empty for plain text.
struct SecurityInfo {
  std::string_view version, cipher, alpn;
  bool resumed = false;
};

class Pipe;

class Transport {
 public:
  virtual ~Transport() = default;  // closes the descriptor; TLS sends close_notify if it does not block

  virtual IoResult read(std::span<char> into) = 0;
  // Gathering write; may be partial.
  virtual IoResult write(std::span<const iovec> from) = 0;
  // Half-closes: nothing more will be written (FIN; on TLS close_notify first).
  virtual void shut_write() = 0;
  // Returns true if nothing but control records (tickets, KeyUpdate) is pending; false on data, EOF or an error.
  // Consumes only control records.
  virtual bool no_data_pending() = 0;
  // After no_data_pending() returned false: returns true if the peer closed in order (FIN, close_notify) without
  // sending data before. Only for a connection that is about to be closed.
  virtual bool ended_in_order() = 0;
  // Returns the errno of a failure that the system has noted since the last call, such as a reset, and clears it; 0:
  // none. Reads no input: what is pending stays readable.
  virtual int take_error() {
    int error = 0;
    socklen_t length = sizeof error;
    return ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : 0;
  }
  // Returns the number of bytes on the wire that the system of the peer has not acknowledged; 0 if that is unknown.
  virtual std::size_t unacknowledged() const { return 0; }
  // Returns true if the peer sent what was read before any of the `written` bytes could arrive. A segment with data
  // acknowledges what its sender's system has received, so this holds as long as all of them are unacknowledged.
  bool input_precedes(std::uint64_t written) const { return written == 0 || unacknowledged() >= written; }
  // Returns true if the bytes on the wire are those that read() and write() move, so that splice_to() and
  // splice_from() may move them, too.
  virtual bool splices() const { return false; }
  // Like read(): moves at most so many bytes into the empty pipe.
  virtual IoResult splice_to(Pipe&, std::size_t) { CARPOOL_ASSERT(false); }
  // Like write(): moves the bytes of the pipe, or a part. After an error they are still in the pipe.
  virtual IoResult splice_from(Pipe&) { CARPOOL_ASSERT(false); }
  virtual SecurityInfo security() const { return {}; }
  // Returns true if it failed because the peer sent too many TLS messages without data.
  virtual bool flooded() const { return false; }

  int fd() const { return fd_.get(); }
  // Makes closing send a reset, which no peer takes for the end of a body: truncated output must not look complete. On
  // a Unix socket, which has no reset, the peer sees EOF.
  void reset_on_close() {
    cut_ = true;
    const linger hard{1, 0};
    ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  void on_readiness(exec::Ready ready) {
    readable_ |= ready.readable || ready.hangup || (ready.writable && read_needs_write_);
    writable_ |= ready.writable || ready.hangup;
    hangup_ |= ready.hangup;
    reads_to_end_ |= ready.hangup || ready.urgent;
  }
  // Removes the descriptor from a plain transport that is destroyed next.
  Fd release_socket() { return std::move(fd_); }
  // Must be called before another loop watches it: the new registration reports the current state.
  void forget_readiness() {
    readable_ = hangup_ = reads_to_end_ = false;
    writable_ = true;
  }
  bool maybe_readable() const { return readable_ || pending_; }
  bool maybe_writable() const { return writable_; }
  bool hangup_seen() const { return hangup_; }
  // Returns true if no pending input is known; otherwise only no_data_pending() can decide.
  bool nothing_pending() const { return !maybe_readable() && !partial_; }

 protected:
  explicit Transport(Fd fd) : fd_(std::move(fd)) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  Fd fd_;
  bool readable_ = false;  // cleared by EAGAIN, and by a short recv unless reads_to_end_
  bool writable_ = true;   // cleared by EAGAIN or a short write
  bool hangup_ = false;
  // After a short recv the socket may have more input, which no further event announces: a hang-up was seen, or urgent
  // data, at which a recv stops.
  bool reads_to_end_ = false;
  bool cut_ = false;               // the end must not look orderly
  bool pending_ = false;           // TLS: input is buffered in user space, where no event announces it
  bool partial_ = false;           // TLS: part of a record was read from the socket
  bool read_needs_write_ = false;  // TLS: reading continues only after the reply to a KeyUpdate is written
};

}  // namespace carpool::proxy::net
