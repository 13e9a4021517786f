// ReceivedVia: the Via of the requests for a tunnel to an origin that is reached through a parent proxy. A dial belongs
// to no request, but its CONNECT to the parent must name the proxies before this one, or a loop of proxies would find
// its own pseudonym nowhere. Thread-safe.
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

  // Requests without Via change nothing: in a loop, dials for them lead into it as well.
  void note(std::string via, Instant now) {
    if (via.empty()) return;
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
