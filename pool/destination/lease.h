// Lease: the right to use one connection; SimplePool's ConnectionToken. Move-only. It ends by release() (the connection
// is clean) or discard(cause). Destruction without either is a leak: it is counted and the connection closed.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "pool/destination/environment.h"
#include "pool/policy/cause.h"

namespace carpool::pool {

template <class T>
struct Entry;
struct Slot;
enum class Use : std::uint8_t;

class [[nodiscard]] Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  explicit operator bool() const { return destination_ != nullptr; }
  PooledConnection& operator*() const { return *pooled_; }
  PooledConnection* get() const { return pooled_; }
  Destination& destination() const { return *destination_; }

  // Returns the number of uses before this one; 0: this lease is the first user.
  std::uint32_t uses_before() const { return uses_before_ + kept_uses_; }
  bool reused() const { return uses_before() != 0; }
  // Returns the reason why the connection was opened.
  OpenCause opened() const { return opened_; }
  // Returns the time that its borrower waited in the queue; zero if it was served at once.
  Duration waited() const { return waited_; }
  // Returns the entry's number in events and views.
  std::uint32_t index() const { return index_; }

  // Returns a clean connection: it is passed to the next waiter or becomes idle. A connection that is expired or used
  // up at `now` is closed.
  void release(Instant now);
  void discard(CloseCause cause, Instant now);
  // As release(), but does not count as a use and does not interrupt the idle time. Must be called instead of release()
  // if the connection carried no request.
  void return_unused(Instant now);
  // Begins another use by a borrower that has kept the connection since the last one.
  void use_again() { ++kept_uses_; }
  // Reports that the origin closed the connection before the first response byte: its idle time is learned, unless the
  // borrower kept it meanwhile. Not for a session. discard() must follow.
  void note_no_response(Instant now);
  // Keeps the slot, but the connection never returns to the pool (state `tunnel`) and ends by discard(tunnel_ended).
  // Borrow with want.tunnel, otherwise the tunnel may exceed max_tunnels.
  void become_tunnel();

  // Reports a response `took` after the lease began, for an automatic size.
  void note_response(std::uint16_t status, Duration took);

  // Returns true if its end would serve a waiter that nothing else is about to serve, and the first of the queue has
  // waited for `min_wait`. Takes no lock while no borrower waits.
  bool wanted(Duration min_wait, Instant now) const;

  // Returns the loop of its connection: the borrower's own, unless it is a session.
  LoopId home() const;
  // Returns true if the origin requested a pause and this lease is its trial: see Destination::cool_down().
  bool trial() const { return trial_ != 0; }
  // Reports that the origin responded and requested no other pause. Returns true if that ends the pause.
  bool pass_trial(Instant now);
  // Returns true for a lease of a session, which others share; it may be taken, released and discarded on any loop.
  // release() returns one stream, also a failed one. discard() is for a failed connection: no new borrowers, closes
  // with the last one.
  bool shared() const { return shared_; }

 private:
  friend class Destination;
  Destination& detach(Instant now);
  void give_back(Use use, Instant now);
  Destination* destination_ = nullptr;
  PooledConnection* pooled_ = nullptr;
  Entry<Slot>* entry_ = nullptr;
  Duration waited_{};
  Instant leased_at_{};
  std::uint32_t index_ = 0;
  std::uint32_t uses_before_ = 0;  // when it was borrowed
  std::uint32_t kept_uses_ = 0;
  OpenCause opened_ = OpenCause::first;
  bool shared_ = false;
  bool probe_ = false;         // of a health check: counts as no borrow
  bool tunnel_place_ = false;  // holds one of the max_tunnels places
  std::uint8_t share_ = 0;     // the class whose share it holds
  std::uint16_t caller_ = 0;   // BorrowRequest::caller, for the history
  std::uint32_t trial_ = 0;    // number of the trial; 0: none
};

}  // namespace carpool::pool
