// DestinationState: the data of a destination: its entries, which are lock-free, and what one mutex guards.
//
// `attention` connects both: a release publishes its entry, then reads attention; a borrower raises attention, then
// searches the entries (StoreLoad on both sides, all seq_cst RMWs).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "pool/atomic.h"
#include "pool/core/pool.h"
#include "pool/destination/attention_flags.h"
#include "pool/destination/destination.h"
#include "pool/destination/grant.h"
#include "pool/destination/ledger.h"
#include "pool/destination/pending_places.h"
#include "pool/destination/rejection.h"
#include "pool/destination/replacement.h"
#include "pool/destination/slot.h"
#include "pool/destination/supply.h"
#include "pool/destination/tunnel_places.h"
#include "pool/policy/auto_size.h"
#include "pool/policy/borrow_history.h"
#include "pool/policy/circuit_breaker.h"
#include "pool/policy/cool_down.h"
#include "pool/policy/dial_backoff.h"
#include "pool/policy/idle_limit_learner.h"
#include "pool/queue/class_quota.h"
#include "pool/queue/connection_budget.h"
#include "pool/queue/delivery_pool.h"
#include "pool/queue/wait_queue.h"

namespace carpool::pool {

struct DestinationState : AttentionFlags {
  DestinationState(Destination& self, Origin origin, const Limits& limits, Environment& environment, unsigned loops,
                   ConnectionBudget* budget);

  bool waiting() const { return attention.load(std::memory_order_seq_cst) != 0; }
  LoopCounters& count(LoopId loop) { return counters[loop]; }
  bool is_cooling_down() const { return (attention.load(std::memory_order_seq_cst) & kCooling) != 0; }
  bool paused() const { return (attention.load(std::memory_order_seq_cst) & kPaused) != 0; }
  bool stopped() const { return (attention.load(std::memory_order_seq_cst) & kStopped) != 0; }
  bool is_replaced() const { return (attention.load(std::memory_order_seq_cst) & kReplaced) != 0; }
  static SlotEntry& slot_entry(std::uint32_t index) {
    return static_cast<SlotEntry&>(*EntryIndex::process().find(index));
  }

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
  Endpoints endpoints;
  Atomic<bool> reclaimed{false};             // release under the mutex, acquire by refused callers
  std::atomic<Duration::rep> touched{0};     // relaxed, as the times of entries
  std::atomic<bool> probing{false};          // the last dial failed; relaxed: informational
  std::atomic<std::uint32_t> tunnelling{0};  // connections that became tunnels
  PendingPlaces pending;
  std::atomic<Duration::rep> planned_at{0};  // relaxed, as the times of entries
  // Copies from keep_alive for lock-free readers; relaxed: limits that publish nothing.
  std::atomic<Duration::rep> effective_limit{Duration::max().count()}, trust{Duration::max().count()};

  Atomic<AutoSize*> measured{nullptr};  // auto_size, for readers without the mutex: release and acquire
  mutable Mutex mutex;
  std::unique_ptr<AutoSize> auto_size GUARDED_BY(mutex);  // once made, it is kept
  Instant trimmed_at GUARDED_BY(mutex){};                 // time of the last measured_need()
  Limits limits GUARDED_BY(mutex);                        // `live` holds those that are read without the mutex
  WaitQueue queue GUARDED_BY(mutex);                      // for a connection
  TunnelPlaces tunnels GUARDED_BY(mutex);
  Supply supply GUARDED_BY(mutex);
  bool saw_surplus GUARDED_BY(mutex) = false;  // the last sweep saw surplus dials
  StreamLimitLearner first_streams GUARDED_BY(mutex);
  DeliveryPool<Grant> grants GUARDED_BY(mutex);
  DeliveryPool<Rejection> rejections GUARDED_BY(mutex);  // one per waiter or more: a rejection never allocates
  Pause active_pause GUARDED_BY(mutex);                  // meaningful while paused(); `drains` is false otherwise
  CoolDown cool_down GUARDED_BY(mutex);                  // kCooling is set while it is active
  Instant trial_wake GUARDED_BY(mutex){}, quarantine_wake GUARDED_BY(mutex){}, probe_wake GUARDED_BY(mutex){};
  Replacement replacement GUARDED_BY(mutex);
  std::uint32_t evict_hand GUARDED_BY(mutex) = 0;    // where the choice of an idle connection to close continues
  std::uint32_t missing_seen GUARDED_BY(mutex) = 0;  // missing for min_idle at the last sweep
  // can be cancelled, the youngest last
  List<CancelDialMessage, DialTag> waiter_dials_begun GUARDED_BY(mutex), h1_dials_begun GUARDED_BY(mutex);
  // idle connections closed because no waiter accepted their idle time; each causes a dial with cause policy
  std::uint32_t made_room GUARDED_BY(mutex) = 0;
  DialBackoff backoff GUARDED_BY(mutex);
  CircuitBreaker circuit GUARDED_BY(mutex);
  Fault last_failure GUARDED_BY(mutex){FaultKind::connect_refused, Side::upstream};  // of the last dial
  std::uint64_t undialed GUARDED_BY(mutex) = 0;  // waiters that failed with it, without a dial of their own
  Ledger ledger GUARDED_BY(mutex);
  IdleLimitLearner keep_alive GUARDED_BY(mutex);
  Instant swept_at GUARDED_BY(mutex){};
  Duration dial_time GUARDED_BY(mutex){};  // moving average of successful dials
};

}  // namespace carpool::pool
