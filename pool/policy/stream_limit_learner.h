// StreamLimitLearner: with how many users a new session begins. Some origins promise more streams than they keep: they
// lower SETTINGS_MAX_CONCURRENT_STREAMS right behind the handshake, and refuse whatever was asked meanwhile. Each new
// session would be asked too much again, and a request that is refused on every one of them has no attempt left in the
// end.
//
// So a session of such an origin begins with what the last one came down to, until its first response: frames keep
// their order, so whatever the origin had to say before is known by then. Guarded by the destination's mutex.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carpool::pool {

class StreamLimitLearner {
 public:
  struct Session {
    std::uint32_t promised = 0;  // when it was greeted
    bool proven = false;         // its first response came
  };

  std::uint32_t begin(Session& session, std::uint32_t promised) const {
    session = {promised, false};
    return most_ != 0 ? std::min(most_, promised) : promised;
  }
  // Its SETTINGS changed.
  void changed(const Session& session, std::uint32_t most) {
    if (!session.proven && most != 0 && most < session.promised) most_ = most;
  }
  // Its first response came while it allowed `most`.
  void proven(Session& session, std::uint32_t most) {
    if (!session.proven && most >= session.promised) most_ = 0;
    session.proven = true;
  }

 private:
  std::uint32_t most_ = 0;  // 0: origins keep what they promise
};

}  // namespace carpool::pool
