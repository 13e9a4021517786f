// What a destination needs to know of the thing it pools, and what it asks of the house around it. These two interfaces
// are the pool's only contact with I/O, loops and time: a test or a simulation implements them in a few lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/result.h"
#include "pool/policy/cause.h"

namespace carpool::pool {

class Destination;
class Delivery;
class Reservation;
using LoopId = std::uint8_t;

// h1: one borrower at a time, moves to the loop that borrows it. h2: a session; many borrowers of any loop at once,
// never moves, and is disposed of on its home loop.
enum class Protocol : std::uint8_t { h1, h2 };
inline constexpr std::size_t kProtocols = 2;

// Which of them a borrower would take, and a dial may bring.
enum class ProtocolMask : std::uint8_t { any, h1_only, h2_only };
constexpr bool accepts(ProtocolMask wanted, Protocol kind) {
  return wanted == ProtocolMask::any || (wanted == ProtocolMask::h1_only) == (kind == Protocol::h1);
}

// A pooled thing (a connection). Touched by one thread at a time: its home loop's, or the one that just won its entry.
// A session is touched by its home loop alone; borrowers of other loops reach it by that loop's mail.
class PooledConnection {
 public:
  virtual ~PooledConnection() = default;
  // Both are read once, when dialed() brings it. streams: the most leases at once (Destination::set_streams changes
  // it).
  virtual Protocol protocol() const { return Protocol::h1; }
  virtual std::uint32_t streams() const { return 1; }
  // Asked right before it is published idle, on its home loop: false = not provably clean, close it (cause
  // peer_closed). Must look at the wire while any readiness is unsettled (DESIGN: look once before going idle). A
  // session is asked once, when dialed() brings it: later it looks at its wire itself and says retire().
  virtual bool clean_for_reuse() = 0;
};

class Environment {
 public:
  // Begin to make a connection for `reservation`; later, never from inside, exactly one of
  // Destination::dialed / Destination::dial_failed follows, on the calling loop.
  // What dialed() brings is watched by that loop already, as (reservation.index(), reservation.generation()).
  virtual void dial(Destination& destination, Reservation reservation) = 0;
  // Nobody needs the dial of this reservation any more. Where it has not reached the other side yet, give it up and
  // hand the reservation to Destination::given_up, from inside or soon; what is past that goes on. On the loop that
  // dials. A house that never does is right too.
  virtual void cancel_dial(Destination& destination, std::uint32_t index, std::uint32_t generation) {
    static_cast<void>(destination);
    static_cast<void>(index);
    static_cast<void>(generation);
  }
  // Carry `delivery` to loop `to` and call its arrive(now) there (pool/queue/delivery_queue.h helps). `to` may be the
  // calling loop: then later in this turn, never from inside. Any thread.
  virtual void deliver(LoopId to, Delivery& delivery) = 0;
  // Call destination.wake(now) at `when` or soon after, on any loop. A house that does not is served by sweep().
  virtual void wake_at(Destination& destination, Instant when) {
    static_cast<void>(destination);
    static_cast<void>(when);
  }
  // `pooled` was won away from loop `from` by the calling thread: stop its readiness there. Any thread.
  virtual void detach(PooledConnection& pooled, LoopId from) = 0;
  // `pooled` (entry index, generation) now belongs to the calling loop: watch it here. False: it could not be (close
  // it).
  virtual bool attach(PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) = 0;
  // Close and destroy. The entry no longer refers to it. Any thread that owned the entry; detach comes with the close.
  // A session: on its home loop, by a delivery, never from inside.
  virtual void dispose(PooledConnection* pooled, CloseCause cause) = 0;
  virtual LoopId here() const = 0;  // the calling loop

 protected:
  ~Environment() = default;
};

}  // namespace carpool::pool
