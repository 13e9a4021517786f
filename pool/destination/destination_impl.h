// Destination::Impl, in the order of a connection's life: borrow.cc, release.cc, dial.cc, close.cc; shared connections
// (sessions) are in shared.cc.
//
// Every event that frees capacity ends in serve_waiters(). No other component is called under the mutex: actions go
// into DeferredActions and are performed after it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "pool/core/choice_of_two.h"
#include "pool/destination/choices.h"
#include "pool/destination/deferred_actions.h"
#include "pool/destination/destination.h"
#include "pool/destination/destination_state.h"
#include "pool/destination/reusability.h"

namespace carpool::pool {

struct IdleConnection;  // pool/destination/slices.h

struct Destination::Impl final : BudgetWaiter, DestinationState {
  Impl(Destination& self, Origin origin, const Limits& limits, Environment& environment, unsigned loops,
       ConnectionBudget* budget, std::optional<Instant> now);
  ~Impl();

  // ---- borrow.cc: from the request to the lease ----
  using BorrowResult = std::variant<Lease, Waiting, Fault>;
  BorrowResult borrow(Borrower& borrower, const BorrowRequest& want, Instant now) EXCLUDES(mutex);
  void cancel(Borrower& borrower, Instant now) EXCLUDES(mutex);
  bool acquire_idle(Lease& lease, LoopId here, const BorrowRequest& want, Instant now, OpenCause& why) EXCLUDES(mutex);
  bool search_and_acquire(Lease& lease, LoopId here, const BorrowRequest& want, Instant now, OpenCause& why,
                          bool& relisted) EXCLUDES(mutex);
  BorrowResult enqueue(Borrower& borrower, LoopId here, Instant now, OpenCause why) EXCLUDES(mutex);
  std::optional<Fault> may_not_wait(const Borrower& borrower) REQUIRES(mutex);
  bool lend_to_caller(Lease& lease, const Borrower& borrower, DeferredActions& actions, Instant now, LoopId here)
      EXCLUDES(mutex);
  BorrowResult reject_caller(Borrower& borrower, DeferredActions& actions, Instant now) EXCLUDES(mutex);
  bool queue_full(const DeferredActions& actions, Instant now) const REQUIRES(mutex);
  bool cannot_be_served(const DeferredActions& actions) const REQUIRES(mutex);
  Fault rejection_fault(const DeferredActions& actions) REQUIRES(mutex);
  void fill(Lease& lease, SlotEntry& entry, EntryWord word, Duration waited, Instant now, LoopId here) EXCLUDES(mutex);
  CloseCause cause_of(Reusability reusability) const { return pool::cause_of(reusability, live.single_use()); }
  Reusability reusability_of(const SlotEntry& entry, std::uint32_t uses, Instant now) const;
  // With min_idle, connections stay open and usable beyond idle_timeout: sweep() closes those above that number.
  bool keeps_idle() const { return live.min_idle() != 0; }
  bool in_quarantine(const SlotEntry& entry, EntryWord word, Instant now) const;
  bool past_idle_timeout(const SlotEntry& entry, Instant now) const;
  Reusability reusability_for(const SlotEntry& entry, EntryWord word, const BorrowRequest& want, Instant now) const;
  SlotEntry* attach_callers(DeferredActions& actions);
  void dial_one_more(Instant now) EXCLUDES(mutex);
  template <class Matcher>
  Pool<Slot>::Found search(LoopId loop, Searcher searcher, Instant now, Matcher&& matcher) {
    const SearchHint where{loop, searcher == Searcher::own_loop, live.strategy(), std::uint32_t{loop} * 7};
    Pool<Slot>::Found found;
    if (endpoints.spreads() && acquire_less_loaded(pool, endpoints, address_of, where, now, matcher, found))
      return found;
    return pool.acquire(where, matcher);
  }

