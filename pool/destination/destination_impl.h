// The inside of a destination, in the order of a connection's life: borrowing (borrow.cc), handing on (release.cc),
// dialing (dial.cc), ending (close.cc); what is different for connections that are shared is in sessions.cc.
//
// Two worlds: entries, lock-free, and the line with all that opens or closes, under `mutex`. The bridge is `attention`:
//   a release publishes its entry, then reads attention; a borrower raises attention, then looks through the entries
//   (StoreLoad on both sides, all seq_cst RMWs). Whatever frees capacity ends in attend(), which serves the line.
// Nothing foreign is called under the mutex: what must be done goes into Errands and is performed after it.
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

// What speaks against lending a connection. unwanted: not to this borrower; the others end it.
enum class Fitness : std::uint8_t { fit, unwanted, expired, used_up, idle_too_long };
constexpr Closed cause_of(Fitness fitness) {
  return fitness == Fitness::expired ? Closed::expired : fitness == Fitness::used_up ? Closed::max_usage : Closed::idle;
}
// Why the next one is opened when this one ended.
constexpr Opened replaces(Closed cause) {
  switch (cause) {
    case Closed::expired:
      return Opened::expired;
    case Closed::max_usage:
      return Opened::max_usage;
    case Closed::idle:
    case Closed::peer_closed:
      return Opened::stale_found;
    default:
      return Opened::all_busy;
  }
}

// An idle connection, as it was seen.
struct Rested {
  Instant since;
  Chair* entry;
  Word word;
};

struct Destination::Impl final : BudgetWaiter {
  Impl(Destination& self, Origin origin, const Limits& limits, House& house, unsigned loops, ConnectionBudget* budget);
  ~Impl();

  // ---- borrow.cc: from the wish to the lease ----
  std::variant<Lease, Waiting, Fault> borrow(Borrower& borrower, const Want& want, Instant now);
  void cancel(Borrower& borrower, Instant now);
  bool take_idle(Lease& lease, LoopId here, const Want& want, Instant now, Opened& why);
  std::variant<Lease, Waiting, Fault> stand_in_line(Borrower& borrower, LoopId here, Instant now, Opened why);
  bool crowded(Instant now) const;
  bool helpless(const Errands& work) const;
  Fault why_not(const Errands& work);
  void fill(Lease& lease, Chair& entry, Word word, Duration waited, Instant now, LoopId here);
  Fitness worn(const Chair& entry, std::uint32_t uses, Instant now) const;
  Fitness fitness(const Chair& entry, Word word, const Want& want, Instant now) const;
  Chair* take_callers(Errands& work);
  void dial_one_more(Instant now);
  template <class Judge>
  Pool<Seat>::Found search(LoopId loop, bool on_loop, Judge&& judge) {
    return pool.acquire(Where{loop, on_loop, live.strategy(), std::uint32_t{loop} * 7}, judge);
  }

  // ---- release.cc: from one borrower to the next ----
  void release(Chair& entry, bool used, Instant now);
  void came_to_rest(Instant now);
  void hand_on(Chair& entry, bool used, Instant now, Errands& work);
  void pass_by(Chair& entry, bool used, bool no_room, Instant now, Errands& work);
  void grant(Chair& entry, Borrower& borrower, LoopId from, Errands& work);
  void match_idle(Errands& work, Instant now);
  bool give_idle(Borrower& borrower, Instant now, Errands& work);
  void wake_after_quarantine(Instant since, Instant now, Errands& work);
  void ask_for_quarantined(Errands& work, Instant now);
  void arrive(Grant& grant, Instant now);
  void hand_over(Borrower& borrower, Chair& entry, Word word, LoopId here, Instant now);
  std::optional<Fault> rejoin(Borrower& borrower);
  Borrower* taker(Kind kind);

  // ---- rejection.cc: the answer no ----
  void refuse(Borrower& borrower, const Fault& fault, Errands& work);
  void tell(Borrower& borrower, Fault no);
  bool ready_to_wait();

  // ---- budget.cc: other destinations that lack a slot of the budget ----
  void on_slot(Instant now) override { attend_own(now, Opened::all_busy); }
  bool give_slot(Instant now) override { return evict_own(now) || recall_dial(now); }
  Instant last_use() const override;
  std::uint32_t slots() const override { return pool.in_use(); }
  bool claimed(const Chair& entry, Instant now);
  bool session_claimed(const Chair& entry, Instant now);
  void offer_slots();
  void offer_spare_dials();
  void serve_starved(Instant now);

