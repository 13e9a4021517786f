#include "pool/total.h"

#include <algorithm>
#include <new>

#include "pool/destination.h"

namespace carpool::pool {

bool Total::take() {
  std::uint32_t now = taken_.load(std::memory_order_relaxed);
  do {
    if (now >= cap_) return false;
    // seq_cst: the partner of give(): who registers as hungry, then fails here, is seen by the next give().
  } while (!taken_.compare_exchange_weak(now, now + 1, std::memory_order_seq_cst, std::memory_order_relaxed));
  return true;
}

void Total::give(Instant now) {
  taken_.fetch_sub(1, std::memory_order_seq_cst);
  if (anyone_hungry()) wake_hungry(now);
}

bool Total::hunger(Destination& destination, Instant now) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::find(hungry_.begin(), hungry_.end(), &destination) == hungry_.end() && remember(destination)) {
      hungry_count_.fetch_add(1, std::memory_order_seq_cst);
    }
  }
  // What is promised comes with a give(), which wakes who registered here.
  if (promised_.load(std::memory_order_relaxed) < hungry_count_.load(std::memory_order_seq_cst)) {
    static_cast<void>(evictor_.evict(now, &destination));
  }
  return !full();
}

// Under the mutex. False: there is no memory for it; it looks again with the next sweep.
bool Total::remember(Destination& destination) {
  try {
    hungry_.push_back(&destination);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void Total::forget(const Destination& destination) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find(hungry_.begin(), hungry_.end(), &destination);
  if (found == hungry_.end()) return;
  hungry_.erase(found);
  hungry_count_.fetch_sub(1, std::memory_order_seq_cst);
}

void Total::feed(Instant now) {
  static_cast<void>(evictor_.evict(now, nullptr));
}

// Who was woken and needs nothing any more leaves the place to the next one.
void Total::wake_hungry(Instant now) {
  for (std::uint32_t rounds = hungry_count_.load(std::memory_order_relaxed); rounds != 0 && !full(); --rounds) {
    Destination* destination = pop_hungry();
    if (destination == nullptr) return;
    destination->wake(now);
  }
}

Destination* Total::pop_hungry() {
  const std::scoped_lock lock(mutex_);
  if (hungry_.empty()) return nullptr;
  Destination* first = hungry_.front();
  hungry_.erase(hungry_.begin());
  hungry_count_.fetch_sub(1, std::memory_order_seq_cst);
  return first;
}

}  // namespace carpool::pool
