#include "pool/destination/destination.h"

#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

DestinationState::DestinationState(Destination& destination, Origin where, const Limits& settings, Environment& around,
                                   unsigned loop_count, ConnectionBudget* over_all)
    : self(destination),
      origin(std::move(where)),
      label(origin.label()),
      live(settings),
      environment(around),
      loops(loop_count),
      budget(over_all),
      pool(settings.size, loop_count, 1, &EntryIndex::process(), around.seed() ^ std::hash<std::string>{}(label)),
      counters(std::make_unique<LoopCounters[]>(loop_count)),
      histories(std::make_unique<BorrowHistory[]>(loop_count)),
      limits(settings),
      supply(settings.expected_streams) {}

Destination::Impl::Impl(Destination& destination, Origin where, const Limits& settings, Environment& around,
                        unsigned loop_count, ConnectionBudget* over_all, std::optional<Instant> now)
    : DestinationState(destination, std::move(where), settings, around, loop_count, over_all) {
  ledger.began = now;
  set_shares();
  adopt_auto_size(FormerSize::fixed, {});
}

Destination::Impl::~Impl() {
  CARPOOL_ASSERT(waiters() == 0 && supply.dials() == 0);
  pool.for_each([&](SlotEntry& entry) {
    if (entry.value.pooled != nullptr)
      environment.dispose(std::exchange(entry.value.pooled, nullptr), CloseCause::shutdown);
  });
}

Destination::Destination(Origin origin, const Limits& limits, Environment& environment, unsigned loops,
                         ConnectionBudget* budget, std::optional<Instant> now)
    : impl_(std::make_unique<Impl>(*this, std::move(origin), limits, environment, loops, budget, now)) {}
Destination::~Destination() = default;

const Origin& Destination::origin() const {
  return impl_->origin;
}
const std::string& Destination::label() const {
  return impl_->label;
}
Limits Destination::limits() const {
  const Held lock(impl_->mutex);
  return impl_->limits;
}

std::variant<Lease, Waiting, Fault> Destination::borrow(Borrower& borrower, const BorrowRequest& want, Instant now) {
  return impl_->borrow(borrower, want, now);
}
void Destination::cancel(Borrower& borrower, Instant now) {
  impl_->cancel(borrower, now);
}

void Destination::dialed(Reservation reservation, std::unique_ptr<PooledConnection> made, Instant now) {
  reservation.live_ = false;
  impl_->dialed(reservation, std::move(made), now);
}
// NOLINTNEXTLINE(performance-unnecessary-value-param): the interface takes ownership of the fault
void Destination::dial_failed(Reservation reservation, Fault fault, Instant now) {
  reservation.live_ = false;
  impl_->dial_failed(reservation, fault, now);
}

void Destination::given_up(Reservation reservation, Instant now) {
  reservation.live_ = false;
  impl_->given_up(reservation, now);
}
void Destination::set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, Instant now) {
  impl_->set_streams(index, generation, most, LimitSource::settings, now);
}
void Destination::first_response(std::uint32_t index, std::uint32_t generation, std::uint32_t most, Instant now) {
  impl_->set_streams(index, generation, most, LimitSource::first_response, now);
}
void Destination::retire(std::uint32_t index, std::uint32_t generation, CloseCause cause, Instant now) {
  impl_->retire(index, generation, cause, now);
}

void Destination::set_limits(const Limits& limits, Instant now) {
  impl_->set_limits(limits, now);
}
void Destination::pause(Instant now, Instant until) {
  impl_->pause(now, until, PauseKind::plain);
}
void Destination::drain(Instant now, Instant until) {
  impl_->pause(now, until, PauseKind::drain);
}
bool Destination::paused() const {
  return impl_->paused();
}
void Destination::restore_pause(const Pause& pause) {
  const Held lock(impl_->mutex);
  impl_->begin_pause(pause);
}
void Destination::take_over_pauses(const Destination& predecessor) {
  impl_->take_over_pauses(*predecessor.impl_);
}
void Destination::resume(Instant now) {
  impl_->resume(now);
}
bool Destination::cool_down(Duration wait, std::uint16_t status, Instant now) {
  return impl_->begin_cool_down(wait, status, now);
}
std::optional<Duration> Destination::cooling(Instant now) const {
  return impl_->cooling(now);
}
void Destination::reconnect(Instant now) {
  impl_->reconnect(now);
}
void Destination::sweep(Instant now) {
  impl_->sweep(now);
}
void Destination::note_failure(const Fault& fault) {
  const Held lock(impl_->mutex);
  impl_->ledger.fail(reason_of(fault));
}
void Destination::wake(Instant now) {
  impl_->wake(now);
}
void Destination::stop(Instant now) {
  impl_->stop(now);
}
bool Destination::evict(Instant now) {
  const bool evicted = impl_->evict_own(now);
  impl_->serve_starved(now);
  return evicted;
}
void Destination::leave_budget() {
  if (impl_->budget != nullptr) impl_->budget->forget(*impl_);
}
bool Destination::has_idle() const {
  return impl_->pool.has_idle();
}

bool Destination::probing() const {
  return impl_->probing.load(std::memory_order_relaxed);
}

bool Destination::awaits_dial(const Borrower& waiter) const {
  const Held lock(impl_->mutex);
  if (!WaitQueue::in(waiter)) return waiter.ticket_ != 0;
  if (waiter.awaits_place_ || !impl_->lends() || impl_->supply.dials() == 0) return false;
  const BorrowRequest& want = waiter.want_;
  if (want.new_connection_only || want.max_idle < Duration::zero()) return true;
  if (want.kind != ProtocolMask::h1_only) return impl_->serving() == 0;
  return !impl_->h1_serves();
}

Instant Destination::last_borrow() const {
  Duration::rep last = 0;
  for (unsigned loop = 0; loop < impl_->loops; ++loop) {
    last = std::max(last, impl_->counters[loop].last_now.load(std::memory_order_relaxed));
  }
  return Instant(Duration(last));
}

Destination::Snapshot Destination::snapshot(Instant now) const {
  return impl_->snapshot(now);
}
void Destination::visit(ConnectionVisitor& visitor, Instant now) const {
  impl_->visit(visitor, now);
}

Reservation::Reservation(Reservation&& other) noexcept
    : index_(other.index_),
      generation_(other.generation_),
      cause_(other.cause_),
      kind_(other.kind_),
      live_(std::exchange(other.live_, false)) {}
Reservation::~Reservation() {
  CARPOOL_ASSERT(!live_);
}

}  // namespace carpool::pool