  // ---- dial.cc: supply and demand ----
  void attend(Instant now, Opened why = Opened::all_busy);
  void attend_own(Instant now, Opened why);
  void plan(Errands& work, Instant now, Opened why);
  void dial_for_demand(Errands& work, Instant now);
  std::optional<Kinds> lacking(std::uint32_t looked_at);
  std::uint32_t dial_room(Instant now) const { return circuit.room(dials, pool.in_use() > coming(), now); }
  void hold_back(Errands& work, Instant now);
  void note_dial_failure(const Fault& fault, Instant now);
  void book_dial(Chair& entry, Kinds kind, Opened cause, Errands& work, Instant now);
  Opened cause_of_dial(Kinds kind, Errands& work);
  bool make_room(Kinds kind, Errands& work, Instant now);
  void wake(Instant now);
  Chair* reserve(Errands& work);
  void dialed(const Reservation& reservation, std::unique_ptr<Pooled> made, Instant now);
  bool enable_h1(Chair& entry, bool clean, Errands& work);
  void dial_ended(Chair& entry);
  void dial_failed(const Reservation& reservation, const Fault& fault, Instant now);
  void set_shares() { shares.set(limits.classes, std::uint64_t{limits.size} * streams_a_dial()); }
  void refuse_after_failure(Kinds asked, const Fault& fault, Errands& work);
  std::uint32_t inspecting() const { return inspections.load(std::memory_order_seq_cst); }
  // Connections on their way, and places: whoever ends one plans again when its place is free.
  std::uint32_t coming() const { return dials + ending.load(std::memory_order_seq_cst); }
  // How many borrowers those will serve.
  std::uint32_t supply() const { return dial_supply() + ending.load(std::memory_order_seq_cst); }
  std::uint32_t dial_supply() const { return h1_dials + wide_dials() * streams_a_dial(); }
  std::uint32_t streams_a_dial() const { return expected != 0 ? expected : 1; }
  std::uint32_t wide_dials() const { return dials - h1_dials; }
  std::uint32_t serving() const;
  Instant expiry(const Chair& entry, Instant now) const;

  // ---- cancel_dials.cc: dials that are too many ----
  bool spare(const Chair& dial, std::uint32_t lacking) const;
  bool may_spare(Kinds asked, std::uint32_t lacking) const;
  List<Recall, DialTag>& recallable(const Chair& dial);
  Chair* youngest_spare_dial(Instant begun_before);
  void recall(Chair& dial, Errands& work);
  void recall_what_lasts(Errands& work, Instant now);
  void recall_beside(const Chair& came, Errands& work, Instant now);
  bool recall_for_room(Errands& work, Instant now);
  bool recall_dial(Instant now);
  void arrive_recall(Recall& recall, Instant now);
  void given_up(const Reservation& reservation, Instant now);
  std::uint32_t lacking_idle() const;
  std::optional<std::uint32_t> lacking_idle(std::uint32_t most) const;
  std::uint32_t lacking_idle_now() const;

  // ---- warm_up.cc: before anybody asks ----
  std::uint32_t open_ahead(std::uint32_t count, Opened cause, Errands& work, Instant now);
  void keep_min_idle(Errands& work, Instant now);

  // ---- close.cc: every way out ----
  // Returns true if places became free. The caller serves the line next, and then the starved ones of the budget.
  bool perform(Errands& work);
  void finish(Errands& work, Instant now, Opened why);  // perform, and then serves all whom that helps
  void end(Chair& entry, Closed cause, Errands& work);  // the caller owns it
  bool end_idle(Chair& entry, Word seen, Closed cause, Errands& work);
  bool end_worn(Chair& entry, Word seen, Closed cause, Errands& work);
  void give_up(Chair& entry);
  void book_end(Chair& entry, Closed cause, Errands& work);
  void discard(Chair& entry, Closed cause, Instant now);
  void inspection_lost();
  void end_inspection(Chair& entry, bool quiet, Closed cause, Instant now, bool in_order);
  void sweep(Instant now);
  void stop(Instant now);
  bool reclaim(Instant now, Duration unused);

