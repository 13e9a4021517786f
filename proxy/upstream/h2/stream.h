// H2UpstreamStream: one request and its response as a stream of an HTTP/2 session of this loop. Belongs to an exchange
// (or to a CrossLoopStream) and is reused for consecutive streams.
#pragma once

#include <optional>

#include "base/intrusive.h"
#include "proxy/http/h2/fields.h"
#include "proxy/http/h2/stream.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

class H2Connection;

// Initial receive window of a stream, as in SETTINGS. It limits the memory of two hundred unread streams. A client that
// may buffer more gets a larger one, and a much larger one once it keeps up (stream.cc).
inline constexpr std::uint32_t kNarrowWindow = 8 * 1024;

class H2UpstreamStream final : public UpstreamStream,
                               public ListHook<struct H2OpenTag>,
                               public ListHook<struct H2DeliveringTag>,
                               public http::H2StreamUser {
 public:
  H2UpstreamStream(H2LoopContext& host, UpstreamStreamHandler& user, http::ResponseHead& response)
      : host_(host), user_(user), response_(response) {}

  void begin(H2Connection& connection) LOOP_ONLY;
  // Like send_head(), for a head in HTTP/2 form.
  void send_fields(const http::H2Fields& fields, bool end, bool head_request) LOOP_ONLY;

  bool usable() override LOOP_ONLY;
  void send_head(const http::RequestHead& head, const http::ForwardRules& rules) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return stream_ != nullptr ? stream_->backlog() : 0; }
  AttemptState resume_reading() override LOOP_ONLY;
  std::optional<pool::CloseCause> finish(pool::Lease& lease) override LOOP_ONLY;
  std::optional<pool::CloseCause> abandon(pool::CloseCause cause, pool::Lease& lease) override LOOP_ONLY;

  // ---- called by the connection ----
  void flush_to_handler() LOOP_ONLY;                                   // after each read
  void connection_ended(const Fault& fault) LOOP_ONLY;                 // reported later
  bool head_begun() const LOOP_ONLY { return stream_->head_begun(); }  // while it is open
  void give_up_unsent(std::string_view why) LOOP_ONLY;                 // likewise, unless the request's head is sent
  void report_failure() LOOP_ONLY {
    static_cast<void>(user_.on_failure(std::move(*std::exchange(failure_, std::nullopt))));
  }

 private:
  void on_head(http::ResponseHead& head) override;
  void on_body(std::string_view bytes) override;
  void on_trailers(const http::Fields& fields) override;
  void on_end() override;
  void on_sent(std::size_t bytes) override;
  void on_closed(http::H2Error error) override;
  void fail(StreamFailure failure) LOOP_ONLY;
  void forget_stream() LOOP_ONLY;
  void leave() LOOP_ONLY;

  H2LoopContext& host_;
  UpstreamStreamHandler& user_;
  http::ResponseHead& response_;
  H2Connection* connection_ = nullptr;  // from begin() to finish() or abandon()
  http::H2Stream* stream_ = nullptr;
  std::optional<StreamFailure> failure_;
  Instant began_{};             // when the stream began
  std::size_t unreturned_ = 0;  // bytes not yet returned to the stream's window
  std::size_t returned_ = 0;    // bytes returned to the window before it became wide
  bool head_request_ = false;
  bool ended_ = false;  // END_STREAM is queued
  bool any_byte_received_ = false;
};

}  // namespace carpool::proxy
