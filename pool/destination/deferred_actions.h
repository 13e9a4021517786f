// DeferredActions: what was decided under a destination's mutex and is done after it, because it calls others: deliver
// grants and rejections, end connections, dial. All are chained through themselves: a deferred action needs no memory.
#pragma once

#include "pool/destination/rejection.h"
#include "pool/destination/slot.h"

namespace carpool::pool {

// A chain of entries in the order they were added.
class SlotList {
 public:
  bool empty() const { return first_ == nullptr; }
  std::uint32_t size() const { return size_; }
  void push(SlotEntry& entry) {
    entry.value.next = nullptr;
    (first_ == nullptr ? first_ : last_->value.next) = &entry;
    last_ = &entry;
    ++size_;
  }
  SlotEntry* pop() {
    SlotEntry* entry = first_;
    if (entry != nullptr) {
      first_ = entry->value.next;
      --size_;
    }
    return entry;
  }

 private:
  SlotEntry* first_ = nullptr;
  SlotEntry* last_ = nullptr;
  std::uint32_t size_ = 0;
};

struct DeferredActions {
  // So much is decided under one hold of the mutex; `more`: the rest waits for the next one.
  static constexpr std::uint32_t kMostSteps = 1000;
  bool step() {
    if (steps == kMostSteps) more = true;
    return !more && ++steps != 0;
  }

  GrantChain grants;
  SlotList ended, dials;
  DeliveryChain<CancelDialMessage> cancels;
  DeliveryChain<Rejection> rejections;
  Instant wake_at = kNever;
  OpenCause why = OpenCause::all_busy;  // of the next dial
  bool over_budget = false;             // a slot of the budget is missing
  bool no_memory = false;               // for another connection, or to hand one on
  bool idle_refused = false;            // somebody in line did not want what rests here
  bool shared = false;                  // a stream of a session was given to somebody in line
  bool saw_idle = false;                // the last search for somebody in line met something that can be lent
  bool more = false;
  std::uint32_t steps = 0;

  // A borrower that is in its borrow() call takes its grant home by hand.
  const Borrower* caller = nullptr;
  SlotEntry* callers = nullptr;
  LoopId callers_from = 0;
};

}  // namespace carpool::pool
