// Total: how many connections all destinations may have together, counted exactly like a destination's own cap. Whoever
// finds it used up asks for an idle connection of someone else; if there is none it is remembered as hungry and woken
// when a place is given back.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "pool/atomic.h"

namespace carpool::pool {

class Destination;

class Evictor {
 public:
  // Closes one idle connection of the destination that was used least recently. False: none is idle anywhere.
  virtual bool evict(Instant now, const Destination* requester) = 0;

 protected:
  ~Evictor() = default;
};

class Total {
 public:
  Total(std::uint32_t cap, Evictor& evictor) : cap_(cap), evictor_(evictor) {}

  bool take();
  // Gives a place back and wakes who is hungry. No lock is held by the caller.
  void give(Instant now);

  // A place will be given back soon: nobody evicts one more for it.
  void promise() { promised_.fetch_add(1, std::memory_order_relaxed); }
  void keep_promise() { promised_.fetch_sub(1, std::memory_order_relaxed); }  // then give()

  std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
  bool full() const { return taken_.load(std::memory_order_seq_cst) >= cap_; }
  // seq_cst: pairs with hunger(): a release publishes its idle connection, then reads this; a hungry destination
  // registers, then looks for idle connections.
  bool anyone_hungry() const { return hungry_count_.load(std::memory_order_seq_cst) != 0; }

  // `destination` needs a place and there is none: remembers it and evicts if possible. True: a place became free.
  bool hunger(Destination& destination, Instant now);
  // It ends: nothing is asked for in its name any more.
  void forget(const Destination& destination);
  // An idle connection appeared while somebody is hungry: let it go, so that they are served. No lock is held.
  void feed(Instant now);

 private:
  bool remember(Destination& destination);
  void wake_hungry(Instant now);
  Destination* pop_hungry();
  const std::uint32_t cap_;
  Evictor& evictor_;
  Atomic<std::uint32_t> taken_{0};
  Atomic<std::uint32_t> hungry_count_{0};
  std::atomic<std::uint32_t> promised_{0};  // a hint: relaxed
  Mutex mutex_;
  std::vector<Destination*> hungry_;  // guarded by mutex_; first come first served, each once
};

}  // namespace carpool::pool
