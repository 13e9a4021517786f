#include "proxy/downstream/h2_client_stream.h"

#include <algorithm>
#include <utility>

#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/h2_websocket.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/http/error_reply.h"
#include "proxy/net/io_limits.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kSmallStep = std::size_t{4} * 1024;
constexpr std::size_t kBeginning = std::size_t{4} * 1024;  // bytes of a response
}  // namespace

Fault violation_of_client(std::string_view violation) {
  return {FaultKind::malformed_request, Side::client, std::string("the client violated HTTP/2: ").append(violation)};
}

// ---- the request ----

void H2ClientStream::open(http::H2Stream& stream, Exchange& exchange) {
  stream_ = &stream;
  exchange_ = &exchange;
  held_ = framed_ = 0;
  last_pull_ = 0;
  inbox_ = {};
  begun_ = complete_ = ended_ = false;
  stays_tunnel_.reset();
  http::RequestHead& head = exchange.request();
  tunnel_ = head.has_method("CONNECT");
  if (!tunnel_) return;
  if (head.protocol.empty()) {
    head.target = head.authority;
  } else {
    key_ = ask_for_upgrade(head);
  }
}

void H2ClientStream::begin() {
  begun_ = true;
  ListHook<H2TodoTag>::unlink();
  client_.pump_soon(*this);
  if (tunnel_ && key_.empty()) {
    stays_tunnel_ = client_.interceptor().accept(*this, exchange_->request(), metrics::Intercept::in_h2).tunnel;
  }
  exchange_->begin(*this);
  tunnel_ ? pump() : deliver_received();
}

// Delivers what arrived before the request was dispatched.
void H2ClientStream::deliver_received() {
  const std::string bytes = inbox_.take_bytes();
  held_ += bytes.size();
  if (exchange_ != nullptr && !bytes.empty()) exchange_->on_request_body(bytes);
  deliver_trailers(received_trailers_);
  if (exchange_ != nullptr && complete_) exchange_->on_request_end();
  pump();  // the upstream stream's batch refers to `bytes` until it is sent
}

void H2ClientStream::deliver_trailers(const http::Fields& fields) {
  for (std::size_t i = 0; exchange_ != nullptr && i < fields.size(); ++i) {
    exchange_->on_request_trailer(fields[i].name, fields[i].value, fields.sensitive(i));
  }
}

void H2ClientStream::continue_stream() {
  if (exchange_ == nullptr) return;
  begun_ ? empty_inbox() : begin();
}

// Forwards the client's bytes into its tunnel; the only path for them.
void H2ClientStream::empty_inbox() {
  if (!exchange_->tunnelled()) return;
  const std::string bytes = inbox_.take_bytes();
  held_ += bytes.size();
  if (!bytes.empty()) exchange_->on_tunnel_bytes(bytes);
  pump();  // the upstream stream's batch refers to `bytes` until it is sent
  if (exchange_ != nullptr && inbox_.take_end()) exchange_->on_tunnel_input_end();
}

void H2ClientStream::pump() {
  client_.forget_pump(*this);
  if (exchange_ == nullptr || !begun_) return;
  exchange_->pump();
  give_room();
}

// Returns flow-control credit for the bytes that the exchange has consumed.
void H2ClientStream::give_room() {
  if (stream_ == nullptr || held_ == 0 || (exchange_ != nullptr && !exchange_->wants_input())) return;
  client_.session().consume(*stream_, std::exchange(held_, 0));
  client_.flush_soon();
}

void H2ClientStream::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  if (exchange_ != nullptr && !begun_) return inbox_.add(bytes);
  if (exchange_ == nullptr) {
    if (stream_ != nullptr) client_.session().consume(*stream_, bytes.size());
    return;
  }
  if (tunnel_ && !(exchange_->tunnelled() && inbox_.empty())) {
    inbox_.add(bytes);
    return empty_inbox();
  }
  client_.pump_soon(*this);
  held_ += bytes.size();
  tunnel_ ? exchange_->on_tunnel_bytes(bytes) : exchange_->on_request_body(bytes);
}

void H2ClientStream::on_trailers(const http::Fields& fields) {
  exec::assume_on_loop();
  if (exchange_ != nullptr && !begun_) {
    received_trailers_ = fields;
  } else {
    deliver_trailers(fields);
  }
}

void H2ClientStream::on_end() {
  exec::assume_on_loop();
  complete_ = true;
  if (tunnel_) inbox_.end();
  if (exchange_ == nullptr || !begun_) return;
  if (tunnel_) return empty_inbox();
  client_.pump_soon(*this);
  exchange_->on_request_end();
}

void H2ClientStream::on_closed(http::H2Error) {
  exec::assume_on_loop();
  if (exchange_ != nullptr && exchange_->tunnelled() && complete_ && stream_->end_sent()) {  // closed in order
    stream_ = nullptr;
    outlives_ = true;
    client_.tunnel_outlives_stream();
    return empty_inbox();
  }
  const char* const violation = stream_ == nullptr ? nullptr : stream_->violation();
  violation == nullptr ? abandon() : break_off(violation);
}

