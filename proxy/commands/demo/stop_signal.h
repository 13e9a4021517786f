// StopSignal: how a thread that waits for time or for sockets is told to end, at once and without a lock.
#pragma once

#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace carpool::proxy {

class StopSignal {
 public:
  static Result<StopSignal> make();

  void raise() const;                       // any thread; for good
  int fd() const { return fd_.get(); }      // readable once it was raised
  bool wait_until(Instant deadline) const;  // true: raised; false: the deadline came first

 private:
  explicit StopSignal(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// As poll() wants it, rounded up: a wait that ends before `deadline` is a turn for nothing.
int milliseconds_until(Instant deadline);

}  // namespace carpool::proxy
