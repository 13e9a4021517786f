#include "proxy/downstream/h2_request.h"

#include <algorithm>
#include <utility>

#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/websocket.h"
#include "proxy/http/fault_reply.h"
#include "proxy/http/h1_codec.h"
#include "proxy/http/h2_fields.h"
#include "proxy/local_answer.h"
#include "proxy/worker.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kSmallStep = std::size_t{16} * 1024;
}  // namespace

// ---- the request ----

void H2Request::open(http::H2Stream& stream, Exchange& exchange) {
  stream_ = &stream;
  exchange_ = &exchange;
  held_ = 0;
  begun_ = complete_ = ended_ = refused_ = false;
  http::RequestHead& head = exchange.request();
  bare_ = head.method == "CONNECT";
  if (!bare_) return;
  if (head.protocol.empty()) {
    head.target = head.authority;
  } else {
    key_ = ask_for_upgrade(head);
  }
}

void H2Request::begin() {
  begun_ = true;
  ListHook<H2TodoTag>::unlink();
  client_.turn_to(*this);
  exchange_->begin(*this);
  if (exchange_ != nullptr && complete_ && !bare_) exchange_->on_request_end();
}

void H2Request::catch_up() {
  if (exchange_ == nullptr) return;
  if (!begun_) return begin();
  if (!exchange_->tunnelled()) return;
  client_.turn_to(*this);
  const std::string bytes = std::exchange(early_, {});
  held_ += bytes.size();
  if (!bytes.empty()) exchange_->on_tunnel_bytes(bytes);
  pump();
  if (exchange_ != nullptr && complete_) exchange_->on_tunnel_input_end();
}

void H2Request::pump() {
  if (exchange_ == nullptr || !begun_) return;
  exchange_->pump();
  give_room();
}

// The client may send on what the exchange has taken.
void H2Request::give_room() {
  if (stream_ == nullptr || held_ == 0 || (exchange_ != nullptr && !exchange_->wants_input())) return;
  client_.session().consume(*stream_, std::exchange(held_, 0));
  client_.flush_soon();
}

void H2Request::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  if (exchange_ != nullptr && !begun_) begin();
  if (exchange_ == nullptr) {
    if (stream_ != nullptr) client_.session().consume(*stream_, bytes.size());
    return;
  }
  if (bare_ && !exchange_->tunnelled()) {
    early_.append(bytes);
    return;
  }
  client_.turn_to(*this);
  held_ += bytes.size();
  if (bare_) {
    exchange_->on_tunnel_bytes(bytes);
  } else {
    exchange_->on_request_body(bytes);
  }
}

void H2Request::on_trailers(const http::Fields& fields) {
  exec::assume_on_loop();
  if (exchange_ != nullptr && !begun_) begin();
  for (std::size_t i = 0; exchange_ != nullptr && i < fields.size(); ++i) {
    exchange_->on_request_trailer(fields[i].name, fields[i].value);
  }
}

void H2Request::on_end() {
  exec::assume_on_loop();
  complete_ = true;
  if (exchange_ == nullptr || !begun_) return;
  client_.turn_to(*this);
  if (!bare_) return exchange_->on_request_end();
  if (!exchange_->tunnelled()) return;  // told behind what came early
  exchange_->pump();
  if (exchange_ != nullptr) exchange_->on_tunnel_input_end();
}

void H2Request::on_closed(http::H2Error) {
  exec::assume_on_loop();
  stream_ = nullptr;
  abandon();
}

void H2Request::abandon() {
  if (exchange_ == nullptr) return;
  client_.turn_from(*this);
  stream_ = nullptr;
  if (begun_) return exchange_->on_client_gone();
  client_.worker().recycle(*std::exchange(exchange_, nullptr));
  forget();
}

// ---- the answer ----

std::uint64_t H2Request::identity() const {
  return client_.identity();
}
std::string_view H2Request::peer() const {
  return client_.peer();
}

bool H2Request::unwelcome() const {
  return client_.unwelcome();
}

void H2Request::send_informational(const http::ResponseHead& head) {
  if (stream_ == nullptr) return;
  http::H2Fields& fields = client_.worker().h2_fields();
  http::h2_informational(fields, head, client_.worker().pseudonym());
  client_.session().inform(*stream_, fields);
}

bool H2Request::send_head(const http::ResponseHead& head, bool /*close*/) {
  if (stream_ == nullptr) return false;
  http::ReplyRules rules;
  rules.via_pseudonym = client_.worker().pseudonym();
  rules.client_version = http::Version::http2;
  rules.head_request = exchange_ != nullptr && exchange_->request().method == "HEAD";
  http::H2Fields& fields = client_.worker().h2_fields();
  http::h2_response(fields, head, rules);
  ended_ = head.framing == http::Framing::none || (head.framing == http::Framing::length && head.length == 0);
  client_.session().respond(*stream_, fields, ended_);
  return false;  // other streams go on
}

void H2Request::send_body(std::string_view bytes) {
  if (stream_ != nullptr && !ended_) client_.session().body(*stream_, bytes);
}

void H2Request::send_end(const http::Fields& trailers) {
  if (stream_ == nullptr || std::exchange(ended_, true)) return;
  if (trailers.empty()) return client_.session().end(*stream_);
  client_.session().end(*stream_, trailers);
}

namespace {
// The body of an answer of our own.
struct OwnBody final : http::BodySink {
  void on_body(std::string_view bytes) override { text.append(bytes); }
  void on_trailer(std::string_view, std::string_view) override {}
  std::string text;
};
}  // namespace

