// Destination::audit(): compares a destination's counters with the words of its entries, their slots and the wait
// queue.
#include "pool/core/audit_report.h"
#include "pool/destination/destination_impl.h"
#include "pool/destination/outstanding.h"

namespace carpool::pool {

struct Destination::Impl::Recount {
  std::uint64_t dials = 0, h1_dials = 0, waiter_dials = 0, redials = 0, cancels = 0, cancellable = 0;
  std::array<std::uint64_t, kProtocols> held{};
  std::uint64_t draining = 0, disposing = 0, inspecting = 0, tunnels = 0, to_replace = 0, announced = 0, users = 0;
  std::vector<std::uint64_t> local;

  std::uint64_t alive() const { return dials + held[0] + held[1] + draining; }
};

AuditReport Destination::audit(const Outstanding* outstanding) const {
  return impl_->audit(outstanding);
}

BudgetShare Destination::budget_share() const {
  return impl_->budget_share();
}

AuditReport Destination::Impl::audit(const Outstanding* outstanding) const {
  AuditReport report;
  pool.audit(report);
  const Held lock(mutex);
  const Recount counted = recount(report);
  audit_supply(counted, report);
  audit_slots(counted, report);
  audit_queue(report);
  audit_waiters(report);
  audit_limits(report);
  if (outstanding != nullptr) audit_outstanding(counted, *outstanding, report);
  return report;
}

Destination::Impl::Recount Destination::Impl::recount(AuditReport& report) const {
  Recount counted;
  counted.local.resize(loops);
  pool.for_each([&](const SlotEntry& entry) {
    mutex.assert_held();
    const EntryWord word(entry.word.load(std::memory_order_relaxed));
    const Slot& slot = entry.value;
    if (slot.owner == nullptr && word.vacant()) return;  // never used
    if (slot.cancel_message.on_its_way) ++counted.cancels;
    if (slot.cancel_message.announced) ++counted.announced;
    if (slot.replace) ++counted.to_replace;
    if (slot.counted_local) ++counted.local[slot.local_to];
    if (slot.tunnel.load(std::memory_order_relaxed)) ++counted.tunnels;
    if (static_cast<const ListHook<DialTag>&>(slot.cancel_message).linked()) ++counted.cancellable;
    report.expect(EntryIndex::process().find(entry.index) == &entry, "an entry's number leads elsewhere");
    word.reserved() ? recount_dial(entry, counted, report) : recount_connection(entry, word, counted, report);
  });
  return counted;
}

void Destination::Impl::recount_dial(const SlotEntry& dial, Recount& counted, AuditReport& report) const {
  const Slot& slot = dial.value;
  const OpenCause cause = slot.opened.load(std::memory_order_relaxed);
  const bool h1 = slot.asked == ProtocolMask::h1_only;
  ++counted.dials;
  if (h1) ++counted.h1_dials;
  if (!h1 && for_waiters(cause)) ++counted.waiter_dials;
  if (cause == OpenCause::reconnect) ++counted.redials;
  report.expect(slot.pooled == nullptr, "a dial has a connection");
  const bool linked = static_cast<const ListHook<DialTag>&>(slot.cancel_message).linked();
  report.expect(linked == (for_waiters(cause) && !slot.cancel_message.cancelled),
                "a dial is listed as one that can be cancelled and is none, or the other way round");
}

void Destination::Impl::recount_connection(const SlotEntry& entry, EntryWord word, Recount& counted,
                                           AuditReport& report) const {
  const Slot& slot = entry.value;
  const Protocol kind = protocol_of(entry);
  counted.users += word.users();
  if (word.inspecting()) ++counted.inspecting;
  if (word.vacant()) {
    counted.disposing += (entry.block->vacant().read() & entry.bit()) == 0 ? 1 : 0;
    report.expect(!slot.draining && !slot.replace && !slot.counted_local, "what is closed is still counted");
    report.expect(!slot.tunnel.load(std::memory_order_relaxed), "what is closed is still a tunnel");
    report.expect(slot.ended == nullptr, "what is closed was not disposed of");
    return;
  }
  report.expect(slot.pooled != nullptr && slot.owner == this, "an open entry has no connection");
  report.expect(word.closed() == slot.draining, "a session drains and is not marked so, or the other way round");
  report.expect(kind == Protocol::h2 || word.users() <= 1, "a connection has two users");
  report.expect(kind == Protocol::h2 || !slot.draining, "a connection drains");
  report.expect(slot.counted_local == (kind == Protocol::h2 && !slot.draining),
                "a session is not counted on its loop, or a connection is");
  ++(slot.draining ? counted.draining : counted.held[static_cast<std::size_t>(kind)]);
}

void Destination::Impl::audit_supply(const Recount& counted, AuditReport& report) const {
  report.equal("alive", supply.alive(), counted.alive());
  report.equal("dials", supply.dials(), counted.dials);
  report.equal("dials for HTTP/1.1", supply.h1_dials(), counted.h1_dials);
  report.equal("dials for waiters", supply.waiter_dials(), counted.waiter_dials);
  report.equal("dials of successors", supply.redials(), counted.redials);
  report.equal("messages that cancel", supply.cancels(), counted.cancels);
  report.equal("held connections", supply.held(Protocol::h1), counted.held[0]);
  report.equal("held sessions", supply.held(Protocol::h2), counted.held[1]);
  report.equal("draining sessions", supply.draining(), counted.draining);
  std::uint64_t opened = 0, closed = 0;
  for (const std::uint64_t count : ledger.opened) opened += count;
  for (const std::uint64_t count : ledger.closed) closed += count;
  report.equal("opened - closed", opened - closed, counted.alive());
  report.expect(ledger.peak >= pool.in_use(), "the peak is below the use");
}

void Destination::Impl::audit_slots(const Recount& counted, AuditReport& report) const {
  report.equal("in use", pool.in_use(), counted.alive() + counted.disposing);
  report.equal("places being freed", pending.disposing(), counted.disposing);
  report.equal("inspections", pending.inspecting(), counted.inspecting);
  report.equal("tunnelling", tunnelling.load(std::memory_order_relaxed), counted.tunnels);
  report.equal("to replace", replacement.marked, counted.to_replace);
  for (unsigned loop = 0; loop < loops; ++loop)
    report.equal("sessions of a loop", counters[loop].sessions.load(std::memory_order_relaxed), counted.local[loop]);
}

void Destination::Impl::audit_queue(AuditReport& report) const {
  queue.audit(report);
  tunnels.waiters.audit(report);
  const std::uint32_t seen = attention.load(std::memory_order_relaxed);
  report.equal("attention", seen & ~kAllFlags, waiters());
  report.expect(cool_down.active() == ((seen & kCooling) != 0),
                "the flag of a pause that the origin asked for is wrong");
  const bool needed = active_pause.drains || replacement.in_progress() || above_cap() != 0;
  report.expect(needed == ((seen & kReview) != 0), "the flag that requests reviews of releases is wrong");
  report.expect(rejections.free() >= waiters(), "a waiter has no memory for its rejection");
  static_cast<void>(rejections.audit(report));
  static_cast<void>(grants.audit(report));
}

// Checks that no waiter is left that a free place or an available connection suits, as of the last pass over the
// waiters. At the end of a quarantine a wake-up serves the waiters.
void Destination::Impl::audit_waiters(AuditReport& report) const {
  if (stopped() || !lends()) return;
  report.expect(tunnels.waiters.empty() || !tunnels.free(limits.max_tunnels), "a tunnel waits beside a free place");
  if (queue.empty() || live.quarantine() > Duration::zero()) return;
  const Instant now{Duration(planned_at.load(std::memory_order_relaxed))};
  const SlotEntry* left = pool.find_idle(0, [&](const SlotEntry& entry) {
    mutex.assert_held();
    return queue.find_other([&](const Borrower& waiter) {
      mutex.assert_held();
      return suits(waiter, entry, now);
    }) != nullptr;
  });
  report.expect(left == nullptr, "a waiter waits beside a connection that suits it");
}

bool Destination::Impl::suits(const Borrower& waiter, const SlotEntry& entry, Instant now) const {
  const EntryWord word(entry.word.load(std::memory_order_relaxed));
  if (!word.lendable(entry.multiplexing().max_users)) return false;
  for (unsigned level = 1; level <= share_of(waiter.want_); ++level) {
    if (shares.held(level) >= shares.limit(level)) return false;
  }
  // match_idle() skips the waiters that accept less idle time than one that refused the connection. A waiter with
  // kOnlyNew is skipped too, although it would accept an unused connection: it gets the dial in progress.
  if (waiter.want_.max_idle < Duration::zero() && protocol_of(entry) == Protocol::h1 && word.uses() == 0) return false;
  return reusability_for(entry, word, waiter.want_, now) == Reusability::fit;
}

// Compares the copies that readers see without the mutex.
void Destination::Impl::audit_limits(AuditReport& report) const {
  report.equal("the cap", pool.cap(), limits.size);
  report.equal("max_usage", live.max_usage(), limits.single_use ? 1 : limits.max_usage);
  report.equal("min_idle", live.min_idle(), limits.min_idle);
  report.expect(live.idle_timeout() == limits.idle_timeout && live.quarantine() == limits.quarantine &&
                    live.strategy() == limits.strategy && live.maximize() == limits.maximize,
                "a limit that is read without the mutex is another one");
  report.expect(probing.load(std::memory_order_relaxed) == circuit.last_failed(), "probing and the circuit disagree");
  report.expect(is_replaced() == limits.replaced, "the flag of a replaced pool is wrong");
  ClassQuota wanted;
  wanted.set(limits.classes, std::uint64_t{limits.size} * supply.streams_a_dial());
  for (unsigned level = 1; level < ClassQuota::kMaxClasses; ++level)
    report.equal("the share of a class", shares.limit(level), wanted.limit(level));
}

void Destination::Impl::audit_outstanding(const Recount& counted, const Outstanding& outstanding,
                                          AuditReport& report) const {
  AuditReport counted_before;
  std::uint64_t lent = 0;
  for (unsigned loop = 0; loop < loops; ++loop) {
    lent += counters[loop].borrows.load(std::memory_order_relaxed);
    lent -= counters[loop].restores.load(std::memory_order_relaxed);
  }
  report.equal("borrows - restores", lent, outstanding.leases);
  report.equal("users", counted.users, outstanding.leases + outstanding.probes + outstanding.grants);
  report.equal("tunnel places", tunnels.taken() + std::uint64_t{tunnels.waiters.size()}, outstanding.tunnel_places);
  report.equal("rejections in flight", rejections.audit(counted_before), outstanding.rejections);
  report.equal("grants of streams in flight", grants.audit(counted_before), outstanding.stream_grants);
  report.equal("messages that cancel, in flight", supply.cancels(), outstanding.cancels);
  std::uint64_t held = 0;
  for (unsigned level = ClassQuota::kMaxClasses; --level > 0;) {
    held += outstanding.by_class[level];
    report.equal("the leases of a class and those below it", shares.held(level), held);
  }
}

BudgetShare Destination::Impl::budget_share() const {
  BudgetShare share{this, pool.in_use(), pending.disposing(), pool.has_idle(), false};
  const Held lock(mutex);
  share.waits = !queue.empty();
  pool.for_each([&](const SlotEntry& entry) { share.announced += entry.value.cancel_message.announced ? 1 : 0; });
  return share;
}

}  // namespace carpool::pool
