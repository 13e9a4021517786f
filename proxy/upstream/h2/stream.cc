#include "proxy/upstream/h2/stream.h"

#include <string>
#include <utility>

#include "proxy/net/write_queue.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

namespace {
// A client that has accepted more than this of a response keeps reading, because so much cannot wait between this side
// and its socket. Only such a client gets a wide window, so a client that sends a hundred requests and reads nothing
// holds little memory.
constexpr std::size_t kWideAfter = std::size_t{256} * 1024;
constexpr std::uint32_t kWideWindow = 256 * 1024;
// Window for a client with little buffered data. A larger response stalls for one round trip after its first bytes,
// except where recent responses were large.
constexpr std::uint32_t kUsualWindow = 32 * 1024;

// The failure of a request whose head exceeds the origin's limit. Origins that enforce it may end the session, with the
// requests of all other clients.
StreamFailure too_large() {
  StreamFailure failure;
  failure.fault = {FaultKind::head_too_large, Side::client,
                   "the request head exceeds the origin's limit (SETTINGS_MAX_HEADER_LIST_SIZE)"};
  failure.any_byte_sent = false;
  return failure;
}
}  // namespace

void H2UpstreamStream::begin(H2Connection& connection) {
  CARPOOL_ASSERT(connection_ == nullptr);
  connection_ = &connection;
  stream_ = nullptr;
  unreturned_ = returned_ = 0;
  ended_ = any_byte_received_ = false;
}

bool H2UpstreamStream::usable() {
  return connection_->takes_requests();
}

// ---- the request ----

void H2UpstreamStream::send_head(const http::RequestHead& head, const http::ForwardRules& rules) {
  auto fields = host_.buffers().lend_fields();
  http::h2_request(*fields, head, rules, {connection_->scheme(), {}});
  send_fields(*fields, head.is_whole(), head.has_method("HEAD"));
}

void H2UpstreamStream::send_fields(const http::H2Fields& fields, bool end, bool head_request) {
  head_request_ = head_request;
  ended_ = end;
  if (fields.list_size() > connection_->max_header_list()) return fail(too_large());
  stream_ = connection_->open(*this, fields, end, head_request);
  began_ = host_.loop().now();
  if (stream_ != nullptr) {
    if (connection_->recent_large_responses() && user_.may_buffer_more())
      connection_->session().widen(*stream_, kUsualWindow);
    return;
  }
  StreamFailure refused;
  refused.fault.detail = "the HTTP/2 session accepts no more requests";
  refused.connection_ended = true;
  refused.any_byte_sent = false;
  refused.unprocessed = RetryReason::not_sent;
  fail(std::move(refused));
}

void H2UpstreamStream::send_body(std::string_view bytes) {
  if (stream_ != nullptr && !ended_) connection_->session().body(*stream_, bytes);
}

void H2UpstreamStream::send_end(const http::Fields& trailers) {
  if (stream_ == nullptr || ended_) return;
  ended_ = true;
  trailers.empty() ? connection_->session().end(*stream_) : connection_->session().end(*stream_, trailers);
}

bool H2UpstreamStream::flush() {
  connection_->schedule_flush();
  return true;
}

void H2UpstreamStream::on_sent(std::size_t) {
  exec::assume_on_loop();
  static_cast<void>(user_.on_writable());
}

// ---- the response ----

void H2UpstreamStream::on_head(http::ResponseHead& head) {
  exec::assume_on_loop();
  connection_->begin_delivery(*this);
  connection_->answered();
  any_byte_received_ = true;
  response_ = std::move(head);
  // A missing body becomes a length of zero, as HTTP/1.1 requires where a body is possible.
  const bool bodiless = head_request_ || response_.status < 200 || response_.status == 204 || response_.status == 304;
  if (!bodiless && response_.framing == http::Framing::none) {
    response_.framing = http::Framing::length;
    response_.length = 0;
  }
  static_cast<void>(user_.on_response_head());
}

void H2UpstreamStream::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  connection_->begin_delivery(*this);
  unreturned_ += bytes.size();
  user_.on_body(bytes);
}

void H2UpstreamStream::on_trailers(const http::Fields& fields) {
  exec::assume_on_loop();
  connection_->begin_delivery(*this);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    user_.on_trailer(fields[i].name, fields[i].value, fields.sensitive(i));
  }
}

void H2UpstreamStream::on_end() {
  exec::assume_on_loop();
  connection_->begin_delivery(*this);
  connection_->end_delivery(*this);
  static_cast<void>(user_.on_response_end());
}

void H2UpstreamStream::flush_to_handler() {
  if (user_.on_read_complete() == AttemptState::alive) static_cast<void>(resume_reading());
}