  // ---- release.cc: from one borrower to the next ----
  void release(SlotEntry& entry, Use use, Instant now) EXCLUDES(mutex);
  void after_idle(const SlotEntry* idle, Instant now) EXCLUDES(mutex);
  void serve_from_idle(const SlotEntry* idle, Instant now) EXCLUDES(mutex);
  void release_or_hand_off(SlotEntry& entry, Use use, Instant now, DeferredActions& actions) REQUIRES(mutex);
  void offer_to_waiters(SlotEntry& entry, bool no_room, Instant now, DeferredActions& actions) REQUIRES(mutex);
  void grant(SlotEntry& entry, Borrower& borrower, const Change& change, DeferredActions& actions) REQUIRES(mutex);
  void match_idle(DeferredActions& actions, Instant now) REQUIRES(mutex);
  bool give_idle(Borrower& borrower, Instant now, DeferredActions& actions) REQUIRES(mutex);
  void wake_after_quarantine(Instant since, Instant now, DeferredActions& actions) REQUIRES(mutex);
  void wake_for_quarantined(DeferredActions& actions, Instant now) REQUIRES(mutex);
  void arrive(Grant& grant, Instant now) EXCLUDES(mutex);
  void deliver_lease(Borrower& borrower, SlotEntry& entry, EntryWord word, LoopId here, std::uint32_t trial,
                     Instant now) EXCLUDES(mutex);
  std::optional<Fault> rejoin(Borrower& borrower) REQUIRES(mutex);
  Borrower* next_borrower(Protocol kind) REQUIRES(mutex);

  // ---- waiters.cc: the two queues of waiters ----
  void push_waiter(Borrower& borrower) REQUIRES(mutex);
  void remove_waiter(Borrower& borrower) REQUIRES(mutex);
  void admit_tunnels(DeferredActions& actions, Instant now) REQUIRES(mutex);
  void return_tunnel_place(Instant now) EXCLUDES(mutex);
  std::uint32_t waiters() const REQUIRES(mutex) { return queue.size() + tunnels.waiters.size(); }

  // ---- rejection.cc: refused borrowers ----
  void refuse(Borrower& borrower, const Fault& fault, DeferredActions& actions) REQUIRES(mutex);
  void deliver_rejection(Borrower& borrower, Fault fault, Instant now) EXCLUDES(mutex);
  bool ready_to_wait() REQUIRES(mutex);
  std::optional<Fault> why_ended() const;

  // ---- budget.cc: slots of the connection budget for other destinations ----
  void on_slot(Instant now) override EXCLUDES(mutex) { serve_own_waiters(now, OpenCause::all_busy); }
  bool give_slot(Instant now) override EXCLUDES(mutex) { return evict_own(now) || cancel_one_dial(now); }
  Instant last_use() const override;
  std::uint32_t slots() const override { return pool.in_use(); }
  bool claimed(const SlotEntry& entry, Instant now) REQUIRES(mutex);
  bool session_claimed(const SlotEntry& entry, Instant now) EXCLUDES(mutex);
  void offer_slots();
  void offer_surplus_dials() REQUIRES(mutex);
  void serve_starved(Instant now) EXCLUDES(mutex);

  // ---- dial.cc: dialing for waiters ----
  void serve_waiters(Instant now, OpenCause why = OpenCause::all_busy) EXCLUDES(mutex);
  void serve_own_waiters(Instant now, OpenCause why) EXCLUDES(mutex);
  void schedule(DeferredActions& actions, Instant now, OpenCause why) REQUIRES(mutex);
  void dial_for_demand(DeferredActions& actions, Instant now) REQUIRES(mutex);
  std::optional<ProtocolMask> missing_dial(std::uint32_t examined) REQUIRES(mutex);
  std::uint32_t allowed_dials(Instant now) const REQUIRES(mutex) {
    return circuit.allowed_dials(supply.dials(), pool.in_use() > coming(), now);
  }
  void hold_back(DeferredActions& actions, Instant now) REQUIRES(mutex);
  void note_dial_failure(const Fault& fault, Instant now) REQUIRES(mutex);
  void record_dial(SlotEntry& entry, ProtocolMask kind, OpenCause cause, DeferredActions& actions, Instant now)
      REQUIRES(mutex);
  OpenCause cause_of_dial(ProtocolMask kind, DeferredActions& actions) REQUIRES(mutex);
  bool evict_for(ProtocolMask kind, DeferredActions& actions, Instant now) REQUIRES(mutex);
  void wake(Instant now) EXCLUDES(mutex);
  SlotEntry* reserve(DeferredActions& actions) REQUIRES(mutex);
  void dialed(const Reservation& reservation, std::unique_ptr<PooledConnection> made, Instant now) EXCLUDES(mutex);
  bool enable_h1(SlotEntry& entry, bool clean, DeferredActions& actions) REQUIRES(mutex);
  Supply::Dial dial_ended(SlotEntry& entry) REQUIRES(mutex);
  void dial_failed(const Reservation& reservation, const Fault& fault, Instant now) EXCLUDES(mutex);
  void set_shares() REQUIRES(mutex) {
    shares.set(limits.classes, std::uint64_t{limits.size} * supply.streams_a_dial());
  }
  void refuse_after_failure(ProtocolMask asked, const Fault& fault, DeferredActions& actions) REQUIRES(mutex);
  void refuse_for_protocol(const Fault& fault, DeferredActions& actions) REQUIRES(mutex);
  bool h1_serves() const REQUIRES(mutex);
  // Dials in progress and places being freed; the latter serve the waiters when they are free.
  std::uint32_t coming() const REQUIRES(mutex) { return supply.dials() + pending.disposing(); }
  // The number of borrowers that coming() will serve.
  std::uint32_t streams_coming() const REQUIRES(mutex) { return supply.streams_coming() + pending.disposing(); }
  std::uint32_t serving() const REQUIRES(mutex);
  Instant expiry(const SlotEntry& entry, Instant now) const REQUIRES(mutex);

