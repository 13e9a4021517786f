// One client of the admin endpoint: HTTP/1.1, one request at a time with a small body, or a listener of /events from
// its request to its end. A long answer goes out in steps, each made when the client has taken the one before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "exec/loop.h"
#include "exec/task.h"
#include "proxy/downstream/buffered_request.h"
#include "proxy/net/session_budget.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_queue.h"
#include "proxy/server/admin/routes.h"
#include "proxy/server/admin/streamed_body.h"

namespace carpool::proxy {

class AdminSession final : public exec::Watcher, public BudgetedSession {
 public:
  class Owner {
   public:
    virtual void ended(AdminSession& session) LOOP_ONLY = 0;  // destroy it, later
    // An answer that takes its time is being made for the session, or what was made waits for its client to take it
    // and to ask again. False: too many are being made.
    virtual bool room_to_work() LOOP_ONLY = 0;
    virtual void works(AdminSession& session) LOOP_ONLY = 0;
    virtual void waits(AdminSession& session) LOOP_ONLY = 0;
    virtual bool room_to_listen() const LOOP_ONLY = 0;
    virtual void subscribed(AdminSession& session) LOOP_ONLY = 0;  // from now on send_event() events
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
  void end() LOOP_ONLY;  // closes the connection

  bool listening() const { return listening_; }
  // The news for a listener: `changes` for one who had everything before, else the `whole`. Dropped while the last
  // message is not taken.
  void send_event(const std::string& whole, const std::string& changes) LOOP_ONLY;

 private:
  enum class TaskResult : std::uint8_t { well, refused, failed };  // a task's work: failed by an exception
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void advance() LOOP_ONLY;
  bool read_some() LOOP_ONLY;
  bool drop_some() LOOP_ONLY;
  void answer() LOOP_ONLY;
  void make_step() LOOP_ONLY;
  void make();
  void not_made();
  void compress();
  void post_result(TaskResult made);
  void answered() LOOP_ONLY;
  void respond() LOOP_ONLY;
  void poll_pending() LOOP_ONLY;
  void send(const admin::Response& answer) LOOP_ONLY;
  void send_step() LOOP_ONLY;
  void add_step(WriteBatch& out, const std::string& step);
  void send_out(WriteBatch& out) LOOP_ONLY;
  admin::Response made_at_once() LOOP_ONLY;
  void refuse(const Fault& fault) LOOP_ONLY;
  bool flush() LOOP_ONLY;
  void on_timer();
  admin::Response busy_answer(const char* why, const char* seconds) const;

  // An answer that takes its time: made off the loop, a whole one compressed in the background, brought home by mail.
  // Meanwhile the session reads nothing, and outlives its client. What a task throws ends the connection, and is its
  // runner's to report.
  struct ResponseTask final : exec::Task {
    explicit ResponseTask(AdminSession& s) : session(s) {}
    const char* name() const override { return "admin answer"; }
    void run() override { session.make(); }
    void dispose() override { session.not_made(); }  // the last that is done with it: the session may end by that
    AdminSession& session;
  };
  struct CompressTask final : exec::Task {
    explicit CompressTask(AdminSession& s) : session(s) {}
    const char* name() const override { return "gzip"; }
    void run() override { session.compress(); }
    void dispose() override { session.post_result(TaskResult::well); }  // as it is, then
    AdminSession& session;
  };
  struct ResultMail final : exec::Mail {
    explicit ResultMail(AdminSession& s) : session(s) {}
    void arrive() override LOOP_ONLY { session.answered(); }
    AdminSession& session;
  };

  exec::Loop& loop_;
  Owner& owner_;
  const Asks asks_;
  admin::Rules rules_;  // as they were when the request came
  std::unique_ptr<net::Transport> transport_;
  exec::WatchKey key_;
  BufferedRequest intake_;
  WriteQueue write_queue_;
  exec::Timer timer_;
  std::unique_ptr<admin::PendingResponse> later_;  // the answer that this request waits for
  bool close_when_sent_ = false;
  bool listening_ = false;
  bool up_to_date_ = false;  // a listener that has everything but the next change
  bool over_ = false;
  bool answering_ = false;              // the request in `intake_`, `answer_` and `body_` belong to a task
  TaskResult made_ = TaskResult::well;  // by the last one; refused: the timer will ask again
  admin::Response answer_;
  std::unique_ptr<admin::Body> body_;  // of the answer that is under way; it ends with the session at the latest
  bool streaming_ = false;             // its head has gone out
  bool chunked_ = false;               // else it ends with the connection
  Instant patience_;                   // until when all of it must have been taken
  ResponseTask making_{*this};
  CompressTask packing_{*this};
  ResultMail home_{*this};
};

}  // namespace carpool::proxy
