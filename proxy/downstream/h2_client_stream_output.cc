// H2ClientStream, output: sends an origin's response, a local reply or tunnel data as frames of its stream.
#include <optional>
#include <string>
#include <utility>

#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/h2_client_stream.h"
#include "proxy/downstream/h2_websocket.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/max_forwards_reply.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/h1/codec.h"
#include "proxy/http/h2/fields.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

namespace {
// Heads are not flow-controlled. A client with this many unread bytes of heads receives no 1xx; final responses are
// still sent.
constexpr std::size_t kUnreadHeads = std::size_t{1} << 20;
}  // namespace

bool H2ClientStream::send_informational(const http::ResponseHead& head) {
  if (stream_ == nullptr) return false;
  if (client_.session().library_memory() > kUnreadHeads) return true;
  auto fields = client_.context().buffers.lend_fields();
  http::h2_informational(*fields, head, client_.context().pseudonym);
  client_.session().inform(*stream_, *fields);
  return flush();
}

bool H2ClientStream::send_head(const http::ResponseHead& head, bool /*close*/) {
  if (stream_ == nullptr) return false;
  http::ReplyRules rules;
  rules.via_pseudonym = client_.context().pseudonym;
  rules.client_version = http::Version::http2;
  rules.head_request = exchange_ != nullptr && exchange_->request().has_method("HEAD");
  auto fields = client_.context().buffers.lend_fields();
  http::h2_response(*fields, head, rules);
  const bool empty = head.framing == http::Framing::none || (head.framing == http::Framing::length && head.length == 0);
  ended_ = empty && !head.ends_later;
  client_.session().respond(*stream_, *fields, ended_);
  return false;  // other streams continue
}

void H2ClientStream::send_body(std::string_view bytes) {
  if (stream_ != nullptr && !ended_) client_.session().body(*stream_, bytes);
}

void H2ClientStream::send_end(const http::Fields& trailers) {
  if (stream_ == nullptr || std::exchange(ended_, true)) return;
  if (trailers.empty()) return client_.session().end(*stream_);
  client_.session().end(*stream_, trailers);
}

// Parses a local reply, which exists only as HTTP/1.1, for HTTP/2.
void H2ClientStream::send_own(const std::string& text, std::string_view method) {
  if (stream_ == nullptr) return;
  http::ResponseReader reader(H2LoopContext::response_limits());
  reader.expect(method, false);
  http::ResponseHead head;
  http::BodyText body;
  std::string_view rest = text;
  for (http::Progress progress = http::Progress::need_more; progress != http::Progress::message;) {
    const Result<http::ParseResult> fed = reader.feed(rest, head, body);
    CARPOOL_ASSERT(fed && (fed->progress != http::Progress::need_more || fed->consumed != 0));
    rest.remove_prefix(fed->consumed);
    progress = fed->progress;
  }
  http::ReplyRules rules;
  rules.client_version = http::Version::http2;
  rules.head_request = method == "HEAD";
  rules.own = true;
  auto fields = client_.context().buffers.lend_fields();
  http::h2_response(*fields, head, rules);
  ended_ = true;
  client_.session().respond(*stream_, *fields, body.text.empty());
  client_.session().body(*stream_, body.text);
  client_.session().end(*stream_);
}

std::uint16_t H2ClientStream::send_fault(const Fault& fault, bool /*keep*/) {
  const http::RequestHead& request = exchange_->request();
  return send_error(fault, http::is_grpc(request), request.has_method("HEAD"));
}

std::uint16_t H2ClientStream::send_error(const Fault& fault, bool grpc, bool head) {
  std::string text;
  const http::ReplyRules rules{
      .via_pseudonym = client_.context().pseudonym, .head_request = head, .date = client_.context().wall_clock()};
  const std::uint16_t status =
      grpc ? http::write_grpc_reply(text, fault, rules) : http::write_error_reply(text, fault, rules);
  send_own(text, grpc || head ? "HEAD" : "GET");  // in gRPC's form it has no body
  return status;
}

void H2ClientStream::refuse(http::H2Stream& stream, const Fault& fault) {
  stream_ = &stream;
  exchange_ = nullptr;
  std::optional<std::uint16_t> code;
  if (stream.grpc_request()) code = http::grpc_code(fault);
  const std::uint16_t status = send_error(fault, code.has_value(), stream.head_request());
  client_.context().stats.record_refused(peer(), fault, status, code);
  client_.session().leave(*std::exchange(stream_, nullptr));
  forget();
}

void H2ClientStream::send_local_reply(bool /*keep*/) {
  std::string text;
  write_max_forwards_reply(text, exchange_->request(),
                           {.via_pseudonym = client_.context().pseudonym,
                            .client_version = http::Version::http2,
                            .date = client_.context().wall_clock()});
  send_own(text, "GET");
}

std::string_view H2ClientStream::why_not_switched(const http::ResponseHead& switched) const {
  return key_.empty() || accepts(switched, key_) ? "" : "Sec-WebSocket-Accept does not match the key";
}

// CONNECT and extended CONNECT both succeed with 200, and the stream becomes the tunnel (RFC 8441 §5).
void H2ClientStream::send_tunnel(const http::ResponseHead* switched) {
  if (stream_ == nullptr) return;
  auto fields = client_.context().buffers.lend_fields();
  http::ReplyRules rules;
  rules.via_pseudonym = client_.context().pseudonym;
  rules.client_version = http::Version::http2;
  http::ResponseHead head;
  head.status = 200;
  for (std::size_t i = 0; switched != nullptr && i < switched->fields.size(); ++i) {
    const http::Fields::Field field = switched->fields[i];
    if (!http::iequals(field.name, "sec-websocket-accept")) head.fields.add(field.name, field.value);
  }
  http::h2_response(*fields, head, rules);
  client_.session().respond(*stream_, *fields, false);
}

}  // namespace carpool::proxy