  // ---- cancel_dials.cc: surplus dials ----
  bool surplus(const SlotEntry& dial, std::uint32_t missing) const REQUIRES(mutex);
  bool may_cancel(ProtocolMask asked, std::uint32_t missing) const REQUIRES(mutex);
  List<CancelDialMessage, DialTag>& cancellable(const SlotEntry& dial) REQUIRES(mutex);
  SlotEntry* youngest_surplus_dial(Instant begun_before) REQUIRES(mutex);
  void cancel_dial(SlotEntry& dial, DeferredActions& actions) REQUIRES(mutex);
  void cancel_lasting_surplus(DeferredActions& actions, Instant now) REQUIRES(mutex);
  void cancel_surplus_beside(const SlotEntry& opened, DeferredActions& actions, Instant now) REQUIRES(mutex);
  bool cancel_dial_for_slot(DeferredActions& actions, Instant now) REQUIRES(mutex);
  bool cancel_one_dial(Instant now) EXCLUDES(mutex);
  void arrive_cancel(CancelDialMessage& message, Instant now) EXCLUDES(mutex);
  void given_up(const Reservation& reservation, Instant now) EXCLUDES(mutex);
  std::uint32_t missing_idle() const;
  std::optional<std::uint32_t> missing_idle(std::uint32_t most) const;
  std::uint32_t missing_idle_now() const REQUIRES(mutex);

  // ---- warm_up.cc: dialing ahead of demand ----
  std::uint32_t open_ahead(std::uint32_t count, OpenCause cause, DeferredActions& actions, Instant now) REQUIRES(mutex);
  void keep_min_idle(std::uint32_t dials_before, DeferredActions& actions, Instant now) REQUIRES(mutex);

  // ---- spread.cc: several addresses ----
  void spread_out(const SlotEntry& entry, EntryWord word, Instant now) EXCLUDES(mutex);
  // Counts a lease or grant of the connection at its address.
  static void lent_at(const SlotEntry& entry) {
    if (Endpoint* at = address_of(entry)) at->lent();
  }
  static void returned_at(const SlotEntry& entry) {
    if (Endpoint* at = address_of(entry)) at->returned();
  }
  static Endpoint* address_of(const SlotEntry& entry) { return entry.value.endpoint.load(std::memory_order_relaxed); }

  void undo(const Grant& grant);  // releases the share and the count of a grant that its borrower does not get

  // ---- close.cc: closing ----
  // Returns true if places became free. The caller then serves the waiters and the starved destinations.
  bool run_actions(DeferredActions& actions) EXCLUDES(mutex);
  void run_actions_and_serve(DeferredActions& actions, Instant now, OpenCause why) EXCLUDES(mutex);
  void end(SlotEntry& entry, CloseCause cause, DeferredActions& actions) REQUIRES(mutex);  // the caller owns it
  bool end_idle(SlotEntry& entry, EntryWord seen, CloseCause cause, DeferredActions& actions) REQUIRES(mutex);
  bool end_expired(SlotEntry& entry, EntryWord seen, CloseCause cause, DeferredActions& actions) REQUIRES(mutex);
  void release_slot(SlotEntry& entry) EXCLUDES(mutex);
  void record_close(SlotEntry& entry, CloseCause cause, DeferredActions& actions) REQUIRES(mutex);
  void discard(SlotEntry& entry, CloseCause cause, Instant now) EXCLUDES(mutex);
  void inspection_lost() EXCLUDES(mutex);
  void keep_inspected(SlotEntry& entry, Instant now) EXCLUDES(mutex);
  void close_inspected(SlotEntry& entry, CloseCause cause, Instant now, OriginClose how) EXCLUDES(mutex);
  void sweep(Instant now) EXCLUDES(mutex);
  void stop(Instant now) EXCLUDES(mutex);
  bool reclaim(Instant now, Duration unused) EXCLUDES(mutex);

