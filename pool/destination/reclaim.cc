// Reclaiming an unused destination: decided under the mutex with nothing in use; from then on it lends nothing, and a
// later borrower must look up its successor.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// The second call ends what the first one left: it takes a bounded number of steps. A session that ends is disposed of
// by its loop, in a turn before the destination is destroyed.
bool Destination::reclaim(Instant now, Duration unused) {
  return impl_->reclaim(now, unused) || impl_->reclaim(now, unused);
}
bool Destination::reclaimed() const {
  return impl_->reclaimed.load(std::memory_order_acquire);
}
bool Destination::unused_for(Duration time, Instant now) const {
  return impl_->is_replaced() || now - last_use() >= time;
}
Instant Destination::last_use() const {
  return std::max(last_borrow(), Instant(Duration(impl_->touched.load(std::memory_order_relaxed))));
}
void Destination::touch(Instant now) {
  impl_->touched.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

bool Destination::Impl::reclaim(Instant now, Duration unused) {
  if (!self.unused_for(unused, now)) return false;
  DeferredActions actions;
  bool gone = false;
  {
    const Held lock(mutex);
    // A paused destination stays paused, and one with min_idle keeps its pool. A replaced one completes no reconnect().
    const std::uint32_t passed_over = is_replaced() ? kCooling | kReplaced | kReview : kCooling;
    const bool held = (attention.load(std::memory_order_seq_cst) & ~passed_over) != 0 || cool_down.holds(now);
    if (held || limits.min_idle != 0 || supply.dials() != 0) return false;
    if (lent_by(counters.get(), loops) != 0) return false;  // in use: its idle connections stay open
    end_some_idle(CloseCause::idle, actions);
    // A connection that was ended here keeps its place until it is disposed of; any other place is in use.
    gone = pool.in_use() == actions.ended.size() && tunnels.taken() == 0;
    if (gone) {
      attention.fetch_or(kStopped, std::memory_order_seq_cst);
      reclaimed.store(true, std::memory_order_release);
    }
  }
  static_cast<void>(run_actions(actions));
  serve_starved(now);
  return gone;
}

}  // namespace carpool::pool
