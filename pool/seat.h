// Seat: what a destination keeps for the connection in an entry. Plain fields belong to whoever owns the entry (the
// lease, the winner of a CAS, the dial); what a search reads before it owns anything is atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "pool/cause.h"
#include "pool/delivery.h"
#include "pool/destination.h"
#include "pool/entry.h"

namespace carpool::pool {

struct Seat;

// A connection on its way to the borrower it was given to.
class Grant final : public Delivery {
 public:
  void arrive(Instant now) override;

  Entry<Seat>* entry = nullptr;
  Borrower* borrower = nullptr;
  std::uint64_t ticket = 0;
  LoopId to = 0;
  bool moved = false;  // from another loop: attached on arrival
};

struct Seat {
  // An Instant that another thread may read at any time; relaxed: the entry's word orders it for whoever wins the
  // entry, and a search that read an old one loses its CAS.
  class Time {
   public:
    void set(Instant at) { at_.store(at.time_since_epoch().count(), std::memory_order_relaxed); }
    Instant get() const { return Instant(Duration(at_.load(std::memory_order_relaxed))); }

   private:
    std::atomic<Duration::rep> at_{0};
  };

  Time expires_at, idle_since, opened_at;
  Time alive_at;                  // a check found it alive: its origin counts the rest from here
  std::atomic<bool> left{false};  // at the horizon it was left to the origin; relaxed, as the times
  Pooled* pooled = nullptr;       // changes under the destination's mutex only
  Destination::Impl* owner = nullptr;
  std::atomic<bool> tunnel{false};
  std::atomic<Opened> opened{Opened::first};
  bool tunnel_place = false;  // holds one of max_tunnels

  // On an errand (pool/errands.h): decided under the mutex, done after it.
  Entry<Seat>* next = nullptr;
  LoopId from = 0;
  Closed closed = Closed::error;
  Pooled* ended = nullptr;
  Grant grant;
};

using Chair = Entry<Seat>;

}  // namespace carpool::pool