  // ---- eviction.cc: which idle connection ends ----
  template <class Better>
  Chair* choose_idle(Errands& work, Better&& better);
  bool evict_own(Instant now);
  Chair* longest_unwanted(Kind kind, Errands& work, Instant now);
  Chair* least_used_session();

  // ---- slices.cc: what concerns every connection, a bounded number under one hold of the mutex ----
  template <class Step>
  void in_slices(Step&& step);
  std::vector<Rested> idle_by_rest(bool served_only) const;
  template <class Surplus>
  void end_longest_rested(Closed cause, bool served_only, Surplus&& surplus);
  void end_some_idle(Closed cause, Errands& work);
  void end_all_idle(Closed cause);
  void refuse_all(const Fault& fault);
  void drain_sessions(Closed cause);

  // ---- trim_idle.cc: surplus at rest ----
  std::optional<std::uint32_t> measured_need(Instant now);
  std::optional<std::uint32_t> need_of(std::vector<Stay> stays, Instant now, Duration window) const;
  void trim(std::uint32_t need);
  void end_worn_out(Instant now);

  // ---- learn_idle_limit.cc: how long the origin lets a connection rest ----
  bool overdue(const Chair& entry, Instant now) const;
  bool leave_to_origin(Chair& entry, Instant now);
  void learn_end(const Chair& entry, Duration rested, std::uint32_t served, bool in_order, Instant now);
  void learn_end_at_rest(const Chair& entry, bool in_order, Instant now);
  void learn_end_in_use(const Chair& entry, Instant leased, std::uint32_t served, Instant now);
  void learn_end_after_answer(const Chair& entry, Instant now);
  void witness(const Chair& entry, std::uint32_t served, Duration doubt, Instant now);
  void publish_horizon();

  // ---- operator_commands.cc: an operator's words ----
  void set_limits(const Limits& settings, Instant now);
  void pause(Instant now, bool drains);
  void resume(Instant now);
  void reconnect(Instant now);
  std::optional<Closed> unwelcome(const Chair& entry) const;
  std::uint32_t beyond_the_cap() const;
  void shrink();
  void review();
  void renew(Errands& work, Instant now);
  void replaced(const Chair& entry, Errands& work);
  void end_replaced(Errands& work);
  Chair* idle_old_one(Errands& work);

