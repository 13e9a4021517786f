// CrossLoopStream: a stream of an HTTP/2 session that lives on another loop. The near half is the exchange's upstream
// stream, the far half uses an H2UpstreamStream beside the session; between them go two messages by mail, one each way.
//
// A message is filled while its twin travels and sent as soon as it is back, so one letter carries all that gathered
// meanwhile, nothing is allocated in steady state and nothing is locked. Whoever receives a message keeps it while it
// has no room for more: that is the back-pressure. The bytes in it are its own. The lease stays on the near side until
// the far one said that it is done with the stream, so that the session outlives every letter that names it; a stream
// that was left by its exchange is not used again before that either, so that no late letter meets another request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/mail.h"
#include "proxy/http/h2/fields.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/h2/stream.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

class H2Connection;

class CrossLoopStream final : public UpstreamStream,
                              private UpstreamStreamHandler,
                              public ListHook<struct RemoteStreamTag> {
 public:
  CrossLoopStream(H2LoopContext& near, H2LoopContext& far);

  // ---- near: the exchange's loop ----
  void begin(H2Connection& connection, UpstreamStreamHandler& user, http::ResponseHead& response) LOOP_ONLY;
  bool usable() override LOOP_ONLY { return true; }  // only the far loop knows; what is wrong is told
  void send_head(const http::RequestHead& head, const http::ForwardRules& rules) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY { next_request_part_.body.append(bytes); }
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return next_request_part_.body.size() + travelling_; }
  AttemptState resume_reading() override LOOP_ONLY;
  std::optional<pool::CloseCause> finish(pool::Lease& lease) override LOOP_ONLY;
  std::optional<pool::CloseCause> abandon(pool::CloseCause cause, pool::Lease& lease) override LOOP_ONLY;

 private:
  struct RequestPart {  // towards the origin
    http::H2Fields head;
    std::string body;
    http::Fields trailers;
    bool has_head = false, bodyless = false, head_request = false, may_buffer_more = false;
    bool end = false;
    bool empty() const { return !has_head && body.empty() && !end; }
    void clear();
  };
  struct ResponsePart {  // towards the exchange
    std::vector<http::ResponseHead> heads;
    std::string body;
    http::Fields trailers;
    bool end = false;
    bool done = false;             // the far half touches nothing of the stream any more
    bool may_buffer_more = false;  // on its way back: the client is
    std::optional<StreamFailure> failure;
    bool empty() const { return heads.empty() && body.empty() && !end && !done; }
    void clear();
  };
  struct Cancel {};  // the exchange left; passes an order that the far half keeps
  template <class Content>
  struct Message final : exec::Mail {
    explicit Message(CrossLoopStream& stream) : owner(stream) {}
    void arrive() override {
      exec::assume_on_loop();
      owner.arrived(*this);
    }
    CrossLoopStream& owner;
    Content content;
    bool outward = true;  // full, on its way to who reads it; else empty, on its way back
    bool home = true;     // written where it is filled
  };
  void arrived(Message<RequestPart>& message) LOOP_ONLY;
  void arrived(Message<ResponsePart>& message) LOOP_ONLY;
  void arrived(Message<Cancel>& message) LOOP_ONLY;

  // near
  void read_report() LOOP_ONLY;
  AttemptState deliver(ResponsePart& response_part) LOOP_ONLY;
  void give_response_part_back() LOOP_ONLY;
  void rest_if_done() LOOP_ONLY;

  // far: the session's loop
  void apply(RequestPart& request_part) LOOP_ONLY;
  void give_order_back() LOOP_ONLY;
  void send_report() LOOP_ONLY;
  void done() LOOP_ONLY;
  void on_cancel() LOOP_ONLY;
  bool wants_response() const override LOOP_ONLY;
  bool may_buffer_more() const override LOOP_ONLY { return may_buffer_more_; }
  AttemptState on_response_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override { next_report_.body.append(bytes); }
  void on_trailer(std::string_view name, std::string_view value) override { next_report_.trailers.add(name, value); }
  AttemptState on_read_complete() override LOOP_ONLY;
  AttemptState on_response_end() override LOOP_ONLY;
  AttemptState on_failure(StreamFailure failure) override LOOP_ONLY;
  AttemptState on_writable() override LOOP_ONLY;
  AttemptState on_switched(std::string_view) override LOOP_ONLY { return AttemptState::alive; }  // never on HTTP/2
  AttemptState on_tunnel_eof() override LOOP_ONLY { return AttemptState::alive; }

  H2LoopContext& near_;
  H2LoopContext& far_;
  H2Connection* connection_ = nullptr;
  Message<RequestPart> request_part_{*this};
  Message<ResponsePart> response_part_{*this};
  Message<Cancel> cancel_{*this};

  // near
  UpstreamStreamHandler* user_ = nullptr;  // while the exchange wants to know
  http::ResponseHead* response_ = nullptr;
  pool::Lease lease_;  // of an exchange that left before the far half was done
  RequestPart next_request_part_;
  std::size_t travelling_ = 0;  // bytes of body in the message that is not home
  bool report_kept_ = false;    // the report is here, read, and not given back: the client has no room
  bool far_done_ = false;

  // far
  http::ResponseHead head_;
  H2UpstreamStream upstream_stream_;
  ResponsePart next_report_;
  bool order_kept_ = false;       // followed, and not given back: the session has no room
  bool carrying_ = false;         // upstream_stream_ has begun
  bool may_buffer_more_ = false;  // the client was, when it was last heard of
  bool far_finished_ = false;     // and has ended, or never will begin
};

}  // namespace carpool::proxy