// Data that the client has not accepted stays in the stream's window, so that the origin stops sending.
AttemptState H2UpstreamStream::resume_reading() {
  if (stream_ == nullptr || unreturned_ == 0 || !user_.wants_response()) return AttemptState::alive;
  const std::size_t bytes = std::exchange(unreturned_, 0);
  if (returned_ < kWideAfter) {
    returned_ += bytes;
    if (returned_ >= kWideAfter) {
      connection_->session().widen(*stream_, kWideWindow);
    } else if (returned_ >= kNarrowWindow / 2 && user_.may_buffer_more()) {
      connection_->session().widen(*stream_, kUsualWindow);
    }
  }
  connection_->session().consume(*stream_, bytes);
  connection_->schedule_flush();
  return AttemptState::alive;
}

// ---- termination ----

void H2UpstreamStream::on_closed(http::H2Error error) {
  exec::assume_on_loop();
  StreamFailure failure;
  failure.any_byte_received = any_byte_received_;
  if (stream_->never_sent()) {
    failure.unprocessed = RetryReason::not_sent;
    failure.any_byte_sent = false;
  } else if (error == http::H2Error::refused_stream) {
    failure.unprocessed = RetryReason::refused_stream;  // or goaway: determined below
  } else if (error == http::H2Error::http_1_1_required) {
    failure.unprocessed = RetryReason::refused_stream;
    failure.ask_h1 = true;
  }
  const char* const violation = stream_->violation();
  failure.fault.kind = violation != nullptr                     ? stream_->violation_kind()
                       : error == http::H2Error::protocol_error ? FaultKind::malformed_response
                       : any_byte_received_                     ? FaultKind::response_incomplete
                                                                : FaultKind::connection_terminated;
  // The origin may have processed the call, and clients repeat one that was `unavailable`.
  if (!failure.unprocessed) failure.fault.grpc = http::grpc_code_of_reset(error);
  if (violation != nullptr) {
    failure.fault.detail.assign("the origin's HTTP/2 response is malformed: ").append(violation);
  } else {
    failure.stream_reset = error != http::H2Error::protocol_error;
    failure.fault.detail.assign("the HTTP/2 stream was reset: ").append(http::h2_error_name(error));
  }
  // The session then closed the stream, as if the origin had refused it.
  const bool excluded = failure.unprocessed && connection_->excluded_by_goaway(stream_->id());
  if (excluded) {
    failure.unprocessed = RetryReason::goaway;
    failure.ask_h1 = failure.ask_h1 || connection_->requires_h1();
    failure.fault.detail = "the origin's GOAWAY excluded the request";
  } else if (failure.unprocessed != RetryReason::not_sent) {
    connection_->note_reset(error);
  }
  fail(std::move(failure));
}

void H2UpstreamStream::connection_ended(const Fault& fault) {
  StreamFailure failure;
  failure.fault = fault;
  if (any_byte_received_) failure.fault.kind = FaultKind::response_incomplete;
  failure.connection_ended = true;
  failure.any_byte_received = any_byte_received_;
  failure.any_byte_sent = stream_->head_begun();
  failure.never_answered = !connection_->has_answered();
  stream_->set_user(nullptr);
  fail(std::move(failure));
}

void H2UpstreamStream::give_up_unsent(std::string_view why) {
  if (stream_->head_begun()) return;
  StreamFailure failure;
  failure.fault.detail = why;
  failure.any_byte_sent = false;
  failure.unprocessed = connection_->excluded_by_goaway(stream_->id()) ? RetryReason::goaway : RetryReason::not_sent;
  failure.ask_h1 = connection_->requires_h1();
  connection_->session().reset(*stream_, http::H2Error::cancel);
  fail(std::move(failure));
}

void H2UpstreamStream::forget_stream() {
  if (std::exchange(stream_, nullptr) != nullptr) connection_->stream_left();
}

void H2UpstreamStream::fail(StreamFailure failure) {
  forget_stream();
  failure_ = std::move(failure);
  connection_->schedule_failure_report(*this);
}

void H2UpstreamStream::leave() {
  forget_stream();
  ListHook<H2OpenTag>::unlink();
  connection_->end_delivery(*this);
  connection_ = nullptr;
  failure_.reset();
}

// Returns no cause, because the session continues however one stream ended.
std::optional<pool::CloseCause> H2UpstreamStream::finish(pool::Lease&) {
  connection_->note_size(returned_ + unreturned_);
  if (stream_ != nullptr) {
    // The origin may never open the window for the rest of a request that it has answered: without a reset the stream
    // would count against its limit until the session ends.
    http::H2Session& session = connection_->session();
    stream_->end_sent() ? session.leave(*stream_) : session.reset(*stream_, http::H2Error::cancel);
    connection_->schedule_flush();
  }
  leave();
  return std::nullopt;
}

std::optional<pool::CloseCause> H2UpstreamStream::abandon(pool::CloseCause, pool::Lease&) {
  if (stream_ != nullptr) {
    connection_->on_stream_abandoned(began_);
    connection_->session().reset(*stream_, http::H2Error::cancel);
    connection_->schedule_flush();
  }
  leave();
  return std::nullopt;
}

}  // namespace carpool::proxy
