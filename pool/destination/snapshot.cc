#include "pool/destination/snapshot.h"

#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

FailureReason reason_of(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::dns_error:
    case FaultKind::dns_timeout:
      return FailureReason::dns;
    case FaultKind::connect_refused:
    case FaultKind::unroutable:
    case FaultKind::parent_refused:
    case FaultKind::loop_detected:
      return FailureReason::refused;
    case FaultKind::connect_timeout:
    case FaultKind::response_timeout:
    case FaultKind::request_timeout:
      return FailureReason::timeout;
    case FaultKind::tls_certificate:
    case FaultKind::tls_protocol:
      return FailureReason::tls;
    case FaultKind::connection_terminated:
    case FaultKind::response_incomplete:
      return FailureReason::reset;
    case FaultKind::budget:
    case FaultKind::overloaded:
    case FaultKind::rate_limited:
      return FailureReason::budget;
    default:
      return FailureReason::protocol;
  }
}

void TimeDistribution::add(Duration time) {
  time = std::max(Duration::zero(), time);
  ++counts[static_cast<std::size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), time) - kBounds.begin())];
  sum += std::chrono::duration<std::uint64_t, std::nano>(static_cast<std::uint64_t>(time.count()));
}

namespace {
ConnectionStatus status_of(const SlotEntry& entry, EntryWord word, Instant now) {
  if (word.closed()) return ConnectionStatus::draining;  // closed to new borrowers but still in use
  if (entry.value.tunnel.load(std::memory_order_relaxed)) return ConnectionStatus::tunnel;
  switch (state(word, entry.value.expires_at.get(), now)) {
    case EntryState::connecting:
      return ConnectionStatus::connecting;
    case EntryState::borrowed_valid:
      return ConnectionStatus::borrowed;
    case EntryState::borrowed_expired:
      return ConnectionStatus::expired_borrowed;
    case EntryState::not_borrowed_expired:
      return ConnectionStatus::expired_idle;
    default:
      return ConnectionStatus::idle;
  }
}

void count_states(const Pool<Slot>& pool, Destination::Snapshot& into, Instant now) {
  into.connections = {};
  into.ages = into.idle_times = {};
  pool.for_each([&](SlotEntry& entry) {
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    if (word.vacant()) return;
    const ConnectionStatus status = status_of(entry, word, now);
    ++into.connections[static_cast<std::size_t>(status)];
    if (!word.reserved()) into.ages.add(now - entry.value.opened_at.get());
    const bool idle = status == ConnectionStatus::idle || status == ConnectionStatus::expired_idle;
    if (idle) into.idle_times.add(now - entry.value.idle_since.get());
  });
}

// Corrects a scan under constant opening and closing: missed connections count as connecting, extra ones have closed.
void balance(Destination::Snapshot& counted, std::uint64_t alive) {
  std::uint64_t all = counted.alive();
  if (all < alive) counted.connections[static_cast<std::size_t>(ConnectionStatus::connecting)] += alive - all;
  for (const ConnectionStatus status :
       {ConnectionStatus::idle, ConnectionStatus::connecting, ConnectionStatus::draining,
        ConnectionStatus::expired_idle, ConnectionStatus::borrowed, ConnectionStatus::expired_borrowed,
        ConnectionStatus::tunnel}) {
    auto& count = counted.connections[static_cast<std::size_t>(status)];
    const std::uint64_t less = std::min(count, all > alive ? all - alive : std::uint64_t{0});
    count -= less;
    all -= less;
  }
}
}  // namespace

void Destination::Impl::describe_classes(Snapshot& into) const {
  if (limits.classes < 2) return;
  into.class_count = limits.classes;
  const std::uint64_t all = into.leases();
  for (unsigned level = 0; level < limits.classes; ++level) {
    const bool lowest = level + 1 == limits.classes;
    const std::uint64_t from = level == 0 ? std::max(all, shares.held(1)) : shares.held(level);
    const std::uint64_t below = lowest ? 0 : std::min(from, shares.held(level + 1));
    const std::uint64_t whole = std::uint64_t{limits.size} * supply.streams_a_dial();
    const std::uint32_t waiting = queue.by_class()[level] + tunnels.waiters.by_class()[level];
    into.classes[level] = {waiting, from - below, level == 0 ? whole : shares.limit(level)};
  }
}

