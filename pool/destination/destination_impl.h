// Destination::Impl, in the order of a connection's life: borrow.cc, release.cc, dial.cc, close.cc; shared connections
// (sessions) are in shared.cc.
//
// Entries are lock-free; the wait queue and all opening and closing are guarded by `mutex`. `attention` connects both:
//   a release publishes its entry, then reads attention; a borrower raises attention, then searches the entries
//   (StoreLoad on both sides, all seq_cst RMWs). Every event that frees capacity ends in serve_waiters().
// No other component is called under the mutex: actions go into DeferredActions and are performed after it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "pool/core/atomic.h"
#include "pool/core/pool.h"
#include "pool/destination/deferred_actions.h"
#include "pool/destination/destination.h"
#include "pool/destination/ledger.h"
#include "pool/destination/slot.h"
#include "pool/policy/borrow_history.h"
#include "pool/policy/circuit_breaker.h"
#include "pool/policy/dial_backoff.h"
#include "pool/policy/idle_limit_learner.h"
#include "pool/queue/class_quota.h"
#include "pool/queue/connection_budget.h"
#include "pool/queue/delivery_pool.h"
#include "pool/queue/wait_queue.h"

namespace carpool::pool {

// Whether a connection can be lent. unwanted: not to this borrower; expired, used_up and idle_too_long close it.
enum class Reusability : std::uint8_t { fit, unwanted, expired, used_up, idle_too_long };
constexpr CloseCause cause_of(Reusability fitness) {
  return fitness == Reusability::expired   ? CloseCause::expired
         : fitness == Reusability::used_up ? CloseCause::max_usage
                                           : CloseCause::idle;
}
// The cause of opening a connection in place of one that closed with `cause`.
constexpr OpenCause replaces(CloseCause cause) {
  switch (cause) {
    case CloseCause::expired:
      return OpenCause::expired;
    case CloseCause::max_usage:
      return OpenCause::max_usage;
    case CloseCause::idle:
    case CloseCause::peer_closed:
      return OpenCause::stale_found;
    default:
      return OpenCause::all_busy;
  }
}

// An idle connection and the state in which it was seen.
struct IdleConnection {
  Instant since;
  SlotEntry* entry;
  EntryWord word;
};

struct Destination::Impl final : BudgetWaiter {
  Impl(Destination& self, Origin origin, const Limits& limits, Environment& environment, unsigned loops,
       ConnectionBudget* budget);
  ~Impl();

  // ---- borrow.cc: from the request to the lease ----
  std::variant<Lease, Waiting, Fault> borrow(Borrower& borrower, const BorrowRequest& want, Instant now);
  void cancel(Borrower& borrower, Instant now);
  bool take_idle(Lease& lease, LoopId here, const BorrowRequest& want, Instant now, OpenCause& why);
  std::variant<Lease, Waiting, Fault> enqueue(Borrower& borrower, LoopId here, Instant now, OpenCause why);
  bool queue_full(Instant now) const;
  bool cannot_be_served(const DeferredActions& actions) const;
  Fault rejection_fault(const DeferredActions& actions);
  void fill(Lease& lease, SlotEntry& entry, EntryWord word, Duration waited, Instant now, LoopId here);
  Reusability reusability_of(const SlotEntry& entry, std::uint32_t uses, Instant now) const;
  Reusability reusability_for(const SlotEntry& entry, EntryWord word, const BorrowRequest& want, Instant now) const;
  SlotEntry* take_callers(DeferredActions& actions);
  void dial_one_more(Instant now);
  template <class Judge>
  Pool<Slot>::Found search(LoopId loop, bool on_loop, Judge&& judge) {
    return pool.acquire(SearchHint{loop, on_loop, live.strategy(), std::uint32_t{loop} * 7}, judge);
  }

