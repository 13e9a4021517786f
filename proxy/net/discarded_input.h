// DiscardedInput: the bytes that a connection reads after its FIN. Closing with unread bytes causes a reset, which
// would destroy the last bytes sent (RFC 9112 §9.6), so the connection discards what arrives, up to a limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::net {

inline constexpr Duration kLingerTime = std::chrono::seconds(2);  // the timer of owners without one of their own

class DiscardedInput {
 public:
  explicit DiscardedInput(std::uint64_t most = std::uint64_t{1024} * 1024) : left_(most) {}

  // Reads until the socket is empty. Returns would_block: more may follow; eof: the peer has sent everything; failed:
  // an error, or more bytes than the limit.
  Io discard(Transport& transport, std::span<char> buffer) {
    while (transport.maybe_readable()) {
      const Io last = discard_some(transport, buffer);
      if (last != Io::ok) return last;
    }
    return Io::would_block;
  }

  // Reads once. Returns the same, or ok if there was input.
  Io discard_some(Transport& transport, std::span<char> buffer) {
    const IoResult received = transport.read(buffer);
    if (received.io != Io::ok) return received.io;
    if (received.bytes > left_) return Io::failed;
    left_ -= received.bytes;
    return Io::ok;
  }

 private:
  std::uint64_t left_;
};

}  // namespace carpool::proxy::net