namespace {
Destination::Snapshot::Paused paused_of(const Pause& pause, Instant now) {
  Destination::Snapshot::Paused paused{std::max(Duration::zero(), now - pause.since), std::nullopt, pause.drains};
  if (pause.until != kNever) paused.left = std::max(Duration::zero(), pause.until - now);
  return paused;
}
}  // namespace

void Destination::Impl::describe_totals(Snapshot& into, Instant now) const {
  if (ledger.began) into.age = std::max(Duration::zero(), now - *ledger.began);
  into.opened = ledger.opened;
  into.closed = ledger.closed;
  into.failures = ledger.failures;
  into.created = ledger.created;
  into.peak = ledger.peak;
  into.waited_at_size = ledger.waited_at_size;
  into.size = pool.cap();
  into.auto_size = std::nullopt;
  if (limits.auto_size() && auto_size != nullptr) {
    into.auto_size = {limits.min_size, limits.max_size, auto_size->history, now};
  }
  into.waiting = waiters();
  into.waiting_for_place = tunnels.waiters.size();
  into.starved = budget != nullptr && budget->is_starved(*this);
  into.max_wait = now - tunnels.waiters.asking_since(queue.asking_since(now));
  into.undialed = undialed;
  into.probing = circuit.last_failed();
  into.last_dial_failed = into.probing ? std::optional(reason_of(last_failure)) : std::nullopt;
  into.cool_downs = ledger.cool_downs;
  into.cooling_down = std::nullopt;
  if (cool_down.active()) {
    into.cooling_down = {std::max(Duration::zero(), now - cool_down.since()),
                         std::max(Duration::zero(), cool_down.until() - now), cool_down.status()};
  }
  into.paused = paused() ? std::optional(paused_of(active_pause, now)) : std::nullopt;
  into.learned_idle = keep_alive.limit();
  if (into.learned_idle) into.effective_limit = keep_alive.effective_limit();
  if (keep_alive.trust() != Duration::max()) into.trust = keep_alive.trust();
  into.dial_time = dial_time;
  into.streams = supply.expected();
  describe_classes(into);
}

// While the version is unchanged nothing opens or closes, and idle <-> borrowed does not change the sum, so a scan
// between two equal versions balances. Under constant opening and closing the last scan is corrected by balance().
Destination::Snapshot Destination::Impl::snapshot(Instant now) const {
  constexpr int kTries = 3;
  Snapshot result;
  for (unsigned loop = 0; loop < loops; ++loop) {
    // All restores before any borrows: acquire pairs with the release in LoopCounters::restore().
    result.restores += counters[loop].restores.load(std::memory_order_acquire);
    result.leaks += counters[loop].leaks.load(std::memory_order_relaxed);
  }
  for (unsigned loop = 0; loop < loops; ++loop)
    result.borrows += counters[loop].borrows.load(std::memory_order_relaxed);
  for (int attempt = 0;; ++attempt) {
    std::uint64_t version = 0, there = 0;
    {
      const Held lock(mutex);
      describe_totals(result, now);
      version = ledger.version;
      there = supply.alive();
    }
    count_states(pool, result, now);
    if (attempt == kTries) return balance(result, there), result;
    const Held lock(mutex);
    if (ledger.version == version) return result;
  }
}

// Connections cannot end under the mutex, so the visitor may read their immutable fields.
void Destination::Impl::visit(ConnectionVisitor& visitor, Instant now) const {
  constexpr std::uint32_t kBlocks = DeferredActions::kMaxSteps / kBlockEntries;
  for (std::uint32_t first = 0; first < pool.blocks(); first += kBlocks) {
    const Held lock(mutex);
    pool.for_each(first, kBlocks, [&](const SlotEntry& entry) { describe(entry, visitor, now); });
  }
}

void Destination::Impl::describe(const SlotEntry& entry, ConnectionVisitor& visitor, Instant now) {
  const EntryWord word(entry.word.load(std::memory_order_acquire));
  if (word.vacant()) return;
  ConnectionView view;
  view.index = entry.index;
  view.generation = word.generation();
  view.state = status_of(entry, word, now);
  view.opened = entry.value.opened.load(std::memory_order_relaxed);
  view.age = now - entry.value.opened_at.get();
  if (!word.borrowed() && !word.reserved()) view.idle = std::max(Duration::zero(), now - entry.value.idle_since.get());
  view.uses = word.uses();
  view.users = word.users();
  view.home = word.home();
  view.pooled = entry.value.pooled;
  visitor.visit(view);
}

}  // namespace carpool::pool
