// AdminSession: one client of the admin endpoint over HTTP/1.1: one request at a time with a small body, or a listener
// of /events until it disconnects. A long response is sent in steps, each produced after the client has read the
// previous one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "exec/loop.h"
#include "exec/task.h"
#include "proxy/downstream/local_http_session.h"
#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/admin_connection.h"
#include "proxy/server/admin/streamed_body.h"

namespace carpool::proxy {

class AdminSession final : public AdminConnection, private LocalHttpSession::Handler {
 public:
  AdminSession(exec::Loop& loop, Owner& owner, const Backend& backend, std::unique_ptr<net::Transport> transport);
  ~AdminSession() override;
  // The first request must arrive before `deadline`.
  Status start(Instant deadline) LOOP_ONLY;
  void end() override LOOP_ONLY { http_.end(); }
  void end_soon() override LOOP_ONLY { listening_ ? http_.end() : http_.end_soon(); }
  void poll_awaited() override LOOP_ONLY;
  bool listening() const override LOOP_ONLY { return listening_; }
  void send_event(const admin::Event& event) override LOOP_ONLY;

 private:
  enum class TaskResult : std::uint8_t { well, refused, failed };  // failed: by an exception
  LocalHttpSession::Next next() override LOOP_ONLY;
  void on_request() override LOOP_ONLY;
  void on_malformed(const Fault& fault) override LOOP_ONLY;
  void on_timeout() override LOOP_ONLY;
  void on_end() override LOOP_ONLY;
  void make_step() LOOP_ONLY;
  void make();
  void not_made();
  void compress();
  void post_result(TaskResult made);
  void answered() LOOP_ONLY;
  void respond() LOOP_ONLY;
  void poll_pending() LOOP_ONLY;
  void send(const admin::Response& response) LOOP_ONLY;
  void send_step() LOOP_ONLY;
  void add_step(WriteBatch& out, const std::string& step);
  void send_out(WriteBatch& out) LOOP_ONLY;
  admin::Response made_at_once() LOOP_ONLY;
  const BufferedRequest& request() const { return http_.request(); }

  // ResponseTask: a slow response: computed off the loop, compressed in the background if it is sent whole, and posted
  // back. Meanwhile the session reads nothing and outlives its client. An exception in the task ends the connection and
  // is reported by the task's runner.
  struct ResponseTask final : exec::Task {
    explicit ResponseTask(AdminSession& s) : session(s) {}
    const char* name() const override { return "admin answer"; }
    exec::Invocation invocation() const override { return kind; }
    void run() override { session.make(); }
    void dispose() override {
      session.not_made();
    }  // last use of the session by the task: it may be destroyed
       // afterwards
    AdminSession& session;
    exec::Invocation kind = exec::Invocation::blocking;  // of the current request
  };
  struct CompressTask final : exec::Task {
    explicit CompressTask(AdminSession& s) : session(s) {}
    const char* name() const override { return "gzip"; }
    void run() override { session.compress(); }
    void dispose() override { session.post_result(TaskResult::well); }  // the response is then sent uncompressed
    AdminSession& session;
  };
  struct ResultMail final : exec::Mail {
    explicit ResultMail(AdminSession& s) : session(s) {}
    void arrive() override LOOP_ONLY { session.answered(); }
    AdminSession& session;
  };

  exec::Loop& loop_;
  Owner& owner_;
  const Backend backend_;
  admin::Rules rules_;  // copied when the request arrived
  LocalHttpSession http_;
  std::unique_ptr<admin::PendingResponse> later_;  // the response for which this request waits
  bool listening_ = false;
  bool up_to_date_ = false;             // a listener of /events that has received every change so far
  bool producing_ = false;              // a task owns the request, `response_` and `body_`
  TaskResult made_ = TaskResult::well;  // result of the last task; refused: the timer retries
  admin::Response response_;
  std::unique_ptr<admin::Body> body_;  // of the response in progress; destroyed with the session at the latest
  bool streaming_ = false;             // the head was sent
  bool chunked_ = false;               // otherwise the close delimits the response
  Instant deadline_;                   // time by which the client must have read the whole response
  ResponseTask making_{*this};
  CompressTask compressing_{*this};
  ResultMail home_{*this};
};

}  // namespace carpool::proxy