  // ---- release.cc: from one borrower to the next ----
  void release(SlotEntry& entry, bool used, Instant now);
  void after_idle(Instant now);
  void release_or_hand_off(SlotEntry& entry, bool used, Instant now, DeferredActions& actions);
  void offer_to_waiters(SlotEntry& entry, bool used, bool no_room, Instant now, DeferredActions& actions);
  void grant(SlotEntry& entry, Borrower& borrower, LoopId from, DeferredActions& actions);
  void match_idle(DeferredActions& actions, Instant now);
  bool give_idle(Borrower& borrower, Instant now, DeferredActions& actions);
  void wake_after_quarantine(Instant since, Instant now, DeferredActions& actions);
  void ask_for_quarantined(DeferredActions& actions, Instant now);
  void arrive(Grant& grant, Instant now);
  void hand_over(Borrower& borrower, SlotEntry& entry, EntryWord word, LoopId here, Instant now);
  std::optional<Fault> rejoin(Borrower& borrower);
  Borrower* next_borrower(Protocol kind);

  // ---- rejection.cc: refused borrowers ----
  void refuse(Borrower& borrower, const Fault& fault, DeferredActions& actions);
  void deliver_rejection(Borrower& borrower, Fault no);
  bool ready_to_wait();

  // ---- budget.cc: slots of the connection budget for other destinations ----
  void on_slot(Instant now) override { serve_own_waiters(now, OpenCause::all_busy); }
  bool give_slot(Instant now) override { return evict_own(now) || cancel_one_dial(now); }
  Instant last_use() const override;
  std::uint32_t slots() const override { return pool.in_use(); }
  bool claimed(const SlotEntry& entry, Instant now);
  bool session_claimed(const SlotEntry& entry, Instant now);
  void offer_slots();
  void offer_surplus_dials();
  void serve_starved(Instant now);

  // ---- dial.cc: dialing for waiters ----
  void serve_waiters(Instant now, OpenCause why = OpenCause::all_busy);
  void serve_own_waiters(Instant now, OpenCause why);
  void schedule(DeferredActions& actions, Instant now, OpenCause why);
  void dial_for_demand(DeferredActions& actions, Instant now);
  std::optional<ProtocolMask> missing_dial(std::uint32_t looked_at);
  std::uint32_t dial_room(Instant now) const { return circuit.room(dials, pool.in_use() > coming(), now); }
  void hold_back(DeferredActions& actions, Instant now);
  void note_dial_failure(const Fault& fault, Instant now);
  void record_dial(SlotEntry& entry, ProtocolMask kind, OpenCause cause, DeferredActions& actions, Instant now);
  OpenCause cause_of_dial(ProtocolMask kind, DeferredActions& actions);
  bool evict_for(ProtocolMask kind, DeferredActions& actions, Instant now);
  void wake(Instant now);
  SlotEntry* reserve(DeferredActions& actions);
  void dialed(const Reservation& reservation, std::unique_ptr<PooledConnection> made, Instant now);
  bool enable_h1(SlotEntry& entry, bool clean, DeferredActions& actions);
  void dial_ended(SlotEntry& entry);
  void dial_failed(const Reservation& reservation, const Fault& fault, Instant now);
  void set_shares() { shares.set(limits.classes, std::uint64_t{limits.size} * streams_a_dial()); }
  void refuse_after_failure(ProtocolMask asked, const Fault& fault, DeferredActions& actions);
  std::uint32_t inspecting() const { return inspections.load(std::memory_order_seq_cst); }
  // Dials in progress and places being freed; the latter serve the waiters when they are free.
  std::uint32_t coming() const { return dials + ending.load(std::memory_order_seq_cst); }
  // The number of borrowers that coming() will serve.
  std::uint32_t supply() const { return dial_supply() + ending.load(std::memory_order_seq_cst); }
  std::uint32_t dial_supply() const { return h1_dials + wide_dials() * streams_a_dial(); }
  std::uint32_t streams_a_dial() const { return expected != 0 ? expected : 1; }
  std::uint32_t wide_dials() const { return dials - h1_dials; }
  std::uint32_t serving() const;
  Instant expiry(const SlotEntry& entry, Instant now) const;

