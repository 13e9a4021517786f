// PooledConnection, Environment: the interfaces of a pooled connection and of the code around the pool. They are the
// pool's only contact with I/O, loops and time: a test or a simulation implements them in a few lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/loop_id.h"
#include "base/result.h"
#include "pool/policy/cause.h"
#include "pool/policy/protocol.h"

namespace carpool::pool {

class Destination;
class Delivery;
class Endpoint;
class Reservation;
struct SizeChange;

// A pooled connection. Touched by one thread at a time: its home loop's, or the one that just won its entry. A session
// is touched only by its home loop; borrowers on other loops reach it through that loop's mail.
class PooledConnection {
 public:
  virtual ~PooledConnection() = default;
  // Both are read once, by dialed(). streams: the maximum number of leases (Destination::set_streams changes it).
  virtual Protocol protocol() const { return Protocol::h1; }
  virtual std::uint32_t streams() const { return 1; }
  // Returns the address of its peer; read once, by dialed(). Null: it takes no part in the choice by address.
  virtual Endpoint* endpoint() const { return nullptr; }
  // Called on the home loop right before the connection becomes idle. Returns false if it is not provably clean; it is
  // then closed (peer_closed). Must check the socket while any readiness is unsettled. Called once for a session, by
  // dialed(): later the session checks its socket itself and calls retire(); after an idle period it verifies that its
  // peer responds before it sends a request that must not be lost.
  virtual bool clean_for_reuse() = 0;
};

class Environment {
 public:
  // Starts a dial for `reservation`. Later, never from inside, exactly one of Destination::dialed, dial_failed or
  // given_up follows on the calling loop, which then already watches the connection as (index, generation) of the
  // reservation.
  virtual void dial(Destination& destination, Reservation reservation) = 0;
  // Cancels a dial that is no longer needed, if TCP is not yet established, and passes its reservation to
  // Destination::given_up, from inside or soon; otherwise the dial continues. Called on the dialing loop. Optional.
  virtual void cancel_dial(Destination& destination, std::uint32_t index, std::uint32_t generation) {
    static_cast<void>(destination);
    static_cast<void>(index);
    static_cast<void>(generation);
  }
  // Carries `delivery` to loop `to` and calls its arrive(now) there (see pool/queue/delivery_queue.h). If `to` is the
  // calling loop, the call follows later in this turn, never inside deliver(). Any thread.
  virtual void deliver(LoopId to, Delivery& delivery) = 0;
  // Reports a change of an automatic size. Called by Destination::sweep(), without the mutex. Optional.
  virtual void size_changed(Destination& destination, const SizeChange& change) {
    static_cast<void>(destination);
    static_cast<void>(change);
  }
  // Calls destination.wake(now) at `when` or soon after, on any loop. Optional: sweep() serves otherwise.
  virtual void wake_at(Destination& destination, Instant when) {
    static_cast<void>(destination);
    static_cast<void>(when);
  }
  // Reports that a pause with an end is over. Called by Destination::sweep(), without the mutex. Optional.
  virtual void pause_ended(Destination& destination) { static_cast<void>(destination); }
  // Stops the readiness events of `pooled` on loop `from`, from which the calling thread took it over. Any thread.
  virtual void detach(PooledConnection& pooled, LoopId from) = 0;
  // Watches `pooled` (entry index, generation), which now belongs to the calling loop. Returns false on failure; the
  // caller then closes it.
  virtual bool attach(PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) = 0;
  // Closes and destroys `pooled`, to which no entry refers any more. Any thread that owned the entry; includes
  // detach(). For a session: on its home loop, by a delivery, never from inside.
  virtual void dispose(PooledConnection* pooled, CloseCause cause) = 0;
  virtual LoopId here() const = 0;  // the calling loop
  // Returns the process's part of the seed of Strategy::random. Optional: two processes draw alike otherwise.
  virtual std::uint64_t seed() const { return 0; }

 protected:
  ~Environment() = default;
};

}  // namespace carpool::pool
