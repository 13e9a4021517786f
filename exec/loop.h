// Loop: one event loop as the rest of the house sees it: time, timers, deferred work, mail, readiness.
//
// Everything here but post() and unwatch_shared() is called on the loop's own thread (LOOP_ONLY). The real one is
// exec/uv/loop.h; a simulation drives the same interface with a virtual clock and network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/intrusive.h"
#include "base/result.h"
#include "exec/event_leases.h"
#include "exec/mail.h"
#include "exec/role.h"
#include "exec/timer.h"

namespace carpool::exec {

// A loop's number, stable for the process's life, 0..254.
using LoopId = std::uint8_t;

// What readiness says. `hangup` covers RDHUP, HUP and ERR: the peer is done, or the socket failed.
struct Ready {
  bool readable = false;
  bool writable = false;
  bool hangup = false;
};

// Something of this loop alone that waits for readiness (a client, a dial, a listener). Edge-triggered.
class Watcher {
 public:
  virtual void on_ready(Ready ready) LOOP_ONLY = 0;

 protected:
  ~Watcher() = default;
};

// Names a registration; a stale one is harmless.
struct WatchKey {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // 0: no registration
};

// Readiness of things that may move between loops carries a name, never a pointer: (index, generation). Who receives
// it must prove by a CAS on shared state that the thing is still what and where the event thinks it is.
class SharedWatcher {
 public:
  virtual void on_shared_ready(std::uint32_t index, std::uint32_t generation, Ready ready) LOOP_ONLY = 0;

 protected:
  ~SharedWatcher() = default;
};

// Work to run on this loop in this turn, after its events and mail: the way out of re-entrancy. Asked for again from
// its own run() it runs in the next turn, which does not wait: the way to go on later with what would take too long
// now.
class Deferred : public ListHook<struct DeferredTag> {
 public:
  virtual void run() LOOP_ONLY = 0;  // may destroy itself

 protected:
  ~Deferred() = default;

 private:
  friend class DeferredQueue;
  std::uint32_t ran_in_turn_ = 0;
};

class Loop {
 public:
  virtual ~Loop() = default;

  virtual LoopId id() const = 0;
  // The turn's time: frozen while its events are handled.
  virtual Instant now() const = 0;

  // For Timer: use Timer::arm() and disarm(), which come here only when the heap must know at once.
  virtual void arm(Timer& timer, Instant deadline) LOOP_ONLY = 0;
  virtual void disarm(Timer& timer) LOOP_ONLY = 0;
  // Once, however often it is asked for before it runs; work.unlink() takes it back.
  virtual void defer(Deferred& work) LOOP_ONLY = 0;

  // Any thread: `mail` arrives (mail.arrive()) on this loop's thread, in the order posted per sender. Never fails,
  // never allocates; the mail must stay alive until it arrives.
  virtual void post(Mail& mail) = 0;

  // Edge-triggered read+write+hangup interest in `fd`, registered once. Reports the readiness that stands already.
  virtual Result<WatchKey> watch(int fd, Watcher& watcher) LOOP_ONLY = 0;
  // Before `fd` is closed. From here on no event of this registration arrives, dequeued ones included. Stale: no
  // effect.
  virtual void unwatch(int fd, WatchKey key) LOOP_ONLY = 0;
  // As unwatch(), for a descriptor that its only owner closes within this turn: closing takes it out of the set.
  virtual void forget(int fd, WatchKey key) LOOP_ONLY { unwatch(fd, key); }
  // `generation` has 20 bits.
  virtual Status watch_shared(int fd, std::uint32_t index, std::uint32_t generation) LOOP_ONLY = 0;
  // Any thread. Events that were already dequeued may still arrive afterwards: that is what the generation is for.
  virtual void unwatch_shared(int fd) = 0;
  virtual void set_shared_watcher(SharedWatcher* watcher) LOOP_ONLY = 0;

  // What the code of the current event has leased.
  EventLeases& leases() { return leases_; }

 private:
  friend class ReadBuffer;
  // One read buffer for all connections of the loop; ReadBuffer leases it.
  virtual std::span<char> scratch() LOOP_ONLY = 0;

  EventLeases leases_;
  bool scratch_in_use_ = false;
};

}  // namespace carpool::exec