  // ---- cancel_dials.cc: surplus dials ----
  bool surplus(const SlotEntry& dial, std::uint32_t lacking) const;
  bool may_cancel(ProtocolMask asked, std::uint32_t lacking) const;
  List<CancelDialMessage, DialTag>& cancellable(const SlotEntry& dial);
  SlotEntry* youngest_surplus_dial(Instant begun_before);
  void cancel_dial(SlotEntry& dial, DeferredActions& actions);
  void cancel_lasting_surplus(DeferredActions& actions, Instant now);
  void cancel_surplus_beside(const SlotEntry& came, DeferredActions& actions, Instant now);
  bool cancel_dial_for_slot(DeferredActions& actions, Instant now);
  bool cancel_one_dial(Instant now);
  void arrive_cancel(CancelDialMessage& recall, Instant now);
  void given_up(const Reservation& reservation, Instant now);
  std::uint32_t lacking_idle() const;
  std::optional<std::uint32_t> lacking_idle(std::uint32_t most) const;
  std::uint32_t lacking_idle_now() const;

  // ---- warm_up.cc: dialing ahead of demand ----
  std::uint32_t open_ahead(std::uint32_t count, OpenCause cause, DeferredActions& actions, Instant now);
  void keep_min_idle(DeferredActions& actions, Instant now);

  // ---- close.cc: closing ----
  // Returns true if places became free. The caller then serves the waiters and the starved destinations.
  bool run_actions(DeferredActions& actions);
  // Performs the actions, then serves waiters and starved destinations.
  void run_actions_and_serve(DeferredActions& actions, Instant now, OpenCause why);
  void end(SlotEntry& entry, CloseCause cause, DeferredActions& actions);  // the caller owns it
  bool end_idle(SlotEntry& entry, EntryWord seen, CloseCause cause, DeferredActions& actions);
  bool end_expired(SlotEntry& entry, EntryWord seen, CloseCause cause, DeferredActions& actions);
  void release_slot(SlotEntry& entry);
  void record_close(SlotEntry& entry, CloseCause cause, DeferredActions& actions);
  void discard(SlotEntry& entry, CloseCause cause, Instant now);
  void inspection_lost();
  void end_inspection(SlotEntry& entry, bool quiet, CloseCause cause, Instant now, bool in_order);
  void sweep(Instant now);
  void stop(Instant now);
  bool reclaim(Instant now, Duration unused);

  // ---- eviction.cc: the choice of an idle connection to close ----
  template <class Better>
  SlotEntry* choose_idle(DeferredActions& actions, Better&& better);
  bool evict_own(Instant now);
  SlotEntry* longest_idle_unwanted(Protocol kind, DeferredActions& actions, Instant now);
  SlotEntry* least_used_session();

  // ---- slices.cc: operations on every connection, in slices of bounded length under the mutex ----
  template <class Step>
  void in_slices(Step&& step);
  std::vector<IdleConnection> idle_by_age(bool served_only) const;
  template <class Surplus>
  void end_longest_idle(CloseCause cause, bool served_only, Surplus&& surplus);
  void end_some_idle(CloseCause cause, DeferredActions& actions);
  void end_all_idle(CloseCause cause);
  void refuse_all(const Fault& fault);
  void drain_sessions(CloseCause cause);

  // ---- trim_idle.cc: closing surplus idle connections ----
  std::optional<std::uint32_t> measured_need(Instant now);
  std::optional<std::uint32_t> need_of(std::vector<BorrowRecord> stays, Instant now, Duration window) const;
  void trim(std::uint32_t need);
  void end_all_expired(Instant now);

