// UvLoop: the production Loop, with a turn of its own: one outer epoll set holds every stream socket, the wake-up and,
// as one member, libuv's own set. libuv runs only when that member is ready or when it has work.
//
// A turn: wait; read the clock; events; mail; deferred work; due timers; libuv. Every part is bounded; if a bound
// leaves work over, the next turn does not wait. A callback that throws affects only itself; no exception may pass
// through libuv, so its callbacks are noexcept.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "base/fd.h"
#include "exec/callback_guard.h"
#include "exec/deferred_queue.h"
#include "exec/loop.h"
#include "exec/mailbox.h"
#include "exec/timer_heap.h"
#include "exec/turn_times.h"
#include "exec/watch_table.h"

struct epoll_event;
struct uv_loop_s;
struct uv_async_s;

namespace carpool::exec {

class UvLoop final : public Loop {
 public:
  static Result<std::unique_ptr<UvLoop>> make(LoopId id);
  // All libuv handles must be closed by then; timers and watchers may be left.
  ~UvLoop() override;
  UvLoop(const UvLoop&) = delete;
  UvLoop& operator=(const UvLoop&) = delete;

  // Runs turns on the calling thread until stop(). An earlier stop() counts, and is consumed.
  void run();
  void stop();  // any thread
  // Reports exceptions of callbacks to `failures`. Without it run(), turn() and drain() throw the first exception of a
  // turn after the rest of the turn.
  void report_failures_to(FailureSink* failures);
  // Runs one turn. Callers that drive the loop themselves: one thread at a time, ordered by happens-before.
  void turn(bool may_wait);
  // Called when no thread runs the loop any more: delivers the remaining mail and the deferred work it causes, so that
  // owners waiting for it can end. The caller's thread acts as the loop's.
  void drain();

  // Asserts that this is the loop's thread, or that no thread runs the loop (before and after run()).
  void enter() const LOOP_ENTER;

  LoopId id() const override { return id_; }
  Instant now() const override { return now_; }
  void arm(Timer& timer, Instant deadline) override LOOP_ONLY;
  void disarm(Timer& timer) override LOOP_ONLY;
  void defer(Deferred& work) override LOOP_ONLY;
  void post(Mail& mail) override;
  Result<WatchKey> watch(int fd, Watcher& watcher) override LOOP_ONLY;
  void unwatch(int fd, WatchKey key) override LOOP_ONLY;
  void forget(int fd, WatchKey key) override LOOP_ONLY;
  Status watch_shared(int fd, std::uint32_t index, std::uint32_t generation) override LOOP_ONLY;
  void unwatch_shared(int fd) override;
  void set_shared_watcher(SharedWatcher* watcher) override LOOP_ONLY;

  std::uint64_t turns() const { return turns_; }
  const TurnTimes& turn_times() const { return times_; }  // any thread

 private:
  friend uv_loop_s& libuv_of(Loop& loop);  // exec/uv/include.h
  class LoopThreadScope;

  explicit UvLoop(LoopId id);
  Status open();
  Status add_libuv();
  Status add(int fd, std::uint32_t interest, EventName name);
  void step(bool may_wait) LOOP_ONLY;
  // Polled: what a wait has found. All input that had arrived at `complete_at` is among the events, if they fit.
  struct Polled {
    int events;
    Instant complete_at;
  };
  Polled wait(epoll_event* events, Instant before, int ms) const;
  bool more_events(int event_count) LOOP_ONLY;
  int wait_ms(Instant now) LOOP_ONLY;
  void dispatch(const epoll_event& event) LOOP_ONLY;
  void run_libuv() LOOP_ONLY;
  std::span<char> scratch() override LOOP_ONLY;
  void wake();

  const LoopId id_;
  Fd epoll_, wake_;
  std::unique_ptr<uv_loop_s> uv_;  // null until initialized
  // the only referenced handle: without one libuv requests every turn at once
  std::unique_ptr<uv_async_s> anchor_;
  bool libuv_ready_ LOOP_LOCAL = false;
  Instant now_;
  std::uint64_t turns_ = 0;
  std::optional<Instant> full_since_;  // first of the last turns whose events may not have been all that were ready
  TurnTimes times_;

  WatchTable watchers_ LOOP_LOCAL;
  SharedWatcher* shared_watcher_ LOOP_LOCAL = nullptr;
  TimerHeap timers_ LOOP_LOCAL;
  DeferredQueue deferred_ LOOP_LOCAL;
  std::unique_ptr<char[]> scratch_ LOOP_LOCAL;

  CallbackGuard guard_ LOOP_LOCAL{&leases()};
  Mailbox mailbox_;
  std::atomic<std::thread::id> thread_{};  // the thread that runs the loop; default: none
  std::atomic<bool> stop_{false};
};

}  // namespace carpool::exec
