// One client of the admin endpoint: HTTP/1.1, one request at a time with a small body, or a listener of /events from
// its request to its end.
#pragma once

#include <memory>
#include <string>

#include "base/intrusive.h"
#include "exec/loop.h"
#include "exec/task.h"
#include "proxy/admin/routes.h"
#include "proxy/intake.h"
#include "proxy/net/transport.h"
#include "proxy/outbox.h"

namespace carpool::proxy {

class AdminSession final : public exec::Watcher, public ListHook<struct SessionTag> {
 public:
  class Owner {
   public:
    virtual void ended(AdminSession& session) LOOP_ONLY = 0;  // destroy it, later
    virtual bool room_to_listen() const LOOP_ONLY = 0;
    virtual void listens(AdminSession& session) LOOP_ONLY = 0;  // from now on offer() events
    // What may block; refused: closed. The second: any thread, for what never touches a loop.
    virtual bool submit(exec::TaskPtr task) LOOP_ONLY = 0;
    virtual void in_background(exec::TaskPtr task) = 0;

   protected:
    ~Owner() = default;
  };
  struct Asks {
    const admin::Rules& rules;  // the door's, which a reload may change: read on the loop
    const admin::AdminView& view;
    admin::AdminControl& control;
  };
  AdminSession(exec::Loop& loop, Owner& owner, const Asks& asks, std::unique_ptr<net::Transport> transport);
  ~AdminSession();
  Status start() LOOP_ONLY;

  bool listening() const { return listening_; }
  // The news for a listener: `changes` for one who had everything before, else the `whole`. Dropped while the last
  // message is not taken.
  void offer(const std::string& whole, const std::string& changes) LOOP_ONLY;

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void advance() LOOP_ONLY;
  bool read_some() LOOP_ONLY;
  bool drop_some() LOOP_ONLY;
  void answer() LOOP_ONLY;
  void answered() LOOP_ONLY;
  void tell() LOOP_ONLY;
  void look() LOOP_ONLY;
  void send(const admin::Answer& answer) LOOP_ONLY;
  admin::Answer made_at_once() LOOP_ONLY;
  void refuse(const Fault& fault) LOOP_ONLY;
  bool flush() LOOP_ONLY;
  void on_timer();
  void end() LOOP_ONLY;

  // An answer that takes its time: made off the loop, compressed in the background, brought home by mail. Meanwhile the
  // session reads nothing, and outlives its client.
  struct Making final : exec::Task {
    explicit Making(AdminSession& s) : session(s) {}
    const char* name() const override { return "admin answer"; }
    void run() override;
    void close() override;
    AdminSession& session;
  };
  struct Packing final : exec::Task {
    explicit Packing(AdminSession& s) : session(s) {}
    const char* name() const override { return "gzip"; }
    void run() override;
    void close() override { session.loop_.post(session.home_); }  // as it is, then
    AdminSession& session;
  };
  struct Home final : exec::Mail {
    explicit Home(AdminSession& s) : session(s) {}
    void arrive() override LOOP_ONLY { session.answered(); }
    AdminSession& session;
  };

  exec::Loop& loop_;
  Owner& owner_;
  const Asks asks_;
  admin::Rules rules_;  // as they were when the request came
  std::unique_ptr<net::Transport> transport_;
  exec::WatchKey key_;
  Intake intake_;
  Outbox outbox_;
  exec::Timer timer_;
  std::unique_ptr<admin::PendingAnswer> later_;  // the answer that this request waits for
  bool close_when_sent_ = false;
  bool listening_ = false;
  bool up_to_date_ = false;  // a listener that has everything but the next change
  bool over_ = false;
  bool answering_ = false;  // the request in `intake_`, and `answer_`, belong to a task
  admin::Answer answer_;
  Making making_{*this};
  Packing packing_{*this};
  Home home_{*this};
};

}  // namespace carpool::proxy