  // ---- sessions.cc: connections that are shared ----
  void release_stream(Chair& entry, bool used, Instant now);
  void leave_session(Chair& entry, Closed cause, bool broken, Instant now);
  void drain(Chair& entry, Closed cause, Errands& work);
  void note_draining(Chair& entry, const Change& change, Closed cause);
  void set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, bool answered, Instant now);
  void retire(std::uint32_t index, std::uint32_t generation, Closed cause, Instant now);
  void arrive_stream(Grant& grant, Instant now);
  void part(Chair& entry, Instant now);
  void learn_streams(Kinds asked, Kind kind, std::uint32_t streams, Errands& work);
  void lent_stream(Word word, std::uint32_t most, LoopId here, Instant now);
  void dial_ahead(Opened cause, Errands& work, Instant now);
  static bool fresh_enough(const Chair& entry, Word word, Instant since);
  bool lacks_streams() const;
  void drain_for_h1(Errands& work);
  bool enable_session(Chair& entry, Sharing sharing, bool clean, Errands& work, Instant now);
  void count_local(Chair& entry, LoopId loop);
  void uncount_local(Chair& entry);

  // ---- snapshot.cc ----
  Snapshot snapshot(Instant now) const;
  void tell_classes(Snapshot& into) const;
  void visit(ConnectionVisitor& visitor, Instant now) const;
  static void tell(const Chair& entry, ConnectionVisitor& visitor, Instant now);
  bool waiting() const { return attention.load(std::memory_order_seq_cst) != 0; }
  LoopCounters& count(LoopId loop) { return counters[loop]; }
  bool paused() const { return (attention.load(std::memory_order_seq_cst) & kPaused) != 0; }
  bool stopped() const { return (attention.load(std::memory_order_seq_cst) & kStopped) != 0; }
  static Chair& chair(std::uint32_t index) { return static_cast<Chair&>(*EntryIndex::process().find(index)); }
  bool take_tunnel_place();
  void return_tunnel_place() { tunnels.fetch_sub(1, std::memory_order_relaxed); }

  // In `attention`, beside the number of borrowers in line: everyone comes under the mutex while one of them is set.
  static constexpr std::uint32_t kStopped = 1u << 31;
  static constexpr std::uint32_t kPaused = 1u << 30;
  static constexpr std::uint32_t kReview = 1u << 29;  // who gives back asks unwelcome()

  Destination& self;
  const Origin origin;
  const std::string label;
  LiveLimits live;
  House& house;
  const unsigned loops;
  ConnectionBudget* const budget;
  Pool<Seat> pool;
  std::unique_ptr<LoopCounters[]> counters;
  std::unique_ptr<History[]> histories;                    // one per loop
  alignas(kCacheLine) Atomic<std::uint32_t> attention{0};  // borrowers in line; kStopped
  Shares shares;                                           // of the priority classes
  std::atomic<bool> reclaimed{false};                      // release under the mutex, acquire by who was refused
  std::atomic<Duration::rep> touched{0};                   // relaxed, as the times of entries
  std::atomic<bool> probing{false};                        // the last dial failed; relaxed: for a person
  std::atomic<std::uint32_t> tunnels{0};                   // places of max_tunnels taken
  std::atomic<std::uint32_t> tunnelling{0};                // connections that never come back

  Atomic<std::uint32_t> inspections{0};        // under way, or about to begin
  std::atomic<std::uint32_t> ready_wanted{0};  // limits.min_idle, for the sweep; relaxed
  std::atomic<Duration::rep> planned_at{0};    // relaxed, as the times of entries
  Atomic<std::uint32_t> ending{0};             // raised under the mutex, lowered after vacate()
  // keep_alive's, for whoever judges; relaxed: a limit, nothing is published by it.
  std::atomic<Duration::rep> horizon{Duration::max().count()}, trust{Duration::max().count()};

  mutable Mutex mutex;   // guards all below
  Instant trimmed_at{};  // when the need was last looked at
  Limits limits;         // `live` has what is read without the mutex
  Line line;
  std::uint32_t alive = 0;  // connections and dials that did not end in the ledger
  std::uint32_t dials = 0;
  std::uint32_t h1_dials = 0;    // of those, the ones that can bring nothing else,
  std::uint32_t line_dials = 0;  // and of the others those that were begun for the line
  std::uint32_t recalls = 0;     // on their way to dials
  bool saw_spare = false;        // the last sweep saw dials that nobody needed
  std::uint32_t expected;        // streams of the next connection; 0: not known yet
  FirstStreams first_streams;
  std::array<std::uint32_t, kKinds> held{};  // live ones that take new borrowers, by Kind
  std::uint32_t draining = 0;                // sessions that take nobody new
  DeliveryStore<Grant> grants;
  DeliveryStore<Refusal> refusals;  // one for each in line, at least: a no needs no memory
  bool drains = false;              // paused, and what comes back closes
  std::uint32_t old_ones = 0;       // connections that are to be replaced,
  std::uint32_t to_redial = 0;      // and successors that were not dialed yet
  std::uint32_t redialing = 0;      // such dials under way
  std::uint32_t broken_ahead = 0;   // that ended before their successor came
  std::uint32_t to_end = 0;         // successors that came, whose predecessor did not end yet
  std::uint32_t old_hand = 0;       // the block where the search for one goes on,
  std::uint32_t old_looked = 0;     // and how many blocks had none since the last one that was found
  std::uint32_t evict_hand = 0;     // the place where the choice of an idle one to end goes on
  std::uint32_t lacking_seen = 0;   // of min_idle, at the last sweep
  List<Recall, DialTag> line_dials_begun, h1_dials_begun;  // that may be recalled, the youngest last
  Instant quarantine_wake{};                               // asked for
  std::uint32_t made_room = 0;  // idle ones closed because nobody in line wanted them; each is a dial of cause policy
  Backoff backoff;
  Circuit circuit;
  Fault last_failure{FaultKind::connect_refused, Side::upstream};  // of a dial: for who is refused without one
  std::uint64_t undialed = 0;                                      // so many were
  Instant probe_wake{};                                            // asked for
  Ledger ledger;
  KeepAlive keep_alive;
  Instant swept_at{};
  Duration dial_time{};  // a moving average of dials that succeeded
};

}  // namespace carpool::pool
