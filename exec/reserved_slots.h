// ReservedSlots: the slots in which reserved threads wait, and the counts that decide how many more to request. The
// protocol without the threads, so that all its interleavings can be tried (tests/explorer).
//
//   null -> thread   offer(), by the thread itself          thread -> null   take(), or leave() by the thread itself
//
// This one exchange decides every race: the caller that gets the pointer owns the thread. Threads are not linked to
// each other, so there is no ABA problem.
#pragma once

#include <memory>

#include "exec/atomic.h"

namespace carpool::exec {

template <class Thread>
class ReservedSlots {
 public:
  struct alignas(64) Slot {
    Atomic<Thread*> thread{nullptr};
  };
  // `min`: this many available threads never leave for idleness.
  ReservedSlots(unsigned capacity, unsigned min)
      : capacity_(capacity), min_(min), slots_(std::make_unique<Slot[]>(capacity)) {}

  // Returns a waiting thread, now owned by the caller, or null. Searches from the first slot, as offer() does: surplus
  // threads are in the last slots and time out there.
  Thread* take() {
    for (unsigned i = 0; i < capacity_; ++i) {
      Atomic<Thread*>& slot = slots_[i].thread;
      // seq_cst: see offer(); an old null would hide a thread from stop().
      if (slot.load(std::memory_order_seq_cst) == nullptr) continue;
      // acquire pairs with offer(): the thread's state is visible.
      Thread* thread = slot.exchange(nullptr, std::memory_order_acq_rel);
      if (thread == nullptr) continue;
      available_.fetch_sub(1, std::memory_order_relaxed);
      return thread;
    }
    return nullptr;
  }

  // Called by the thread itself, which then waits in the slot until taken. Null: no slot is free, or stopped.
  Slot* offer(Thread& thread) {
    available_.fetch_add(1, std::memory_order_relaxed);  // before the offer, so that it is never negative
    for (unsigned i = 0; i < capacity_; ++i) {
      Thread* none = nullptr;
      if (!slots_[i].thread.compare_exchange_strong(none, &thread, std::memory_order_seq_cst)) continue;
      // The offer, then this load; stop() stores, then reads the slots. All four are seq_cst, so at least one side sees
      // the other: no thread waits after stop().
      if (!stopped_.load(std::memory_order_seq_cst) || !withdraw(slots_[i], thread)) return &slots_[i];
      break;
    }
    available_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }

  // Called by the thread itself after its idle timeout. Returns false if too few would be left, or if the thread was
  // taken: its task follows.
  bool leave(Slot& slot, Thread& thread) {
    unsigned available = available_.load(std::memory_order_relaxed);
    do {
      if (available <= min_) return false;
    } while (!available_.compare_exchange_weak(available, available - 1, std::memory_order_relaxed,
                                               std::memory_order_relaxed));
    if (withdraw(slot, thread)) return true;
    available_.fetch_add(1, std::memory_order_relaxed);  // the thread that took it has already subtracted it
    return false;
  }

  // Stops: waiting threads are passed to `wake`, later ones are rejected.
  template <class Wake>
  void stop(Wake wake) {
    stopped_.store(true, std::memory_order_seq_cst);
    while (Thread* thread = take()) wake(*thread);
  }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Returns true if one more thread may be requested, counted as pending until request_ended(). At most `max_pending`
  // at once and no more than there are slots, except for threads between request_ended() and offer(), which then find
  // no slot and return.
  bool try_request(unsigned max_pending) {
    unsigned pending = pending_.load(std::memory_order_relaxed);
    do {
      if (pending >= max_pending || pending + available_.load(std::memory_order_relaxed) >= capacity_) return false;
    } while (
        !pending_.compare_exchange_weak(pending, pending + 1, std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }
  // Must be called once per request: the thread has started, or it never will.
  void request_ended() { pending_.fetch_sub(1, std::memory_order_relaxed); }

  unsigned pending() const { return pending_.load(std::memory_order_relaxed); }
  // Returns the number of threads waiting in slots, for metrics and tests.
  unsigned waiting() const {
    unsigned waiting = 0;
    for (unsigned i = 0; i < capacity_; ++i) {
      waiting += slots_[i].thread.load(std::memory_order_relaxed) != nullptr ? 1 : 0;
    }
    return waiting;
  }
  // As waiting(), and those about to offer themselves.
  unsigned counted() const { return available_.load(std::memory_order_relaxed); }

 private:
  static bool withdraw(Slot& slot, Thread& thread) {
    Thread* self = &thread;
    return slot.thread.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst);
  }

  const unsigned capacity_, min_;
  std::unique_ptr<Slot[]> slots_;
  Atomic<bool> stopped_{false};
  Atomic<unsigned> available_{0}, pending_{0};  // counts: relaxed, the slots decide
};

}  // namespace carpool::exec
