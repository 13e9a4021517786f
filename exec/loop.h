// Loop: the interface of an event loop: time, timers, deferred work, mail, readiness.
//
// All functions except post() and unwatch_shared() must be called on the loop's own thread (LOOP_ONLY). exec/uv/loop.h
// is the production implementation; a simulation implements the interface with a virtual clock and network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/intrusive.h"
#include "base/loop_id.h"
#include "base/result.h"
#include "exec/event_leases.h"
#include "exec/mail.h"
#include "exec/role.h"
#include "exec/timer.h"

namespace carpool::exec {

// Readiness of a descriptor. `hangup` covers RDHUP, HUP and ERR: the peer closed or the socket failed. `urgent`: TCP's
// urgent data is pending, at which a read stops before the rest of the input.
struct Ready {
  bool readable = false;
  bool writable = false;
  bool hangup = false;
  bool urgent = false;

  Ready& operator|=(Ready more) {
    readable |= more.readable;
    writable |= more.writable;
    hangup |= more.hangup;
    urgent |= more.urgent;
    return *this;
  }
};

// Receives edge-triggered readiness of an object of this loop only (a client, a dial, a listener).
class Watcher {
 public:
  virtual void on_ready(Ready ready) LOOP_ONLY = 0;

 protected:
  ~Watcher() = default;
};

// Identifies a registration; a stale key is harmless.
struct WatchKey {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // 0: no registration
};

// Readiness of objects that move between loops carries (index, generation), never a pointer. The receiver must verify
// by a CAS on shared state that the object is still the same and on this loop.
class SharedWatcher {
 public:
  virtual void on_shared_ready(std::uint32_t index, std::uint32_t generation, Ready ready) LOOP_ONLY = 0;

 protected:
  ~SharedWatcher() = default;
};

// Work that runs in this turn after its events and mail: avoids re-entrancy. Work deferred again from its own run()
// runs in the next turn, which does not wait: this splits long work.
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
  // Returns the turn's time: constant while its events are handled.
  virtual Instant now() const = 0;

  // Used by Timer::arm() and disarm(), which call it only if the heap must be updated at once.
  virtual void arm(Timer& timer, Instant deadline) LOOP_ONLY = 0;
  virtual void disarm(Timer& timer) LOOP_ONLY = 0;
  // Enqueues `work` once, however often it is deferred before it runs; work.unlink() removes it.
  virtual void defer(Deferred& work) LOOP_ONLY = 0;

  // Any thread: mail.arrive() is called on this loop's thread, in order of posting per sender. Never fails, never
  // allocates; the mail must stay alive until it arrives.
  virtual void post(Mail& mail) = 0;

  // Registers edge-triggered read, write and hangup interest in `fd`. Also reports readiness that already exists.
  virtual Result<WatchKey> watch(int fd, Watcher& watcher) LOOP_ONLY = 0;
  // Must be called before `fd` is closed. Afterwards no event of this registration arrives, dequeued ones included. A
  // stale key has no effect.
  virtual void unwatch(int fd, WatchKey key) LOOP_ONLY = 0;
  // As unwatch(), for a descriptor that its only owner closes within this turn: close() removes it from the set.
  virtual void forget(int fd, WatchKey key) LOOP_ONLY { unwatch(fd, key); }
  // `generation` has 20 bits.
  virtual Status watch_shared(int fd, std::uint32_t index, std::uint32_t generation) LOOP_ONLY = 0;
  // Any thread. Events that were already dequeued may still arrive: the generation identifies them.
  virtual void unwatch_shared(int fd) = 0;
  virtual void set_shared_watcher(SharedWatcher* watcher) LOOP_ONLY = 0;

  // Returns the leases of the current event.
  EventLeases& leases() { return leases_; }

 private:
  friend class ReadBuffer;
  // One read buffer for all connections of the loop, leased by ReadBuffer.
  virtual std::span<char> scratch() LOOP_ONLY = 0;

  EventLeases leases_;
  bool scratch_in_use_ = false;
};

}  // namespace carpool::exec
