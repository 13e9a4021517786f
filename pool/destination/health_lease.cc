// Health-check leases: lease one idle connection by name, only in the state in which it was seen, so that it is taken
// from no borrower, and return it as if it had never been lent.
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Lease Destination::lease_idle(std::uint32_t index, std::uint32_t generation, Instant now) {
  EntryBase* core = EntryIndex::process().find(index);
  Lease lease;
  if (core == nullptr) return lease;
  if (impl_->cooling(now).value_or(Duration::zero()) > Duration::zero()) return lease;  // the origin gets no request
  SlotEntry& entry = static_cast<SlotEntry&>(*core);
  const LoopId here = impl_->environment.here();
  EntryWord seen(entry.word.load(std::memory_order_acquire));
  if (!matches(seen, generation, here) || !seen.idle() || protocol_of(entry) == Protocol::h2 ||
      entry.value.owner != impl_.get())
    return lease;
  impl_->pending.probe_begun();
  const Change change = try_acquire(entry.word, seen, here);
  if (!change) return impl_->pending.probe_ended(), Lease();
  lease.probe_ = true;
  impl_->fill(lease, entry, change.after, Duration::zero(), now, here);
  return lease;
}

void Lease::return_unused(Instant now) {
  if (!probe_) return give_back(Use::unserved, now);
  Destination::Impl& pool = *std::exchange(destination_, nullptr)->impl_;
  entry_->value.alive_at.set(now);
  pool.release(*entry_, Use::unserved, now);
  pool.pending.probe_ended();
}

}  // namespace carpool::pool
