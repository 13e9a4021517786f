// EventLeases: counts what a loop lends to the code of one event. All of it must be back when the event ends: the loop
// asserts this after every callback, so no bytes and no views of one event are left to the next one.
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
  // An exception ended the event, so its code did not give back what it had.
  void abandon() { abandoned_ = out_; }

 private:
  std::uint32_t out_ = 0;
  std::uint32_t abandoned_ = 0;  // of out_
};

}  // namespace carpool::exec
