#include "pool/destination/lease.h"

#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Lease::Lease(Lease&& other) noexcept
    : destination_(std::exchange(other.destination_, nullptr)),
      pooled_(other.pooled_),
      entry_(other.entry_),
      waited_(other.waited_),
      leased_at_(other.leased_at_),
      index_(other.index_),
      uses_before_(other.uses_before_),
      kept_uses_(other.kept_uses_),
      opened_(other.opened_),
      shared_(other.shared_),
      probe_(other.probe_),
      tunnel_place_(other.tunnel_place_),
      share_(other.share_),
      caller_(other.caller_),
      trial_(other.trial_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Lease dies(std::move(*this));
  destination_ = std::exchange(other.destination_, nullptr);
  pooled_ = other.pooled_;
  entry_ = other.entry_;
  waited_ = other.waited_;
  leased_at_ = other.leased_at_;
  index_ = other.index_;
  uses_before_ = other.uses_before_;
  kept_uses_ = other.kept_uses_;
  opened_ = other.opened_;
  shared_ = other.shared_;
  probe_ = other.probe_;
  tunnel_place_ = other.tunnel_place_;
  share_ = other.share_;
  caller_ = other.caller_;
  trial_ = other.trial_;
  return *this;
}

Lease::~Lease() {
  if (destination_ == nullptr) return;
  Destination::Impl& pool = *destination_->impl_;
  LoopCounters& count = pool.count(shared_ ? pool.environment.here() : home());
  count.leak();
  discard(CloseCause::leak, Instant(Duration(count.last_now.load(std::memory_order_relaxed))));
}

LoopId Lease::home() const {
  return EntryWord(entry_->word.load(std::memory_order_relaxed)).home();
}

// Performs the part that all ways to end a lease share. An exclusive connection's home loop is the calling loop, whose
// counters are used.
Destination& Lease::detach(Instant now) {
  Destination& destination = *std::exchange(destination_, nullptr);
  Destination::Impl& pool = *destination.impl_;
  if (probe_) return pool.pending.probe_ended(), destination;
  const LoopId loop = shared_ ? pool.environment.here() : home();
  pool.count(loop).restore();
  pool.histories[loop].note(leased_at_ - waited_, waited_, now - leased_at_, caller_);
  if (std::exchange(tunnel_place_, false)) {  // every caller serves waiters after this
    const Held lock(pool.mutex);
    pool.tunnels.put_back();
  }
  Destination::Impl::returned_at(*entry_);
  pool.shares.release(std::exchange(share_, std::uint8_t{0}));  // likewise
  if (trial_ != 0) pool.trial_over(std::exchange(trial_, 0));   // likewise
  return destination;
}

void Lease::give_back(Use use, Instant now) {
  const bool had_place = tunnel_place_;
  Destination::Impl& pool = *detach(now).impl_;
  if (shared_) {
    pool.release_stream(*entry_, use, now);
  } else if (entry_->value.tunnel.load(std::memory_order_relaxed)) {
    pool.discard(*entry_, CloseCause::tunnel_ended, now);
  } else {
    pool.release(*entry_, use, now);
  }
  if (had_place) pool.serve_waiters(now);
}

void Lease::release(Instant now) {
  give_back(Use::served, now);
}

void Lease::discard(CloseCause cause, Instant now) {
  detach(now).impl_->discard(*entry_, cause, now);
}

// A connection that ends is a place that is coming until a waiter has it, so no more leases are wanted than there are
// waiters. A waiter for HTTP/1.1 gets no stream, and one without a share of its class gets none from the highest class.
bool Lease::wanted(Duration min_wait, Instant now) const {
  Destination::Impl& pool = *destination_->impl_;
  if (!pool.waiting()) return false;
  const Held lock(pool.mutex);
  if (pool.queue.empty() || pool.stopped() || !pool.lends()) return false;
  if (now - pool.queue.waiting_since(now) < min_wait) return false;
  const std::uint32_t without_share = pool.shares.held_back(pool.queue.by_class());
  const std::uint32_t served_otherwise = pool.streams_coming() + (share_ == 0 ? without_share : 0) +
                                         (shared_ ? pool.queue.wanting(ProtocolMask::h1_only) : 0);
  if (pool.queue.size() <= served_otherwise) return false;
  const EntryWord word(entry_->word.load(std::memory_order_relaxed));  // another stream may end at any moment
  const bool ends_connection = !shared_ || (word.closed() && word.users() == 1);
  if (word.closed() && !ends_connection) return false;  // a session that accepts no stream frees its place at its end
  const bool no_room = pool.pool.full() || (pool.budget != nullptr && pool.budget->full());
  if (!no_room && (share_ == 0 || without_share == 0)) return false;
  // A dial takes the place of a connection.
  return !ends_connection || (!pool.backoff.blocks(now) && pool.allowed_dials(now) != 0);
}

bool Lease::pass_trial(Instant now) {
  return trial_ != 0 && destination_->impl_->pass_trial(std::exchange(trial_, 0), now);
}

void Lease::become_tunnel() {
  Destination::Impl& pool = *destination_->impl_;
  if (!std::exchange(tunnel_place_, true)) {
    const Held lock(pool.mutex);
    pool.tunnels.take();
  }
  if (shared_) return;  // only a stream is a tunnel; the session remains usable
  if (!entry_->value.tunnel.exchange(true, std::memory_order_relaxed)) {
    pool.tunnelling.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace carpool::pool
