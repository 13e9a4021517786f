// Spreads connections over the addresses of an origin: dials to addresses that lack connections, ahead of demand.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Endpoints& Destination::endpoints() {
  return impl_->endpoints;
}

// Called when a connection was lent. If an address lacks connections and the load would use one more of them, dials:
// the owner of the addresses selects that address for the dial. At the cap it requests the place of a surplus
// connection.
void Destination::Impl::spread_out(const SlotEntry& entry, EntryWord word, Instant now) {
  if (origin.scheme == Scheme::tcp) return;  // a tunnel never uses an existing connection
  const Duration idle_timeout = live.idle_timeout(), idle_for = now - entry.value.idle_since.get();
  // One more connection makes each of them idle longer. That time must stay well below idle_timeout, or it would close.
  if (word.users() < 2 && idle_timeout > Duration::zero() && idle_for > idle_timeout / 4) return;
  if (pool.full()) return endpoints.request_rebalance();
  if (budget != nullptr && budget->full()) return;
  DeferredActions actions;
  {
    const Held lock(mutex);
    // A dial in progress leads there, whatever its cause.
    if (stopped() || !lends() || supply.dials() != 0 || backoff.blocks(now) || allowed_dials(now) == 0) return;
    SlotEntry* next = reserve(actions);
    if (next != nullptr) record_dial(*next, ProtocolMask::any, OpenCause::spread, actions, now);
  }
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

}  // namespace carpool::pool
