#include "pool/lease.h"

#include <utility>

#include "pool/destination_impl.h"

namespace carpool::pool {

Lease::Lease(Lease&& other) noexcept
    : destination_(std::exchange(other.destination_, nullptr)),
      pooled_(other.pooled_),
      entry_(other.entry_),
      waited_(other.waited_),
      leased_at_(other.leased_at_),
      index_(other.index_),
      uses_before_(other.uses_before_),
      opened_(other.opened_) {}

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
  opened_ = other.opened_;
  return *this;
}

Lease::~Lease() {
  if (destination_ == nullptr) return;
  Destination::Impl& pool = *destination_->impl_;
  LoopCounters& count = pool.count(home());
  LoopCounters::add(count.leaks);
  discard(Closed::leak, Instant(Duration(count.last_now.load(std::memory_order_relaxed))));
}

LoopId Lease::home() const {
  return Word(entry_->word.load(std::memory_order_relaxed)).home();
}

void Lease::note_end(Instant now) const {
  Destination::Impl& pool = *destination_->impl_;
  const LoopId loop = home();
  LoopCounters::add(pool.count(loop).restores);
  pool.histories[loop].note(leased_at_ - waited_, waited_, now - leased_at_);
}

void Lease::release(Instant now) {
  note_end(now);
  Destination::Impl& pool = *std::exchange(destination_, nullptr)->impl_;
  if (entry_->value.tunnel.load(std::memory_order_relaxed)) return pool.discard(*entry_, Closed::tunnel_ended, now);
  if (std::exchange(entry_->value.tunnel_place, false)) pool.return_tunnel_place();
  pool.release(*entry_, true, now);
}

void Lease::discard(Closed cause, Instant now) {
  note_end(now);
  Destination::Impl& pool = *std::exchange(destination_, nullptr)->impl_;
  pool.discard(*entry_, cause, now);
}

void Lease::become_tunnel() {
  Destination::Impl& pool = *destination_->impl_;
  if (!std::exchange(entry_->value.tunnel_place, true)) pool.tunnels.fetch_add(1, std::memory_order_relaxed);
  if (!entry_->value.tunnel.exchange(true, std::memory_order_relaxed)) {
    pool.tunnelling.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace carpool::pool
