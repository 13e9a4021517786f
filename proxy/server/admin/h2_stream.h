// AdminH2Stream: one request on an HTTP/2 connection to the admin endpoint, and its response. The holder of the
// connection's role owns it, except while a task produces the response or the admin loop answers: then that thread owns
// the request and the response, and the stream returns to the connection's inbox.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/intrusive.h"
#include "exec/mail.h"
#include "exec/task.h"
#include "proxy/http/h2/session.h"
#include "proxy/http/message.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/streamed_body.h"

namespace carpool::proxy {

class AdminH2Stream final : public ListHook<struct AdminH2StreamTag>, public http::H2StreamUser {
 public:
  // Owner: the connection.
  class Owner {
   public:
    // ---- for the holder of the role ----
    virtual void consume(AdminH2Stream& stream, std::size_t bytes) = 0;
    virtual bool may_hold(std::size_t bytes) = 0;
    virtual void release_held(std::size_t bytes) = 0;
    virtual void on_complete(AdminH2Stream& stream) = 0;
    virtual void on_sent(AdminH2Stream& stream) = 0;
    virtual void on_closed(AdminH2Stream& stream) = 0;
    virtual void on_returned(AdminH2Stream& stream) = 0;
    // ---- for the thread that answers ----
    virtual admin::Response handle(const admin::AdminRequest& request) const = 0;
    virtual void return_from_task(AdminH2Stream& stream) = 0;
    virtual void respond_on_loop(AdminH2Stream& stream) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };
  static constexpr std::size_t kMaxBody = std::size_t{16} * 1024;

  // Moves the head out of `head`.
  AdminH2Stream(Owner& connection, http::H2Stream& stream, http::RequestHead& head, Instant deadline);
  ~AdminH2Stream() = default;

  // Work: the response, a further step of it, or its compression, each of which may block; or a command, which the loop
  // executes.
  enum class Work : std::uint8_t { respond, step, compress, command };
  enum class Made : std::uint8_t { well, refused, failed };  // failed: by an exception

  admin::AdminRequest request() const;
  // Returns the response to a request that is malformed or exceeds a limit.
  std::optional<admin::Response> refusal() const;
  std::size_t held() const { return head_bytes_ + body_.size(); }

  // ---- used by the holder of the role ----
  http::H2Stream* stream = nullptr;  // null: the stream is closed
  Instant deadline;                  // for the request to arrive, or for the response to be read
  Work work = Work::respond;
  bool away = false;        // in use by a task or the loop
  bool complete = false;    // the whole request was received
  bool bad_head = false;    // the session refused the head; `response` says why
  bool too_long = false;    // the body is too long
  bool no_room = false;     // the connection's unanswered requests have too many bytes
  bool counted = false;     // counted among the responses in progress
  bool responded = false;   // the head was sent
  bool listening = false;   // a listener of /events
  bool up_to_date = false;  // a listener that has received every change so far

  // ---- used by the thread that answers ----
  admin::Response response;
  std::unique_ptr<admin::Body> body;                // of a response in steps
  std::unique_ptr<admin::PendingResponse> awaited;  // on the loop: the response for which the request waits
  Made made = Made::well;
  bool to_compress = false;  // the thread must not block, so another one compresses

  // Task: produces the response; may block.
  struct Task final : exec::Task {
    explicit Task(AdminH2Stream& s) : owner(s) {}
    const char* name() const override { return "admin answer"; }
    exec::Invocation invocation() const override { return kind; }
    void run() override { owner.run_task(); }
    void dispose() override { owner.refuse_task(); }
    AdminH2Stream& owner;
    exec::Invocation kind = exec::Invocation::blocking;
  };
  struct ToLoop final : exec::Mail {
    explicit ToLoop(AdminH2Stream& s) : owner(s) {}
    void arrive() override LOOP_ONLY;
    AdminH2Stream& owner;
  };
  struct ToConnection final : exec::Mail {
    explicit ToConnection(AdminH2Stream& s) : owner(s) {}
    void arrive() override LOOP_ONLY;
    void never_arrives() override { const std::unique_ptr<AdminH2Stream> dies(&owner); }
    AdminH2Stream& owner;
  };
  Task task{*this};
  ToLoop to_loop{*this};
  ToConnection to_connection{*this};

 private:
  void on_head(http::ResponseHead&) override {}  // clients send no response heads
  void on_body(std::string_view bytes) override;
  void on_trailers(const http::Fields&) override {}
  void on_end() override;
  void on_sent(std::size_t bytes) override;
  void on_closed(http::H2Error error) override;
  void run_task();
  void refuse_task();
  void produce_response();

  Owner& connection_;
  http::RequestHead head_;
  std::size_t head_bytes_ = 0;
  std::string body_;
};

}  // namespace carpool::proxy