// Answers of our own are written once, as HTTP/1.1; here they are read back.
void H2Request::send_own(const std::string& text, std::string_view method) {
  if (stream_ == nullptr) return;
  http::ResponseReader reader(client_.worker().response_limits());
  reader.expect(method, false);
  http::ResponseHead head;
  OwnBody body;
  std::string_view rest = text;
  for (http::Progress progress = http::Progress::need_more; progress != http::Progress::message;) {
    const Result<http::Fed> fed = reader.feed(rest, head, body);
    CARPOOL_ASSERT(fed && (fed->progress != http::Progress::need_more || fed->taken != 0));
    rest.remove_prefix(fed->taken);
    progress = fed->progress;
  }
  http::ReplyRules rules;
  rules.client_version = http::Version::http2;
  rules.head_request = method == "HEAD";
  http::H2Fields& fields = client_.worker().h2_fields();
  http::h2_response(fields, head, rules);
  ended_ = true;
  client_.session().respond(*stream_, fields, body.text.empty());
  client_.session().body(*stream_, body.text);
  client_.session().end(*stream_);
}

std::uint16_t H2Request::send_fault(const Fault& fault, bool /*keep*/) {
  std::string text;
  const std::string& method = exchange_->request().method;
  const std::uint16_t status = http::write_fault_reply(text, fault, http::Version::http11, false, method == "HEAD",
                                                       client_.worker().pseudonym());
  send_own(text, method == "HEAD" ? "HEAD" : "GET");
  return status;
}

void H2Request::refuse(http::H2Stream& stream, const Fault& fault) {
  stream_ = &stream;
  exchange_ = nullptr;
  std::string text;
  const std::uint16_t status =
      http::write_fault_reply(text, fault, http::Version::http11, false, false, client_.worker().pseudonym());
  send_own(text, "GET");
  client_.worker().record_refused(*this, fault, status);
  client_.session().leave(*std::exchange(stream_, nullptr));
  forget();
}

void H2Request::send_local_answer(bool /*keep*/) {
  std::string text;
  write_local_answer(text, exchange_->request(), client_.worker().pseudonym(), false);
  send_own(text, "GET");
}

// To CONNECT and to an extended one alike: 200, and the stream is the tunnel (RFC 8441 §5).
void H2Request::send_tunnel(const http::ResponseHead* switched) {
  if (stream_ == nullptr) return;
  if (switched != nullptr && !key_.empty() && !accepts(*switched, key_)) {
    refused_ = true;
    std::string text;
    const Fault fault{FaultKind::malformed_response, Side::upstream, "Sec-WebSocket-Accept does not match the key"};
    http::write_fault_reply(text, fault, http::Version::http11, false, false, client_.worker().pseudonym());
    return send_own(text, "GET");
  }
  http::H2Fields& fields = client_.worker().h2_fields();
  http::ReplyRules rules;
  rules.via_pseudonym = client_.worker().pseudonym();
  rules.client_version = http::Version::http2;
  http::ResponseHead head;
  head.status = 200;
  for (std::size_t i = 0; switched != nullptr && i < switched->fields.size(); ++i) {
    const http::Fields::Field field = switched->fields[i];
    if (!http::iequals(field.name, "sec-websocket-accept")) head.fields.add(field.name, field.value);
  }
  http::h2_response(fields, head, rules);
  client_.session().respond(*stream_, fields, false);
}

bool H2Request::flush() {
  client_.flush_soon();
  return stream_ != nullptr && !refused_;
}

// All streams of a client share what may wait for it; one that has nothing waiting may always go on.
std::size_t H2Request::backlog() const {
  if (stream_ == nullptr) return 0;
  const std::size_t own = stream_->backlog();
  return own != 0 && client_.crowded() ? std::max(own, kHighMark) : own;
}

// A crowd of clients' streams goes on in small steps: two hundred that are not read would hold as many whole reads.
std::size_t H2Request::room() const {
  return client_.crowded() ? kSmallStep : SIZE_MAX;
}

void H2Request::on_tunnel() {
  if (!early_.empty() || complete_) client_.later(*this);
}

void H2Request::shut_write_when_sent() {
  if (stream_ == nullptr || std::exchange(ended_, true)) return;
  client_.session().end(*stream_);
  client_.flush_soon();
}

void H2Request::resume() {
  give_room();
}

void H2Request::on_sent(std::size_t) {
  exec::assume_on_loop();
  if (exchange_ == nullptr || !begun_) return;
  client_.note_progress();
  exchange_->on_client_progress();
  if (exchange_ != nullptr && backlog() < kHighMark) exchange_->on_client_writable();
}

void H2Request::on_exchange_end(ClientNext next) {
  exchange_ = nullptr;
  client_.turn_from(*this);
  if (http::H2Stream* stream = std::exchange(stream_, nullptr)) {
    if (next == ClientNext::cut) {
      client_.session().reset(*stream, bare_ ? http::H2Error::connect_error : http::H2Error::internal_error);
    } else if (next == ClientNext::gone && !refused_) {
      client_.session().reset(*stream, http::H2Error::cancel);
    } else {
      if (!ended_) client_.session().end(*stream);
      client_.session().leave(*stream);
    }
    client_.flush_soon();
  }
  forget();
}

void H2Request::forget() {
  std::string().swap(early_);
  key_.clear();
  ListHook<H2TodoTag>::unlink();
  client_.recycle(*this);
}

}  // namespace carpool::proxy