  // ---- learn_idle_limit.cc: the origin's idle timeout ----
  bool past_idle_limit(const SlotEntry& entry, Instant now) const;
  bool leave_to_origin(SlotEntry& entry, Instant now);
  void learn_end(const SlotEntry& entry, Duration rested, std::uint32_t served, bool in_order, Instant now);
  void learn_end_at_rest(const SlotEntry& entry, bool in_order, Instant now);
  void learn_end_in_use(const SlotEntry& entry, Instant leased, std::uint32_t served, Instant now);
  void learn_end_after_answer(const SlotEntry& entry, Instant now);
  void witness(const SlotEntry& entry, std::uint32_t served, Duration doubt, Instant now);
  void publish_effective_limit();

  // ---- operator_commands.cc: operator commands ----
  void set_limits(const Limits& settings, Instant now);
  void pause(Instant now, bool draining_all);
  void resume(Instant now);
  void reconnect(Instant now);
  std::optional<CloseCause> forced_close_cause(const SlotEntry& entry) const;
  std::uint32_t beyond_the_cap() const;
  void shrink();
  void review();
  void redial_old(DeferredActions& actions, Instant now);
  void replaced(const SlotEntry& entry, DeferredActions& actions);
  void end_replaced(DeferredActions& actions);
  SlotEntry* idle_to_replace(DeferredActions& actions);

  // ---- shared.cc: sessions ----
  void release_stream(SlotEntry& entry, bool used, Instant now);
  void release_and_drain(SlotEntry& entry, CloseCause cause, bool broken, Instant now);
  void drain(SlotEntry& entry, CloseCause cause, DeferredActions& actions);
  void note_draining(SlotEntry& entry, const Change& change, CloseCause cause);
  void set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, bool answered, Instant now);
  void retire(std::uint32_t index, std::uint32_t generation, CloseCause cause, Instant now);
  void arrive_stream(Grant& grant, Instant now);
  void dispose_session(SlotEntry& entry, Instant now);
  void learn_streams(ProtocolMask asked, Protocol kind, std::uint32_t streams, DeferredActions& actions);
  void lent_stream(EntryWord word, std::uint32_t most, LoopId here, Instant now);
  void dial_ahead(OpenCause cause, DeferredActions& actions, Instant now);
  static bool fresh_enough(const SlotEntry& entry, EntryWord word, Instant since);
  bool lacks_streams() const;
  void drain_for_h1(DeferredActions& actions);
  bool enable_session(SlotEntry& entry, Multiplexing multiplexing, bool clean, DeferredActions& actions, Instant now);
  void count_local(SlotEntry& entry, LoopId loop);
  void uncount_local(SlotEntry& entry);

  // ---- snapshot.cc ----
  Snapshot snapshot(Instant now) const;
  void describe_classes(Snapshot& into) const;
  void visit(ConnectionVisitor& visitor, Instant now) const;
  static void describe(const SlotEntry& entry, ConnectionVisitor& visitor, Instant now);
  bool waiting() const { return attention.load(std::memory_order_seq_cst) != 0; }
  LoopCounters& count(LoopId loop) { return counters[loop]; }
  bool paused() const { return (attention.load(std::memory_order_seq_cst) & kPaused) != 0; }
  bool stopped() const { return (attention.load(std::memory_order_seq_cst) & kStopped) != 0; }
  static SlotEntry& slot_entry(std::uint32_t index) {
    return static_cast<SlotEntry&>(*EntryIndex::process().find(index));
  }
  bool take_tunnel_place();
  void return_tunnel_place() { tunnels.fetch_sub(1, std::memory_order_relaxed); }

  // Flags in `attention`, above the number of waiters: while one is set, every borrow and release takes the mutex.
  static constexpr std::uint32_t kStopped = 1u << 31;
  static constexpr std::uint32_t kPaused = 1u << 30;
  static constexpr std::uint32_t kReview = 1u << 29;  // release() checks forced_close_cause()

