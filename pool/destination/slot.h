// Slot: owns the connection of an entry, idle or lent, and holds the destination's data about it (it is not a unit of
// the connection limit). Plain fields belong to the user of the entry (the lease, the winner of a CAS, the dial);
// fields that a search reads before it has the entry are atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive.h"
#include "pool/core/entry.h"
#include "pool/destination/destination.h"
#include "pool/destination/grant.h"
#include "pool/policy/cause.h"
#include "pool/policy/endpoint.h"
#include "pool/policy/stream_limit_learner.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

// Sends a session without users to its home loop, where it is disposed of.
class DisposeMessage final : public Delivery {
 public:
  void arrive(Instant now) override;
  Entry<Slot>* entry = nullptr;
};

// Cancels a surplus dial, on its loop.
class CancelDialMessage final : public Delivery, public ListHook<struct DialTag> {
 public:
  void arrive(Instant now) override;
  Entry<Slot>* entry = nullptr;
  // Both belong to the cancelled dial: the slot may describe the next one while the message is on its way.
  std::uint32_t generation = 0;
  LoopId to = 0;
  // Guarded by the destination's mutex.
  bool on_its_way = false;
  bool cancelled = false;  // the current dial; once set, it cannot be cancelled again
  bool announced = false;  // to another destination, under the budget
};

struct Slot {
  // An Instant that other threads may read; relaxed: the entry's word orders it for the winner of the entry, and a
  // search that read an old value loses its CAS.
  class Time {
   public:
    void set(Instant at) { at_.store(at.time_since_epoch().count(), std::memory_order_relaxed); }
    Instant get() const { return Instant(Duration(at_.load(std::memory_order_relaxed))); }

   private:
    std::atomic<Duration::rep> at_{0};
  };

  // Read by borrow and release; in the entry's first cache line.
  Time expires_at, idle_since;
  // Changes under the destination's mutex or, for a session that is no longer findable, on its home loop.
  // Owned from Destination::dialed() to Environment::dispose().
  PooledConnection* pooled = nullptr;
  std::atomic<bool> idle_probe{false};  // left to the origin at the effective idle limit; relaxed, as the times
  std::atomic<bool> tunnel{false};
  std::atomic<OpenCause> opened{OpenCause::first};
  // Written before the word publishes the connection; a search that reads an old value makes one choice by it.
  std::atomic<Endpoint*> endpoint{nullptr};

  Time opened_at;
  Time alive_at;  // last successful check: the origin counts its idle time from here
  Destination::Impl* owner = nullptr;

  // Links for DeferredActions: queued under the mutex, executed after it is released.
  Entry<Slot>* next = nullptr;
  CloseCause closed = CloseCause::error;  // of a draining session: the first cause
  PooledConnection* ended = nullptr;      // removed from `pooled`, and waits for Environment::dispose()
  Grant grant;

  // Guarded by the destination's mutex.
  ProtocolMask asked = ProtocolMask::any;  // by its dial
  LoopId dialed_on = 0;
  bool counted_local = false;  // counted in its loop's LoopCounters::sessions
  LoopId local_to = 0;
  bool replace = false;      // to be replaced: see Destination::reconnect
  bool draining = false;     // a session that admits no new borrower
  bool broken = false;       // and cannot serve grants in flight either
  Instant established_at{};  // when its dial ended
  StreamLimitLearner::Session first_streams;
  DisposeMessage dispose_message;
  CancelDialMessage cancel_message;
};

using SlotEntry = Entry<Slot>;

// Sessions, and only they, are pinned to their home loop.
inline Protocol protocol_of(const SlotEntry& entry) {
  return entry.multiplexing().pinned ? Protocol::h2 : Protocol::h1;
}

}  // namespace carpool::pool
