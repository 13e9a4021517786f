// ReservedSlots: where threads wait to be taken, and the counts that say how many more to ask for. The protocol of the
// reserve without its threads, so that every order of those who dispute a place can be tried (tests/explorer).
//
//   null -> thread   offer(), by the thread itself          thread -> null   take(), or leave() by the thread itself
//
// Every dispute is settled by that one exchange: who got the pointer out owns the thread. There is no stack and no link
// between threads, so nothing can be put back under an old name (ABA).
#pragma once

#include <memory>

#include "exec/atomic.h"

namespace carpool::exec {

template <class Thread>
class ReservedSlots {
 public:
  struct alignas(64) Place {
    Atomic<Thread*> thread{nullptr};
  };
  // So many available ones never leave for being idle: `min`.
  ReservedSlots(unsigned capacity, unsigned min)
      : capacity_(capacity), min_(min), places_(std::make_unique<Place[]>(capacity)) {}

  // A thread that waits, now the caller's; null: there is none. From the first place on, as offer() does: the threads
  // of the last places are the surplus, and grow old there.
  Thread* take() {
    for (unsigned i = 0; i < capacity_; ++i) {
      Atomic<Thread*>& place = places_[i].thread;
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      // acquire pairs with offer(): the thread is what it was when it offered itself. seq_cst for stop(), see there.
      Thread* thread = place.exchange(nullptr, std::memory_order_seq_cst);
      if (thread == nullptr) continue;
      available_.fetch_sub(1, std::memory_order_relaxed);
      return thread;
    }
    return nullptr;
  }

  // By the thread itself. Null: no place is free, or this has stopped; else it waits there until it is taken.
  Place* offer(Thread& thread) {
    available_.fetch_add(1, std::memory_order_relaxed);  // before the offer, so that it is never below zero
    for (unsigned i = 0; i < capacity_; ++i) {
      Thread* nobody = nullptr;
      if (!places_[i].thread.compare_exchange_strong(nobody, &thread, std::memory_order_seq_cst)) continue;
      // The offer, then this load; stop() stores, then looks at the places. All four are seq_cst, so at least one side
      // sees the other: no thread waits in a reserve that has stopped.
      if (!stopped_.load(std::memory_order_seq_cst) || !withdraw(places_[i], thread)) return &places_[i];
      break;
    }
    available_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }

  // By the thread itself, idle for long. False: too few would be left, or it has been taken, and what it was taken for
  // is coming.
  bool leave(Place& place, Thread& thread) {
    unsigned available = available_.load(std::memory_order_relaxed);
    do {
      if (available <= min_) return false;
    } while (!available_.compare_exchange_weak(available, available - 1, std::memory_order_relaxed,
                                               std::memory_order_relaxed));
    if (withdraw(place, thread)) return true;
    available_.fetch_add(1, std::memory_order_relaxed);  // the taker has counted it off
    return false;
  }

  // From here on nobody stays: those that wait are given to `wake`.
  template <class Wake>
  void stop(Wake wake) {
    stopped_.store(true, std::memory_order_seq_cst);
    while (Thread* thread = take()) wake(*thread);
  }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // True: one more thread may be asked for, and is counted until it came(). Never more than `most` at once; not for
  // more than there are places, but for those between came() and offer(), who then find no place and go.
  bool ask(unsigned most) {
    unsigned pending = pending_.load(std::memory_order_relaxed);
    do {
      if (pending >= most || pending + available_.load(std::memory_order_relaxed) >= capacity_) return false;
    } while (
        !pending_.compare_exchange_weak(pending, pending + 1, std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }
  // It is here, or never will be.
  void came() { pending_.fetch_sub(1, std::memory_order_relaxed); }

  unsigned pending() const { return pending_.load(std::memory_order_relaxed); }
  // For scrapes and tests: those that wait in a place.
  unsigned waiting() const {
    unsigned waiting = 0;
    for (unsigned i = 0; i < capacity_; ++i) {
      waiting += places_[i].thread.load(std::memory_order_relaxed) != nullptr ? 1 : 0;
    }
    return waiting;
  }
  unsigned counted() const {
    return available_.load(std::memory_order_relaxed);
  }  // and those about to offer themselves

 private:
  static bool withdraw(Place& place, Thread& thread) {
    Thread* self = &thread;
    return place.thread.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst);
  }

  const unsigned capacity_, min_;
  std::unique_ptr<Place[]> places_;
  Atomic<bool> stopped_{false};
  Atomic<unsigned> available_{0}, pending_{0};  // counts: relaxed, the places decide
};

}  // namespace carpool::exec
