// CrossLoopStream: a stream of an HTTP/2 session on another loop. The local half is the exchange's upstream stream; the
// remote half uses an H2UpstreamStream on the session's loop. Two messages connect them, one in each direction.
//
// While a message is in flight, the sender fills a second one, and sends it as soon as the first is back. One message
// thus carries everything gathered meanwhile, and nothing is locked. A receiver keeps a message while it has no room
// for more, which provides backpressure. A message owns its bytes. The local side holds the lease until the remote side
// has finished with the stream, so the session outlives every message that refers to it. Until then an abandoned stream
// is not reused either, so no late message reaches another request.
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
                              public ListHook<struct CrossLoopStreamTag> {
 public:
  CrossLoopStream(H2LoopContext& local, H2LoopContext& remote);

  // ---- local: the exchange's loop ----
  void begin(H2Connection& connection, UpstreamStreamHandler& user, http::ResponseHead& response) LOOP_ONLY;
  bool usable() override LOOP_ONLY { return true; }  // the remote loop decides: H2Connection::open()
  void send_head(const http::RequestHead& head, const http::ForwardRules& rules) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY { next_request_part_.body.append(bytes); }
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return next_request_part_.body.size() + in_flight_; }
  AttemptState resume_reading() override LOOP_ONLY;
  std::optional<pool::CloseCause> finish(pool::Lease& lease) override LOOP_ONLY;
  std::optional<pool::CloseCause> abandon(pool::CloseCause cause, pool::Lease& lease) override LOOP_ONLY;

 private:
  struct RequestPart {  // towards the origin
    http::H2Fields head;
    std::string body;
    http::Fields trailers;
    bool has_head = false, head_is_whole = false, head_request = false, may_buffer_more = false;
    bool end = false;
    bool empty() const { return !has_head && body.empty() && !end; }
    void clear();
    void shrink();  // frees what a large message needed
  };
  struct ResponsePart {  // towards the exchange
    std::vector<http::ResponseHead> heads;
    std::string body;
    http::Fields trailers;
    bool end = false;
    bool done = false;             // the remote half no longer accesses the stream
    bool may_buffer_more = false;  // set on the way back: the client's value
    std::optional<StreamFailure> failure;
    bool empty() const { return heads.empty() && body.empty() && !end && !done; }
    void clear();
    void shrink();
  };
  struct Cancel {};  // Cancel: the exchange left. Overtakes a RequestPart that the remote half keeps.
  template <class Content>
  struct Message final : exec::Mail {
    explicit Message(CrossLoopStream& stream) : owner(stream) {}
    void arrive() override {
      exec::assume_on_loop();
      owner.arrived(*this);
    }
    CrossLoopStream& owner;
    Content content;
    bool outward = true;  // full, on its way to the reader; false: empty, on its way back
    bool home = true;     // it is on the side that fills it
  };
  void arrived(Message<RequestPart>& message) LOOP_ONLY;
  void arrived(Message<ResponsePart>& message) LOOP_ONLY;
  void arrived(Message<Cancel>& message) LOOP_ONLY;

  // local half
  void read_response_part() LOOP_ONLY;
  AttemptState deliver(ResponsePart& response_part) LOOP_ONLY;
  void give_response_part_back() LOOP_ONLY;
  void recycle_if_done() LOOP_ONLY;

  // remote half, on the session's loop
  void apply(RequestPart& request_part) LOOP_ONLY;
  void give_request_part_back() LOOP_ONLY;
  void send_response_part() LOOP_ONLY;
  void done() LOOP_ONLY;
  void on_cancel() LOOP_ONLY;
  bool wants_response() const override LOOP_ONLY;
  bool may_buffer_more() const override LOOP_ONLY { return may_buffer_more_; }
  AttemptState on_response_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override { next_response_part_.body.append(bytes); }
  void on_trailer(std::string_view name, std::string_view value, bool sensitive) override {
    next_response_part_.trailers.add(name, value, sensitive);
  }
  AttemptState on_read_complete() override LOOP_ONLY;
  AttemptState on_response_end() override LOOP_ONLY;
  AttemptState on_failure(StreamFailure failure) override LOOP_ONLY;
  AttemptState on_writable() override LOOP_ONLY;
  AttemptState on_switched(std::string_view) override LOOP_ONLY { return AttemptState::alive; }  // HTTP/2 has no 101
  AttemptState on_tunnel_eof() override LOOP_ONLY { return AttemptState::alive; }

  H2LoopContext& local_;
  H2LoopContext& remote_;
  H2Connection* connection_ = nullptr;
  Message<RequestPart> request_part_{*this};
  Message<ResponsePart> response_part_{*this};
  Message<Cancel> cancel_{*this};

  // local half
  UpstreamStreamHandler* user_ = nullptr;  // null once the exchange has left
  http::ResponseHead* response_ = nullptr;
  pool::Lease lease_;  // lease of an exchange that left before the remote half was done
  RequestPart next_request_part_;
  std::size_t in_flight_ = 0;        // body bytes in the message that is in flight
  bool response_part_held_ = false;  // the report was read but not returned, because the client has no room
  bool remote_done_ = false;

  // remote half
  http::ResponseHead head_;
  H2UpstreamStream upstream_stream_;
  ResponsePart next_response_part_;
  bool request_part_held_ = false;  // applied but not returned, because the session has no room
  bool stream_begun_ = false;       // upstream_stream_ has begun
  bool may_buffer_more_ = false;    // last value received from the client
  bool remote_finished_ = false;    // the stream has ended, or will never begin
};

}  // namespace carpool::proxy