  Destination& self;
  const Origin origin;
  const std::string label;
  LiveLimits live;
  Environment& environment;
  const unsigned loops;
  ConnectionBudget* const budget;
  Pool<Slot> pool;
  std::unique_ptr<LoopCounters[]> counters;
  std::unique_ptr<BorrowHistory[]> histories;              // one per loop
  alignas(kCacheLine) Atomic<std::uint32_t> attention{0};  // number of waiters, and the flags above
  ClassQuota shares;                                       // of the priority classes
  std::atomic<bool> reclaimed{false};                      // release under the mutex, acquire by refused callers
  std::atomic<Duration::rep> touched{0};                   // relaxed, as the times of entries
  std::atomic<bool> probing{false};                        // the last dial failed; relaxed: informational
  std::atomic<std::uint32_t> tunnels{0};                   // places of max_tunnels taken
  std::atomic<std::uint32_t> tunnelling{0};                // connections that became tunnels

  Atomic<std::uint32_t> inspections{0};        // in progress or about to begin
  std::atomic<std::uint32_t> ready_wanted{0};  // limits.min_idle, for the sweep; relaxed
  std::atomic<Duration::rep> planned_at{0};    // relaxed, as the times of entries
  Atomic<std::uint32_t> ending{0};             // raised under the mutex, lowered after vacate()
  // Copies from keep_alive for lock-free readers; relaxed: limits that publish nothing.
  std::atomic<Duration::rep> effective_limit{Duration::max().count()}, trust{Duration::max().count()};

  mutable Mutex mutex;   // guards all members below
  Instant trimmed_at{};  // time of the last measured_need()
  Limits limits;         // `live` holds those that are read without the mutex
  WaitQueue line;
  std::uint32_t alive = 0;  // connections and dials not yet closed in the ledger
  std::uint32_t dials = 0;
  std::uint32_t h1_dials = 0;    // dials for HTTP/1.1 only
  std::uint32_t line_dials = 0;  // other dials that were started for waiters
  std::uint32_t cancels = 0;     // cancel messages in flight
  bool saw_surplus = false;      // the last sweep saw surplus dials
  std::uint32_t expected;        // streams expected of the next connection; 0: unknown
  StreamLimitLearner first_streams;
  std::array<std::uint32_t, kProtocols> held{};  // connections that admit new borrowers, by Protocol
  std::uint32_t draining = 0;                    // sessions that admit no new borrower
  DeliveryPool<Grant> grants;
  DeliveryPool<Rejection> rejections;  // at least one per waiter, so that a rejection never allocates
  bool draining_all = false;           // paused, and released connections close
  std::uint32_t to_replace = 0;        // connections to be replaced
  std::uint32_t to_redial = 0;         // successors not dialed yet
  std::uint32_t redialing = 0;         // dials of successors in progress
  std::uint32_t broken_ahead = 0;      // connections closed before their successor was open
  std::uint32_t to_end = 0;            // successors that are open while their predecessor is not closed
  std::uint32_t old_hand = 0;          // block where the search for a replaceable connection continues
  std::uint32_t old_looked = 0;        // blocks without one since the last that was found
  std::uint32_t evict_hand = 0;        // position where the choice of an idle connection to close continues
  std::uint32_t lacking_seen = 0;      // missing for min_idle at the last sweep
  List<CancelDialMessage, DialTag> line_dials_begun, h1_dials_begun;  // can be cancelled, the youngest last
  Instant quarantine_wake{};                                          // requested
  // idle connections closed because no waiter accepted them; each causes a dial with cause policy
  std::uint32_t made_room = 0;
  DialBackoff backoff;
  CircuitBreaker circuit;
  // the last dial's, for waiters refused without a dial
  Fault last_failure{FaultKind::connect_refused, Side::upstream};
  std::uint64_t undialed = 0;  // number of those waiters
  Instant probe_wake{};        // requested
  Ledger ledger;
  IdleLimitLearner keep_alive;
  Instant swept_at{};
  Duration dial_time{};  // moving average of successful dials
};

}  // namespace carpool::pool
