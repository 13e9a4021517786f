// What a destination needs to know of the thing it pools, and what it asks of the house around it. These two interfaces
// are the pool's only contact with I/O, loops and time: a test or a simulation implements them in a few lines.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/result.h"
#include "pool/cause.h"

namespace carpool::pool {

class Destination;
class Delivery;
class Reservation;
using LoopId = std::uint8_t;

// A pooled thing (a connection). Touched by one thread at a time: its home loop's, or the one that just won its entry.
class Pooled {
 public:
  virtual ~Pooled() = default;
  // Asked right before it is published idle, on its home loop: false = not provably clean, close it (cause
  // peer_closed). Must look at the wire while any readiness is unsettled (DESIGN: look once before going idle).
  virtual bool settle() = 0;
};

class House {
 public:
  // Begin to make a connection for `reservation`; later, never from inside, exactly one of
  // Destination::dialed / Destination::dial_failed follows, on the calling loop.
  // What dialed() brings is watched by that loop already, as (reservation.index(), reservation.generation()).
  virtual void dial(Destination& destination, Reservation reservation) = 0;
  // Carry `delivery` to loop `to` and call its arrive(now) there (pool/delivery_queue.h helps). `to` may be the calling
  // loop: then later in this turn, never from inside. Any thread.
  virtual void deliver(LoopId to, Delivery& delivery) = 0;
  // Call destination.wake(now) at `when` or soon after, on any loop. A house that does not is served by sweep().
  virtual void wake_at(Destination& destination, Instant when) {
    static_cast<void>(destination);
    static_cast<void>(when);
  }
  // `pooled` was won away from loop `from` by the calling thread: stop its readiness there. Any thread.
  virtual void detach(Pooled& pooled, LoopId from) = 0;
  // `pooled` (entry index, generation) now belongs to the calling loop: watch it here. False: it could not be (close
  // it).
  virtual bool attach(Pooled& pooled, std::uint32_t index, std::uint32_t generation) = 0;
  // Close and destroy. The entry no longer refers to it. Any thread that owned the entry; detach comes with the close.
  virtual void dispose(Pooled* pooled, Closed cause) = 0;
  virtual LoopId here() const = 0;  // the calling loop

 protected:
  ~House() = default;
};

}  // namespace carpool::pool