// Nothing can be sent to the client any more; the request ends as one of HTTP/1.1 that is malformed.
void H2ClientStream::break_off(std::string_view violation) {
  stream_ = nullptr;
  if (exchange_ == nullptr) return;
  if (begun_) return exchange_->on_request_broken(violation_of_client(violation));
  client_.record_malformed(violation);
  abandon();
}

void H2ClientStream::abandon() {
  stream_ = nullptr;
  if (exchange_ == nullptr) return;
  if (begun_) return exchange_->on_client_gone();
  client_.context().exchanges.give_back(*std::exchange(exchange_, nullptr));
  forget();
}

void H2ClientStream::time_out(std::string_view rule) {
  if (exchange_ != nullptr && begun_) exchange_->on_client_timed_out(rule);
}

void H2ClientStream::give_up(const Fault& fault) {
  if (exchange_ != nullptr && begun_ && !exchange_->response_incomplete()) exchange_->on_request_broken(fault);
}

void H2ClientStream::note_stopping() {
  if (exchange_ != nullptr && begun_) exchange_->note_stopping();
}

// ---- the client: fairness key, backlog and buffer limits ----

std::uint64_t H2ClientStream::fairness_key() const {
  return client_.fairness_key();
}
std::string_view H2ClientStream::peer() const {
  return client_.peer();
}

int H2ClientStream::socket() const {
  return client_.socket();
}

std::string_view H2ClientStream::tls_version() const {
  return client_.tls_version();
}

bool H2ClientStream::accepted_while_shedding() const {
  return client_.accepted_while_shedding();
}

bool H2ClientStream::flush() {
  client_.flush_soon();
  return stream_ != nullptr;
}

// All streams of a client share one high watermark. A stream without unsent data may always continue.
std::size_t H2ClientStream::backlog() const {
  if (stream_ == nullptr) return 0;
  const std::size_t own = stream_->backlog();
  return own != 0 && client_.over_high_watermark() ? std::max(own, kHighWatermark) : own;
}

// Above the high watermark streams continue in small steps, because two hundred unread streams would otherwise hold as
// many full reads.
std::size_t H2ClientStream::writable_bytes() const {
  return client_.over_high_watermark() ? kSmallStep : SIZE_MAX;
}

// A stream whose client has begun to read the response may buffer more even when many streams are open.
bool H2ClientStream::may_buffer_more() const {
  return client_.may_buffer_more() || (framed_ >= kBeginning && !client_.over_high_watermark());
}

void H2ClientStream::on_tunnel() {
  if (!inbox_.empty()) client_.continue_soon(*this);
}

void H2ClientStream::shut_write_when_sent() {
  if (stream_ == nullptr || std::exchange(ended_, true)) return;
  client_.session().end(*stream_);
  client_.flush_soon();
}

void H2ClientStream::resume() {
  give_room();
}

void H2ClientStream::on_sent(std::size_t bytes) {
  exec::assume_on_loop();
  framed_ += bytes;
  last_pull_ = client_.pulls();
  if (exchange_ == nullptr || !begun_) return;
  exchange_->on_client_progress();
  if (exchange_ != nullptr && backlog() < kHighWatermark) exchange_->on_client_writable();
}

// The bytes of this stream wait behind those that the client read, unless they wait for a window that it does not open.
void H2ClientStream::note_read_by_client(std::uint64_t pull) {
  if (exchange_ == nullptr || !begun_ || stream_ == nullptr || stream_->backlog() == 0) return;
  if (last_pull_ == pull || client_.session().window_open(*stream_)) exchange_->on_client_progress();
}

// Returns the error for a response that breaks off. The tunnel of CONNECT has one of its own (RFC 9113 §8.5), and so
// has that of an extended CONNECT (RFC 8441 §5). A gRPC call that its origin reset has the status of that reset.
http::H2Error H2ClientStream::error_of_cut() const {
  const std::optional<Fault>& fault = exchange_->info().fault;
  if (!tunnel_ && fault && http::is_grpc(exchange_->request())) return http::reset_of_grpc_code(fault->grpc);
  if (!tunnel_) return http::H2Error::internal_error;
  return exchange_->request().protocol.empty() ? http::H2Error::connect_error : http::H2Error::cancel;
}

void H2ClientStream::on_exchange_end(AfterExchange next) {
  const http::H2Error error = error_of_cut();
  client_.context().exchanges.give_back(*std::exchange(exchange_, nullptr));
  if (http::H2Stream* stream = std::exchange(stream_, nullptr)) {
    const bool broken = next == AfterExchange::cut || next == AfterExchange::malformed_end;
    if (broken && (tunnel_ || !ended_)) {  // the origin's end does not end a tunnel
      client_.session().cut(*stream, error);
    } else if (next == AfterExchange::gone) {
      client_.session().reset(*stream, http::H2Error::cancel);
    } else {
      if (!ended_) client_.session().end(*stream);
      client_.session().leave(*stream);
    }
  }
  client_.flush_soon();  // also arms its timer
  forget();
}

void H2ClientStream::forget() {
  if (std::exchange(outlives_, false)) client_.outliving_tunnel_ended();
  inbox_ = {};
  received_trailers_.clear();
  received_trailers_.shrink();
  key_.clear();
  ListHook<H2TodoTag>::unlink();
  client_.forget_pump(*this);
  client_.recycle(*this);
}

}  // namespace carpool::proxy