  // ---- eviction.cc: the choice of an idle connection to close ----
  template <class Accept, class Better>
  SlotEntry* find_idle(DeferredActions& actions, Accept&& accept, Better&& better) REQUIRES(mutex);
  bool evict_own(Instant now) EXCLUDES(mutex);
  SlotEntry* longest_idle_unwanted(Protocol kind, DeferredActions& actions, Instant now) REQUIRES(mutex);
  SlotEntry* least_used_session() REQUIRES(mutex);

  // ---- slices.cc: operations on every connection, in slices of bounded length under the mutex ----
  template <class Step>
  void in_slices(Step&& step) EXCLUDES(mutex);
  std::vector<IdleConnection> all_idle(IdleScope scope) const EXCLUDES(mutex);
  template <class Surplus>
  void end_longest_idle(CloseCause cause, IdleScope scope, Surplus&& surplus) EXCLUDES(mutex);
  void end_some_idle(CloseCause cause, DeferredActions& actions) REQUIRES(mutex);
  void end_all_idle(CloseCause cause) EXCLUDES(mutex);
  void refuse_all(const Fault& fault) EXCLUDES(mutex);
  void drain_sessions(CloseCause cause) EXCLUDES(mutex);

  // ---- trim_idle.cc: closing surplus idle connections ----
  std::optional<std::uint32_t> measured_need(Instant now) EXCLUDES(mutex);
  std::optional<std::uint32_t> need_of(std::vector<BorrowRecord> borrows, Instant now, Duration window) const;
  void trim(std::uint32_t need) EXCLUDES(mutex);
  std::uint32_t above_min_idle() const;
  void end_all_expired(Instant now) EXCLUDES(mutex);

  // ---- auto_size.cc: a size that follows the load ----
  AutoSize* published_auto_size() const { return measured.load(std::memory_order_acquire); }  // null: it is fixed
  void adopt_auto_size(FormerSize former, Instant now) REQUIRES(mutex);
  void apply_size(std::uint32_t size) REQUIRES(mutex);
  void follow_load(Instant now) EXCLUDES(mutex);
  std::optional<SizeChange> measure_and_decide(Instant now) REQUIRES(mutex);

  // ---- learn_idle_limit.cc: the origin's idle timeout ----
  bool past_idle_limit(const SlotEntry& entry, Instant now) const;
  bool leave_to_origin(SlotEntry& entry, Instant now) REQUIRES(mutex);
  void learn_end(const SlotEntry& entry, Duration idle_for, std::uint32_t served, OriginClose how, Instant now)
      REQUIRES(mutex);
  void learn_idle_close(const SlotEntry& entry, OriginClose how, Instant now) REQUIRES(mutex);
  void learn_end_in_use(const SlotEntry& entry, Instant leased, std::uint32_t served, Instant now) EXCLUDES(mutex);
  void learn_close_after_response(const SlotEntry& entry, Instant now) EXCLUDES(mutex);
  void note_survivor(const SlotEntry& entry, std::uint32_t served, Duration limit, Instant now) REQUIRES(mutex);
  void forget_idle_limit() REQUIRES(mutex);
  void publish_effective_limit() REQUIRES(mutex);

  // ---- operator_commands.cc: operator commands ----
  void set_limits(const Limits& settings, Instant now) EXCLUDES(mutex);
  void mark_replaced() REQUIRES(mutex);  // after each change of limits.replaced
  void leave_to_successor() EXCLUDES(mutex);
  void pause(Instant now, Instant until, PauseKind kind) EXCLUDES(mutex);
  void begin_pause(const Pause& pause) REQUIRES(mutex);
  void end_pause() REQUIRES(mutex);
  void end_pause_in_time(Instant now) EXCLUDES(mutex);
  void resume(Instant now) EXCLUDES(mutex);
  std::optional<CloseCause> forced_close_cause(const SlotEntry& entry) const REQUIRES(mutex);
  std::uint32_t above_cap() const REQUIRES(mutex);
  void shrink() EXCLUDES(mutex);
  void review() REQUIRES(mutex);

  // ---- reconnect.cc: the replacement of every connection ----
  void reconnect(Instant now) EXCLUDES(mutex);
  bool needs_replacement(const SlotEntry& entry) EXCLUDES(mutex);
  void plan_missed() EXCLUDES(mutex);
  void redial_old(DeferredActions& actions, Instant now) REQUIRES(mutex);
  void replaced(const SlotEntry& entry, DeferredActions& actions) REQUIRES(mutex);
  void end_replaced(DeferredActions& actions) REQUIRES(mutex);
  SlotEntry* idle_to_replace(DeferredActions& actions) REQUIRES(mutex);

