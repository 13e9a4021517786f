// ReceivedVia: the Via of the last request for a tunnel to an origin that is reached through a parent proxy. A dial
// belongs to no request, but its CONNECT to the parent must name the proxies before this one, or a loop of proxies
// would find its own pseudonym nowhere. A request that begins a dial is noted right before, so that the dial names the
// proxies before that request; one that begins later, as after a failed one, those of the last request. Thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace carpool::proxy {

class ReceivedVia {
 public:
  static constexpr std::size_t kMaxBytes = 1024;

  void note(std::string via, Instant now) {
    const Held lock(mutex_);
    via_ = std::move(via);
    until_ = now + kRemembered;
  }
  // Empty if no such request came recently.
  std::string recent(Instant now) const {
    const Held lock(mutex_);
    return now < until_ ? via_ : std::string();
  }

 private:
  // Longer than a request waits for its dial. A reload of another proxy may have ended the loop since.
  static constexpr Duration kRemembered = std::chrono::seconds(10);

  mutable Mutex mutex_;
  std::string via_ GUARDED_BY(mutex_);
  Instant until_ GUARDED_BY(mutex_){};
};

}  // namespace carpool::proxy
