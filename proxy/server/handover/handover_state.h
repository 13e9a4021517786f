// HandoverState: the message from the old process to its successor: the list of sockets, and the learned state of the
// origins, so that the successor does not have to learn it from failures. Lines of text; unknown lines are skipped, so
// that two versions of the program are compatible.
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
    std::uint32_t open = 0;                // connections at the time of writing
    std::optional<Duration> learned_idle;  // milliseconds on the wire
    std::uint64_t tls_fingerprint = 0;     // of the TLS context that created the sessions
    std::uint32_t size = 0;                // size that has followed the load; 0 if the size is fixed
    std::vector<std::string> sessions;     // resumable TLS sessions, serialised: secrets
    friend bool operator==(const Origin&, const Origin&) = default;
  };
  struct Paused {
    std::string label;
    bool drains = false;
    Duration age{};                // milliseconds on the wire, as `left`
    std::optional<Duration> left;  // time until it ends automatically
    friend bool operator==(const Paused&, const Paused&) = default;
  };
  std::vector<Socket> sockets;  // in the order of the descriptors in the message
  std::vector<Origin> origins;
  std::vector<Paused> paused;  // pauses by an operator
  friend bool operator==(const HandoverState&, const HandoverState&) = default;
};

std::string encode(const HandoverState& state);
// Returns a Fault if `text` is not a HandoverState or is truncated.
Result<HandoverState> decode_handover_state(std::string_view text);

}  // namespace carpool::proxy
