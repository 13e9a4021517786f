// AdminH2Connection: an HTTP/2 connection to the admin endpoint as a Producer, after Jetty's HTTP2Connection ("eat what
// you kill"). Its own Strategy runs inside the loop's: the thread that found the socket readable reads frames, produces
// a request that may block, lends the connection's role to a reserved thread that continues to read, and runs the
// request in place.
//
// The holder of the connection's role owns the socket's bytes, the session and the streams (h2_connection_producer.cc,
// h2_connection_responses.cc). The admin loop owns the registration of the socket, the timer and the place in the
// listener's budget (h2_connection.cc), and answers the requests that must run on it. They communicate by signals and
// mail.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/assert.h"
#include "exec/mailbox.h"
#include "exec/strategy.h"
#include "exec/timer.h"
#include "proxy/http/h2/session.h"
#include "proxy/net/discarded_input.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_queue.h"
#include "proxy/server/admin/admin_connection.h"
#include "proxy/server/admin/event.h"
#include "proxy/server/admin/h2_connection_state.h"
#include "proxy/server/admin/h2_stream.h"

namespace carpool::proxy {

class AdminH2Connection final : public AdminConnection,
                                public ListHook<struct AdminH2ConnectionTag>,
                                private exec::Watcher,
                                private exec::Producer,
                                private exec::HelperObserver,
                                private http::H2Sink,
                                private AdminH2Stream::Owner {
 public:
  class Owner : public AdminConnection::Owner {
   public:
    // The connection is closed. Threads may use it until unused(), when the owner destroys it.
    virtual void closing(AdminH2Connection& connection) LOOP_ONLY = 0;
    virtual void unused(AdminH2Connection& connection) LOOP_ONLY = 0;
    // Must be called when a command, or a response that may be long, begins. Any thread. Returns false if the
    // listener's connections have too many.
    virtual bool begin_response() = 0;
    virtual void end_response() = 0;

   protected:
    ~Owner() = default;
  };
  AdminH2Connection(exec::Loop& loop, Owner& owner, const Backend& backend, const exec::StrategyParts& parts,
                    std::unique_ptr<net::Transport> transport, Instant (*clock)() = Clock::now);
  // No thread may use it any more: unused() was called, or the threads have ended. Sends a GOAWAY on an open
  // connection.
  ~AdminH2Connection() override;

  // The first request must arrive before `deadline`.
  Status start(Instant deadline) LOOP_ONLY;
  void end() override LOOP_ONLY;
  void end_soon() override LOOP_ONLY { signal(Signal::leave_client); }
  bool busy() const override { return busy_.load(std::memory_order_relaxed) != 0; }
  bool listening() const override LOOP_ONLY { return subscriptions_ != 0; }
  void poll_awaited() override LOOP_ONLY;
  void send_event(const admin::Event& event) override LOOP_ONLY;
  const exec::Strategy& strategy() const { return strategy_; }
  http::H2Abuse abuse() const { return abuse_.load(std::memory_order_relaxed); }

 private:
  // Bits that the loop sets for the holder of the role.
  enum Signal : std::uint32_t {
    readable = 1,
    writable = 2,
    hangup = 4,
    deadline_passed = 8,
    ended = 16,
    leave_client = 32,
    urgent = 64
  };
  // Bits that the holder of the role sets for the loop.
  enum LoopRequest : std::uint32_t { resume = 1, rearm = 2, unlisten = 4, end_it = 8 };
  using Streams = List<AdminH2Stream, AdminH2StreamTag>;

  // RunTask: the loop's readiness as a task; produces until nothing is left.
  struct RunTask final : exec::Task {
    explicit RunTask(AdminH2Connection& c) : connection(c) {}
    const char* name() const override { return "admin connection"; }
    exec::Invocation invocation() const override { return exec::Invocation::either; }
    void run() override { connection.run_task(); }
    void dispose() override { connection.refuse_task(); }
    AdminH2Connection& connection;
  };
  struct LoopRequestMail final : exec::Mail {
    explicit LoopRequestMail(AdminH2Connection& c) : connection(c) {}
    void arrive() override LOOP_ONLY { connection.on_loop_requests(); }
    AdminH2Connection& connection;
  };
  struct UnusedMail final : exec::Mail {
    explicit UnusedMail(AdminH2Connection& c) : connection(c) {}
    void arrive() override LOOP_ONLY { connection.owner_.unused(connection); }
    AdminH2Connection& connection;
  };
  struct EventMail final : exec::Mail {
    explicit EventMail(AdminH2Connection& c) : connection(c) {}
    void arrive() override LOOP_ONLY { connection.on_event(); }
    AdminH2Connection& connection;
    admin::Event event;
    bool resync = false;  // an earlier event was skipped
  };

  // ---- AdminH2Stream::Owner ----
  admin::Response handle(const admin::AdminRequest& request) const override;
  void consume(AdminH2Stream& stream, std::size_t bytes) override;
  bool may_hold(std::size_t bytes) override;
  void release_held(std::size_t bytes) override { held_ -= bytes; }
  void on_complete(AdminH2Stream& stream) override;
  void on_sent(AdminH2Stream& stream) override;
  void on_closed(AdminH2Stream& stream) override;
  void on_returned(AdminH2Stream& stream) override;
  void return_from_task(AdminH2Stream& stream) override;
  void respond_on_loop(AdminH2Stream& stream) override LOOP_ONLY;

  // ---- the loop (h2_connection.cc) ----
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void signal(std::uint32_t bits) LOOP_ONLY;
  void run_task();
  void refuse_task();
  void on_timer();
  void on_loop_requests() LOOP_ONLY;
  void forget_subscriptions() LOOP_ONLY;
  void on_poll_timer();
  void return_from_loop(AdminH2Stream& stream) LOOP_ONLY;
  // Users: the loop, and the threads, tasks and mail that may still access the connection.
  void enter() { users_.fetch_add(1, std::memory_order_relaxed); }
  void leave();
  void helper_called() override { enter(); }
  void helper_finished() override { leave(); }

  // ---- the holder of the role (h2_connection_producer.cc) ----
  void advance_to(AdminH2State state) {
    CARPOOL_ASSERT(kAdminH2Transitions.allows(state_, state));
    state_ = state;
  }
  // Returns true if the connection sends frames.
  bool works() const { return state_ < AdminH2State::lingering; }
  exec::TaskPtr produce() override;
  void take_signals();
  bool begin_to_leave();
  void leave_if_done();
  bool write();
  bool flush();
  bool read_some();
  bool may_read() const;
  bool idle() const;
  void publish_deadline();
  void expire();
  void expire(Streams& streams);
  Instant next_deadline();
  void request_loop(std::uint32_t bits);
  void linger();
  void discard();
  void close();
  http::H2StreamUser* on_request(http::H2Stream& stream, http::RequestHead& head) override;
  void on_refused_head(http::H2Stream& stream, FaultKind kind) override;
  void on_settings(const http::H2PeerSettings&) override {}
  void on_goaway(http::StreamId, http::H2Error) override {}
  void on_ping_ack(std::uint64_t) override {}

  // ---- responses (h2_connection_responses.cc) ----
  void dispatch_complete();
  void dispatch(AdminH2Stream& stream);
  exec::TaskPtr next_task();
  bool count(AdminH2Stream& stream);
  void uncount(AdminH2Stream& stream);
  bool begin(AdminH2Stream& stream);
  void send_to_loop(AdminH2Stream& stream);
  void send_away(AdminH2Stream& stream);
  void queue_work(AdminH2Stream& stream, AdminH2Stream::Work work, bool first);
  void respond(AdminH2Stream& stream);
  void send_head(AdminH2Stream& stream, const admin::Response& response, bool end);
  void send_step(AdminH2Stream& stream);
  void refuse(AdminH2Stream& stream, const char* why);
  void on_event();
  void move(AdminH2Stream& stream, Streams& to);
  void stop_listening(AdminH2Stream& stream);
  void drop(AdminH2Stream& stream);
  void free_dropped();

  exec::Loop& loop_;
  Owner& owner_;
  const Backend backend_;
  const exec::StrategyParts parts_;
  Instant (*const clock_)();

  // ---- used by the loop ----
  exec::WatchKey key_;
  exec::Timer timer_;
  exec::Timer poll_timer_;
  Streams awaited_;                  // commands whose response is not known yet
  std::uint32_t subscriptions_ = 0;  // to /events
  std::uint32_t unlistened_seen_ = 0;
  bool event_skipped_ = false;
  int fd_ = -1;
  bool over_ = false;

  // ---- used by the holder of the role; a stream in use by a task or the loop is in no list ----
  std::unique_ptr<net::Transport> transport_;
  http::H2Session session_;
  WriteQueue write_queue_;
  Streams arriving_;  // the request is incomplete
  Streams complete_;  // requests to be dispatched
  Streams ready_;     // work that may block and is to be produced
  Streams sending_;   // responses that the client reads
  Streams dropped_;   // streams to be freed
  Instant now_;
  Instant idle_since_;
  Instant retry_at_ = kNever;  // when to retry a rejected step
  Instant unsent_since_ = kNever;
  Instant published_ = kNever;
  std::size_t budget_ = 0;  // bytes that may still be read in this visit
  std::size_t held_ = 0;    // bytes of requests
  std::uint32_t in_progress_ = 0;
  net::DiscardedInput discarded_;  // while lingering
  AdminH2State state_ = AdminH2State::open;
  bool asked_ = false;  // a request has begun

  // ---- used by both ----
  exec::Mailbox inbox_;
  RunTask run_{*this};
  LoopRequestMail loop_request_mail_{*this};
  UnusedMail unused_mail_{*this};
  EventMail event_mail_{*this};
  std::atomic<std::uint32_t> signals_{0}, loop_requests_{0};
  std::atomic<bool> scheduled_{false};     // run_ is submitted and has not begun
  std::atomic<bool> event_posted_{false};  // event_mail_ belongs to the inbox
  std::atomic<std::int64_t> deadline_{0};  // nanoseconds of the clock
  std::atomic<std::uint32_t> busy_{0}, unlistened_{0};
  std::atomic<http::H2Abuse> abuse_{http::H2Abuse::none};
  std::atomic<std::uint32_t> users_{1};
  exec::Strategy strategy_;  // last member: its threads use all others
};

}  // namespace carpool::proxy
