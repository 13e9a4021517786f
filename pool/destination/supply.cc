#include "pool/destination/supply.h"

#include "base/assert.h"

namespace carpool::pool {

namespace {
// The cap of a pool has 31 bits: a greater count was decremented below 0.
constexpr std::uint32_t kMax = UINT32_MAX >> 1;
constexpr bool h1_only(const Supply::Dial& dial) {
  return dial.asked == ProtocolMask::h1_only;
}
}  // namespace

void Supply::dial_begun(Dial dial) {
  ++alive_;
  ++dials_;
  if (h1_only(dial)) ++h1_dials_;
  if (!h1_only(dial) && for_waiters(dial.cause)) ++waiter_dials_;
  if (dial.cause == OpenCause::reconnect) ++redials_;
  check();
}

void Supply::dial_ended(Dial dial) {
  --dials_;
  if (h1_only(dial)) --h1_dials_;
  if (!h1_only(dial) && for_waiters(dial.cause)) --waiter_dials_;
  if (dial.cause == OpenCause::reconnect) --redials_;
}

void Supply::dial_failed(Dial dial) {
  dial_ended(dial);
  --alive_;
  check();
}

void Supply::opened(Dial dial, Protocol kind) {
  dial_ended(dial);
  ++held_[static_cast<std::size_t>(kind)];
  check();
}

void Supply::drained() {
  --held_[static_cast<std::size_t>(Protocol::h2)];
  ++draining_;
  check();
}

void Supply::closed(Protocol kind, bool draining) {
  --(draining ? draining_ : held_[static_cast<std::size_t>(kind)]);
  --alive_;
  check();
}

void Supply::cancel_sent() {
  ++cancels_;
  check();
}

void Supply::cancel_arrived() {
  --cancels_;
  check();
}

// The sums have 64 bits, so that a counter below 0 breaks them.
void Supply::check() const {
  CARPOOL_ASSERT(alive_ <= kMax && cancels_ <= kMax);
  CARPOOL_ASSERT(std::uint64_t{dials_} + held_[0] + held_[1] + draining_ == alive_);
  CARPOOL_ASSERT(std::uint64_t{h1_dials_} + waiter_dials_ + redials_ <= dials_);
}

}  // namespace carpool::pool
