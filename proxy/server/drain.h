// Drain: how carpool stops, in order (CONTRACT "Signals"): not ready at once; accept on for drain_delay; then no new
// clients, answers say Connection: close, idle clients close; what runs may finish within shutdown_grace; a second
// request to stop ends everything now.
#pragma once

#include <atomic>
#include <string_view>

#include "exec/loop.h"
#include "exec/timer.h"

namespace carpool::proxy {

class Drain final : private exec::Mail {
 public:
  // What it stops, in a server.
  class Host {
   public:
    virtual Duration drain_delay() const = 0;
    virtual Duration shutdown_grace() const = 0;
    virtual void on_stopping() LOOP_ONLY = 0;           // the first request to stop
    virtual void close_listeners() LOOP_ONLY = 0;       // no new clients
    virtual void leave_listeners() LOOP_ONLY = 0;       // the same; a successor listens on the sockets
    virtual void drain_clients() LOOP_ONLY = 0;         // of all loops
    virtual void start_graceful_close() LOOP_ONLY = 0;  // of all loops' clients
    virtual bool clients_gone() const LOOP_ONLY = 0;    // from every loop
    virtual void stop_loops() LOOP_ONLY = 0;

   protected:
    ~Host() = default;
  };

  Drain(exec::Loop& loop, Host& host);

  enum class Stage : std::uint8_t { serving, announced, draining, over };
  Stage stage() const { return stage_.load(std::memory_order_relaxed); }  // any thread
  bool serving() const { return stage() == Stage::serving; }

  // On `loop`, the first worker's.
  void begin() LOOP_ONLY;  // TERM, INT, POST /quit; the second call ends now
  // A successor listens on the same sockets: doors close, clients are asked to come again with their next answer, and
  // those who rest are ended only when half the grace is over.
  void hand_over() LOOP_ONLY;
  void on_worker_empty();  // any loop

 private:
  void arrive() override LOOP_ONLY;  // a worker became empty
  void on_timer();
  void close_listeners() LOOP_ONLY;
  void finish() LOOP_ONLY;
  exec::Loop& loop_;
  Host& host_;
  std::atomic<Stage> stage_{Stage::serving};
  std::atomic<bool> in_the_mail_{false};
  bool graceful_ = false;  // clients who rest are still left alone
  exec::Timer timer_;
};

}  // namespace carpool::proxy
