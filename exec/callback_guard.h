// CallbackGuard: calls the callbacks of a loop so that one that throws affects only itself: later events, mail, timers
// and deferred work still run, and the loop's state stays consistent.
//
// std::bad_alloc terminates the program instead (docs/decisions/0012): it may end a callback anywhere, and code that
// depends on the rest of the callback would wait forever.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "exec/event_leases.h"
#include "exec/role.h"
#include "exec/task.h"

namespace carpool::exec {

class CallbackGuard {
 public:
  // Checks `leases` after each call.
  explicit CallbackGuard(EventLeases* leases = nullptr) : leases_(leases) {}

  // Reports exceptions to `failures`. Null: the first exception of a turn is kept for rethrow().
  void report_to(FailureSink* failures) { failures_ = failures; }

  template <class Callback>
  void call(Callback callback) LOOP_ONLY {
    try {
      callback();
      if (leases_ != nullptr) leases_->end_event();
    } catch (const std::bad_alloc&) {
      std::terminate();
    } catch (...) {
      if (leases_ != nullptr) leases_->abandon();
      caught(std::current_exception());
    }
  }
  // Must be called after the last call.
  void rethrow() {
    if (first_ != nullptr) std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  void caught(std::exception_ptr thrown) noexcept;

  EventLeases* const leases_;
  FailureSink* failures_ = nullptr;
  std::exception_ptr first_;
};

}  // namespace carpool::exec
