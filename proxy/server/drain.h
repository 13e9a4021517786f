// Drain: stops the process in steps. The process becomes unready at once and listens for drain_delay. Then it accepts
// no more clients, responses carry Connection: close, idle clients are closed, and running requests may finish within
// shutdown_grace. Finally a last export may be sent. A second request to stop ends everything at once. After a
// hand-over the first request only closes the idle clients.
#pragma once

#include <atomic>
#include <string_view>

#include "exec/coalesced_mail.h"
#include "exec/loop.h"
#include "exec/timer.h"

namespace carpool::proxy {

class Drain final {
 public:
  // Host: the interface of Drain to the server.
  class Host {
   public:
    virtual Duration drain_delay() const = 0;
    virtual Duration shutdown_grace() const = 0;
    virtual void on_stopping() LOOP_ONLY = 0;           // on the first request to stop
    virtual void close_listeners() LOOP_ONLY = 0;       // stop listening
    virtual void leave_listeners() LOOP_ONLY = 0;       // stop listening, but a successor uses the sockets
    virtual void drain_clients() LOOP_ONLY = 0;         // on all loops
    virtual void start_graceful_close() LOOP_ONLY = 0;  // of the clients of all loops
    virtual bool clients_gone() const LOOP_ONLY = 0;    // returns true if no loop has a client
    // Called when every client has left. Returns true if something is sent before the end; Drain::on_last_export() must
    // follow.
    virtual bool begin_last_export() LOOP_ONLY { return false; }
    virtual void stop_loops() LOOP_ONLY = 0;

   protected:
    ~Host() = default;
  };

  Drain(exec::Loop& loop, Host& host);

  enum class Stage : std::uint8_t { serving, announced, draining, over };
  Stage stage() const { return stage_.load(std::memory_order_relaxed); }  // any thread
  bool serving() const { return stage() == Stage::serving; }

  // Must be called on `loop`, the first worker's.
  void begin() LOOP_ONLY;  // TERM, INT, POST /quit; the second call ends everything now
  // A successor listens on the same sockets: stops listening and starts a graceful close of the clients. Idle clients
  // are closed only after half of the grace period, or at the first begin(), which leaves running requests their time.
  void hand_over() LOOP_ONLY;
  void on_worker_empty() { worker_empty_.post(); }  // any loop
  void on_last_export() LOOP_ONLY;                  // the last export has ended, with any result

  static constexpr Duration kLastExport = std::chrono::seconds(2);

 private:
  void finish_if_empty();
  void on_timer();
  void close_listeners() LOOP_ONLY;
  void close_idle(Instant end) LOOP_ONLY;
  void finish(std::string_view why) LOOP_ONLY;
  exec::Loop& loop_;
  Host& host_;
  std::atomic<Stage> stage_{Stage::serving};
  exec::CoalescedMail worker_empty_;
  bool graceful_ = false;   // idle clients are not closed yet
  bool unasked_ = false;    // begun by a hand-over; no request to stop has arrived
  bool exporting_ = false;  // every client has left
  exec::Timer timer_;
};

}  // namespace carpool::proxy
