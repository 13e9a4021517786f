// StreamLimitLearner: the stream limit with which a new session starts. Some origins lower
// SETTINGS_MAX_CONCURRENT_STREAMS right after the handshake and refuse streams that were opened meanwhile. Without
// this, each new session would be overloaded again, and a request refused on each of them would run out of attempts.
//
// A session of such an origin starts with the value to which the last one was lowered, until its first response: frames
// are ordered, so any SETTINGS sent before are known by then.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carpool::pool {

class StreamLimitLearner {
 public:
  struct Session {
    std::uint32_t promised = 0;  // the initial limit in its SETTINGS
    bool proven = false;         // its first response was received
  };

  std::uint32_t begin(Session& session, std::uint32_t promised) const {
    session = {promised, false};
    return lowered_to_ != 0 ? std::min(lowered_to_, promised) : promised;
  }
  // Notes that the session's SETTINGS changed.
  void changed(const Session& session, std::uint32_t most) {
    if (!session.proven && most != 0 && most < session.promised) lowered_to_ = most;
  }
  // Notes the session's first response, which arrived while it allowed `most`.
  void proven(Session& session, std::uint32_t most) {
    if (!session.proven && most >= session.promised) lowered_to_ = 0;
    session.proven = true;
  }

 private:
  std::uint32_t lowered_to_ = 0;  // 0: no origin session lowered its limit
};

}  // namespace carpool::pool
