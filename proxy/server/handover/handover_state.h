// HandoverState: what a process tells the one that takes over from it: which sockets come along, and what it has
// learned of its origins, so that the successor need not learn it from failures. Lines of text, so that two versions of
// the program understand each other: a line that is not known is skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace carpool::proxy {

struct HandoverState {
  struct Socket {
    std::string role;     // "listen", "admin", "metrics", "handover"
    std::string address;  // as configured
    friend bool operator==(const Socket&, const Socket&) = default;
  };
  struct Origin {
    std::string label;
    std::uint32_t open = 0;                // connections, when it was written
    std::optional<Duration> learned_idle;  // milliseconds on the wire
    std::uint64_t tls_fingerprint = 0;     // of the TLS context that made the sessions
    std::vector<std::string> sessions;     // TLS sessions to resume, serialised: secrets
    friend bool operator==(const Origin&, const Origin&) = default;
  };
  std::vector<Socket> sockets;  // in the order of the descriptors that travel with it
  std::vector<Origin> origins;
  friend bool operator==(const HandoverState&, const HandoverState&) = default;
};

std::string encode(const HandoverState& state);
// A Fault: it is no manifest, or breaks off.
Result<HandoverState> decode_manifest(std::string_view text);

}  // namespace carpool::proxy
