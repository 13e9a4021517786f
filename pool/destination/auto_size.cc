// size = "auto": every sweep passes the measurements to the SizeController and applies its decision. Requests only
// update the counters of their loop.
#include "pool/policy/auto_size.h"

#include <algorithm>
#include <new>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

namespace {
std::uint64_t count_of(const Ledger& ledger, FailureReason reason) {
  return ledger.failures[static_cast<std::size_t>(reason)];
}

// Returns the number of waiters if the first one has waited for longer than `most`.
std::uint32_t late_in(const WaitQueue& waiters, Duration most, Instant now) {
  return !waiters.empty() && now - waiters.waiting_since(now) > most ? waiters.size() : 0;
}
}  // namespace

// Applies changed settings: keeps the size within their bounds. If memory for measurements is exhausted, the size
// does not change. Measurements are never freed, because loops read them without the mutex.
void Destination::Impl::adopt_auto_size(FormerSize former, Instant now) {
  if (!limits.auto_size()) return;
  const bool begins = former == FormerSize::fixed || auto_size == nullptr;
  if (auto_size == nullptr) {
    try {
      auto_size = std::make_unique<AutoSize>(limits, loops);
    } catch (const std::bad_alloc&) {  // the next settings try again
    }
    measured.store(auto_size.get(), std::memory_order_release);  // pairs with published_auto_size()
  }
  // Counts under a fixed size, possibly of days, do not measure this one.
  if (auto_size != nullptr && begins)
    auto_size->begin(count_of(ledger, FailureReason::refused), count_of(ledger, FailureReason::timeout), now);
  if (auto_size != nullptr) auto_size->controller.bounds(limits.min_size, limits.max_size, pool.cap());
  apply_size(std::clamp(pool.cap(), limits.min_size, limits.max_size));
}

void Destination::Impl::apply_size(std::uint32_t size) {
  limits.size = size;
  if (limits.half_tunnels) limits.max_tunnels = (size + 1) / 2;
  pool.cap(size);
  set_shares();
  review();
}

void Destination::restore_size(std::uint32_t size) {
  const Held lock(impl_->mutex);
  if (!impl_->limits.auto_size() || impl_->auto_size == nullptr) return;
  SizeController& controller = impl_->auto_size->controller;
  controller.bounds(controller.min_size(), controller.max_size(), size);
  impl_->apply_size(controller.size());
}

// Called by sweep(), which serves the waiters afterwards.
void Destination::Impl::follow_load(Instant now) {
  if (published_auto_size() == nullptr) return;
  std::optional<SizeChange> change;
  {
    const Held lock(mutex);
    if (limits.auto_size() && !stopped()) change = measure_and_decide(now);
    if (change) apply_size(change->to);
  }
  if (!change) return;
  if (change->to < change->from) shrink();
  environment.size_changed(self, *change);
}

std::optional<SizeChange> Destination::Impl::measure_and_decide(Instant now) {
  AutoSize& own = *auto_size;
  LoadSample& seen = own.seen;
  const std::uint64_t refused = count_of(ledger, FailureReason::refused);
  const std::uint64_t timeouts = count_of(ledger, FailureReason::timeout);
  // A lower bound of the connections in use.
  const std::uint64_t streams = std::max(1U, supply.streams_a_dial()), leases = lent_by(counters.get(), loops);
  const std::uint64_t used = (leases + streams - 1) / streams;
  seen.busy = std::max(seen.busy, static_cast<std::uint32_t>(std::min<std::uint64_t>(used, pool.in_use())));
  if (!own.controller.settled(now)) {
    own.begin(refused, timeouts, now);
    return std::nullopt;
  }
  const ResponseCounts passed = own.counts().since(own.before);
  const std::uint64_t unanswered = passed.refused + (timeouts - own.timeouts_before);
  if (!SizeController::enough(passed.responses() + unanswered, own.begun, now)) return std::nullopt;
  seen.responses = passed.responses();
  seen.median = passed.median();
  seen.refused = unanswered;
  seen.dials_refused = refused - own.refused_before;
  seen.late += passed.late;
  seen.all_answered =
      leases <= tunnelling.load(std::memory_order_relaxed) && supply.dials() == 0 && (queue.empty() || pool.full());
  const Duration most = own.controller.tolerable_wait();
  const std::uint32_t late_tunnels = limits.half_tunnels && lends() ? late_in(tunnels.waiters, most, now) : 0;
  seen.late += late_in(queue, most, now) + late_tunnels;
  seen.at_size |= late_tunnels != 0;
  seen.open = supply.held(Protocol::h1) + supply.held(Protocol::h2);
  const std::optional<SizeChange> change = own.controller.update(seen, now);
  own.tolerable_wait.store(own.controller.tolerable_wait().count(), std::memory_order_relaxed);
  if (change) own.history.add(*change);
  own.begin(refused, timeouts, now);
  return change;
}

// ---- on the loop of the lease's user ----

void Lease::note_response(std::uint16_t status, Duration took) {
  Destination::Impl& pool = *destination_->impl_;
  AutoSize* const own = pool.published_auto_size();
  if (own == nullptr) return;
  ResponseTimes& times = own->times[pool.environment.here()];
  status == 429 || status == 503 ? times.refused() : times.answered(took);
}

}  // namespace carpool::pool
