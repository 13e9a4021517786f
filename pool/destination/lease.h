// Lease: the right to use one connection; SimplePool's ConnectionToken. Move-only. It ends by release() (the wire is
// clean) or discard(cause). One that dies without either is a structural leak: counted, its connection closed.
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

  // Uses before this one. 0: this lease is the first to travel on it.
  std::uint32_t uses_before() const { return uses_before_; }
  bool reused() const { return uses_before_ != 0; }
  // Why the connection was opened.
  OpenCause opened() const { return opened_; }
  // How long its borrower stood in line; zero when it was given at once.
  Duration waited() const { return waited_; }
  // The entry, as events and views name it.
  std::uint32_t index() const { return index_; }

  // The wire is proven clean: the next waiter gets it, or it rests. Judged at `now`: an expired or over-used one
  // closes.
  void release(Instant now);
  void discard(CloseCause cause, Instant now);
  // As release(), but it counts as no use and its rest goes on as if it had not been interrupted: a health check's.
  void return_unused(Instant now);
  // The origin ended it before a byte of the answer: how long it had rested is learned. Not for a session. discard()
  // follows.
  void note_unanswered(Instant now);
  // From now on it never returns to the pool but keeps its slot (state `tunnel`); ends by discard(tunnel_ended). Borrow
  // with want.tunnel, else it goes beyond max_tunnels.
  void become_tunnel();

  // The loop that its connection lives on: the borrower's own, unless it is a session.
  LoopId home() const;
  // A lease of a session: others use it too, and release() gives back one stream. It may be taken, released and
  // discarded on any loop. discard() is for a failed connection: nobody new gets it, who uses it goes on, and it closes
  // with the last one; a failed stream is released.
  bool shared() const { return shared_; }

 private:
  friend class Destination;
  Destination& leave(Instant now);
  Destination* destination_ = nullptr;
  PooledConnection* pooled_ = nullptr;
  Entry<Slot>* entry_ = nullptr;
  Duration waited_{};
  Instant leased_at_{};
  std::uint32_t index_ = 0;
  std::uint32_t uses_before_ = 0;
  OpenCause opened_ = OpenCause::first;
  bool shared_ = false;
  bool tunnel_place_ = false;  // holds one of max_tunnels
  std::uint8_t share_ = 0;     // the class whose share it holds
};

}  // namespace carpool::pool
