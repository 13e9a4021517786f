// StopSignal: ends a thread's wait for time or for sockets, at once and without a lock.
#pragma once

#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace carpool::proxy {

class StopSignal {
 public:
  static Result<StopSignal> make();

  void raise() const;                       // any thread; cannot be reset
  int fd() const { return fd_.get(); }      // readable after raise()
  bool wait_until(Instant deadline) const;  // returns true if raised, false if the deadline passed first

 private:
  explicit StopSignal(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Returns the timeout for poll(), rounded up, because a wait that ends before `deadline` would only be repeated.
int milliseconds_until(Instant deadline);

}  // namespace carpool::proxy
