// HandshakeBudget: the TLS handshakes of one second that a loop computes itself. More of them run as blocking tasks, so
// they do not delay the other connections of the loop; clients of the admin endpoint wait for the next second.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace carpool::proxy::net {

class HandshakeBudget {
 public:
  // Returns true if withdraw() would at `now`.
  bool has(std::uint32_t most, Instant now) const {
    return now - second_began_ >= std::chrono::seconds(1) || begun_ < most;
  }
  // Counts a handshake that begins at `now`. Returns true if it is one of the first `most` of its second.
  bool withdraw(std::uint32_t most, Instant now) {
    if (now - second_began_ >= std::chrono::seconds(1)) {
      second_began_ = now;
      begun_ = 0;
    }
    return ++begun_ <= most;
  }

 private:
  Instant second_began_{};
  std::uint32_t begun_ = 0;  // since then
};

}  // namespace carpool::proxy::net