  // ---- cool_down.cc: pauses that the origin requests ----
  bool begin_cool_down(Duration wait, std::uint16_t status, Instant now) EXCLUDES(mutex);
  void wake_for_trial(DeferredActions& actions, Instant now) REQUIRES(mutex);
  void end_cool_down() REQUIRES(mutex);
  void mark_cooling() REQUIRES(mutex);  // after each change of cool_down.active()
  void take_over_pauses(const Impl& predecessor) EXCLUDES(mutex);
  void trial_over(std::uint32_t trial) EXCLUDES(mutex);
  bool pass_trial(std::uint32_t trial, Instant now) EXCLUDES(mutex);
  std::optional<Duration> cooling(Instant now) const EXCLUDES(mutex);
  bool lends() const REQUIRES(mutex) { return !paused() && !is_replaced() && cool_down.lends(); }

  // ---- shared.cc: sessions ----
  void release_stream(SlotEntry& entry, Use use, Instant now) EXCLUDES(mutex);
  void release_and_drain(SlotEntry& entry, CloseCause cause, SessionEnd how, Instant now) EXCLUDES(mutex);
  void drain(SlotEntry& entry, CloseCause cause, DeferredActions& actions) REQUIRES(mutex);
  void note_draining(SlotEntry& entry, const Change& change, CloseCause cause) REQUIRES(mutex);
  void set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, LimitSource from, Instant now)
      EXCLUDES(mutex);
  void retire(std::uint32_t index, std::uint32_t generation, CloseCause cause, Instant now) EXCLUDES(mutex);
  void arrive_stream(Grant& grant, Instant now) EXCLUDES(mutex);
  void dispose_session(SlotEntry& entry, Instant now) EXCLUDES(mutex);
  void learn_streams(ProtocolMask asked, Protocol kind, std::uint32_t streams, DeferredActions& actions)
      REQUIRES(mutex);
  void lent_stream(EntryWord word, std::uint32_t most, LoopId here, Instant now) EXCLUDES(mutex);
  void dial_ahead(OpenCause cause, DeferredActions& actions, Instant now) REQUIRES(mutex);
  static bool fresh_enough(const SlotEntry& entry, EntryWord word, const Borrower& retry);
  void match_retries(DeferredActions& actions, Instant now) REQUIRES(mutex);
  bool lacks_streams() const REQUIRES(mutex);
  void drain_for_h1(DeferredActions& actions) REQUIRES(mutex);
  bool enable_session(SlotEntry& entry, Multiplexing multiplexing, bool clean, DeferredActions& actions, Instant now)
      REQUIRES(mutex);
  void count_local(SlotEntry& entry, LoopId loop) REQUIRES(mutex);
  void uncount_local(SlotEntry& entry) REQUIRES(mutex);

  // ---- snapshot.cc ----
  Snapshot snapshot(Instant now) const EXCLUDES(mutex);
  void describe_totals(Snapshot& into, Instant now) const REQUIRES(mutex);
  void describe_classes(Snapshot& into) const REQUIRES(mutex);
  void visit(ConnectionVisitor& visitor, Instant now) const EXCLUDES(mutex);
  static void describe(const SlotEntry& entry, ConnectionVisitor& visitor, Instant now);

  // ---- audit.cc: recounts ----
  struct Recount;
  AuditReport audit(const Outstanding* outstanding) const EXCLUDES(mutex);
  BudgetShare budget_share() const EXCLUDES(mutex);
  Recount recount(AuditReport& report) const REQUIRES(mutex);
  void recount_dial(const SlotEntry& dial, Recount& counted, AuditReport& report) const REQUIRES(mutex);
  void recount_connection(const SlotEntry& entry, EntryWord word, Recount& counted, AuditReport& report) const
      REQUIRES(mutex);
  void audit_supply(const Recount& counted, AuditReport& report) const REQUIRES(mutex);
  void audit_slots(const Recount& counted, AuditReport& report) const REQUIRES(mutex);
  void audit_queue(AuditReport& report) const REQUIRES(mutex);
  void audit_waiters(AuditReport& report) const REQUIRES(mutex);
  bool suits(const Borrower& waiter, const SlotEntry& entry, Instant now) const REQUIRES(mutex);
  void audit_limits(AuditReport& report) const REQUIRES(mutex);
  void audit_outstanding(const Recount& counted, const Outstanding& outstanding, AuditReport& report) const
      REQUIRES(mutex);
};

}  // namespace carpool::pool
