// EventLeases: counts what a loop lends to the code of one event. Everything must be returned when the event ends: the
// loop asserts this after every callback, so no bytes or views of one event leak into the next.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace carpool::exec {

class EventLeases {
 public:
  void lend() { ++out_; }
  void give_back() {
    CARPOOL_ASSERT(out_ != 0);
    --out_;
  }
  std::uint32_t out() const { return out_; }

  void end_event() {
    CARPOOL_ASSERT(out_ <= abandoned_);
    abandoned_ = out_;
  }
  // Called when the event ended by an exception, so its code did not return its leases.
  void abandon() { abandoned_ = out_; }

 private:
  std::uint32_t out_ = 0;
  std::uint32_t abandoned_ = 0;  // included in out_
};

}  // namespace carpool::exec
