// DeferredActions: actions decided under a destination's mutex and performed after it is released, because they call
// other code: deliver grants and rejections, close connections, dial. All are intrusively linked: none needs memory.
#pragma once

#include "pool/destination/rejection.h"
#include "pool/destination/slot.h"

namespace carpool::pool {

// A FIFO of entries.
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
  // The maximum number of steps under one hold of the mutex; `more`: work is left for the next one.
  static constexpr std::uint32_t kMaxSteps = 1000;
  bool step() {
    if (steps == kMaxSteps) more = true;
    return !more && ++steps != 0;
  }

  GrantChain grants;
  SlotList ended, dials;
  DeliveryChain<CancelDialMessage> cancels;
  DeliveryChain<Rejection> rejections;
  Instant wake_at = kNever;
  OpenCause why = OpenCause::all_busy;  // of the next dial
  bool over_budget = false;             // a slot of the budget is missing
  bool no_memory = false;               // for another connection or a grant
  bool idle_refused = false;            // a waiter rejected an idle connection for its idle time
  bool shared = false;                  // a stream of a session was granted to a waiter
  bool saw_idle = false;                // the last search for a waiter found an available connection
  bool more = false;
  std::uint32_t steps = 0;
  std::uint32_t inspections_ended = 0;  // as of before the last search for the waiters; see PendingPlaces

  // A connection granted to the borrower that is inside borrow() is returned directly instead of being posted.
  const Borrower* caller = nullptr;
  SlotEntry* callers = nullptr;
  EntryWord callers_word;
  LoopId callers_from = 0;
  std::uint32_t callers_trial = 0;  // see CoolDown
};

}  // namespace carpool::pool
