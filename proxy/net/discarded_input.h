// DiscardedInput: the bytes that a connection reads after its FIN. Closing with unread bytes causes a reset, which
// would destroy the last bytes sent (RFC 9112 §9.6), so the connection discards what arrives, up to these limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::net {

inline constexpr Duration kLingerTime = std::chrono::seconds(2);  // the owner's timer

class DiscardedInput {
 public:
  // Returns would_block: more may follow; eof: the peer has sent everything; failed: an error, or more than kMax.
  Io discard(Transport& transport, std::span<char> buffer) {
    while (transport.maybe_readable()) {
      const IoResult received = transport.read(buffer);
      if (received.io != Io::ok) return received.io;
      bytes_ += static_cast<std::uint32_t>(received.bytes);
      if (bytes_ > kMax) return Io::failed;
    }
    return Io::would_block;
  }

 private:
  static constexpr std::uint32_t kMax = 1024 * 1024;
  std::uint32_t bytes_ = 0;
};

}  // namespace carpool::proxy::net
