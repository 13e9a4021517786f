// Slot: what a destination keeps for the connection in an entry. Plain fields belong to whoever owns the entry (the
// lease, the winner of a CAS, the dial); what a search reads before it owns anything is atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive.h"
#include "pool/core/entry.h"
#include "pool/destination/destination.h"
#include "pool/destination/grant.h"
#include "pool/policy/cause.h"
#include "pool/policy/stream_limit_learner.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

// A session that nobody uses any more, on its way home, where it is disposed of.
class DisposeMessage final : public Delivery {
 public:
  void arrive(Instant now) override;
  Entry<Slot>* entry = nullptr;
};

// To the loop of a dial that nobody needs any more.
class CancelDialMessage final : public Delivery, public ListHook<struct DialTag> {
 public:
  void arrive(Instant now) override;
  Entry<Slot>* entry = nullptr;
  std::uint32_t generation = 0;
  // Guarded by the destination's mutex.
  bool on_its_way = false;
  bool cancelled = false;  // of this dial: what goes on after it is past recall
  bool promised = false;   // to another destination, under the total
};

struct Slot {
  // An Instant that another thread may read at any time; relaxed: the entry's word orders it for whoever wins the
  // entry, and a search that read an old one loses its CAS.
  class Time {
   public:
    void set(Instant at) { at_.store(at.time_since_epoch().count(), std::memory_order_relaxed); }
    Instant get() const { return Instant(Duration(at_.load(std::memory_order_relaxed))); }

   private:
    std::atomic<Duration::rep> at_{0};
  };

  // What a borrow and a release look at, in the entry's first cache line.
  Time expires_at, idle_since;
  // Changes under the destination's mutex, or, a session's, on its home loop when nobody can find it any more.
  PooledConnection* pooled = nullptr;
  std::atomic<bool> idle_probe{false};  // at the horizon it was left to the origin; relaxed, as the times
  std::atomic<bool> tunnel{false};
  std::atomic<OpenCause> opened{OpenCause::first};

  Time opened_at;
  Time alive_at;  // a check found it alive: its origin counts the rest from here
  Destination::Impl* owner = nullptr;

  // On a deferred action (pool/destination/deferred_actions.h): decided under the mutex, done after it.
  Entry<Slot>* next = nullptr;
  CloseCause closed = CloseCause::error;  // a draining one's: of who ended it first
  PooledConnection* ended = nullptr;
  Grant grant;

  // Guarded by the destination's mutex.
  ProtocolMask asked = ProtocolMask::any;  // of its dial
  LoopId dialed_on = 0;
  bool counted_local = false;  // in its loop's LoopCounters::sessions
  LoopId local_to = 0;
  bool replace = false;   // to be replaced: see Destination::reconnect
  bool draining = false;  // a session that takes nobody new
  bool broken = false;    // and cannot serve those either to whom it was given a moment ago
  Instant born{};         // when its dial ended
  StreamLimitLearner::Session first_streams;
  DisposeMessage farewell;
  CancelDialMessage cancel_message;
};

using SlotEntry = Entry<Slot>;

// Sessions are what stays at home.
inline Protocol protocol_of(const SlotEntry& entry) {
  return entry.multiplexing().pinned ? Protocol::h2 : Protocol::h1;
}

}  // namespace carpool::pool
