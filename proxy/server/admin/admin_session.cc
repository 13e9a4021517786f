#include "proxy/server/admin/admin_session.h"

#include <utility>

#include "proxy/http/error_reply.h"
#include "proxy/http/h1/codec.h"
#include "proxy/http/http_date.h"
#include "proxy/http/reason_phrase.h"
#include "proxy/server/admin/event.h"
#include "proxy/server/admin/route_kind.h"

namespace carpool::proxy {

namespace {
constexpr LocalHttpSession::Bounds kAdminBounds{{16 * 1024, 100, 8 * 1024}, std::size_t{16} * 1024, {}, kAdminTimeout};

void write_head(const admin::Response& response, http::Framing framing, bool close, std::string& out) {
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  out.append(http::reason_phrase(response.status)).append("\r\nDate: ");
  out.append(http::date_text(std::chrono::system_clock::now())).append("\r\n");
  if (!response.content_type.empty()) out.append("Content-Type: ").append(response.content_type).append("\r\n");
  for (const auto& [name, value] : response.headers) out.append(name).append(": ").append(value).append("\r\n");
  if (close) out.append("Connection: close\r\n");
  if (framing == http::Framing::chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (framing == http::Framing::length) {
    out.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  }
  out.append("\r\n");
}
}  // namespace

AdminSession::AdminSession(exec::Loop& loop, Owner& owner, const Backend& backend,
                           std::unique_ptr<net::Transport> transport)
    : loop_(loop), owner_(owner), backend_(backend), http_(loop, *this, std::move(transport), kAdminBounds) {}

// Closes with a reset if the response is truncated: without chunks the close delimits it, so an orderly close would
// make it look complete.
AdminSession::~AdminSession() {
  if (streaming_ && !chunked_) http_.transport().reset_on_close();
}

Status AdminSession::start(Instant deadline) {
  Status started = http_.start();
  if (started) http_.wait_until(deadline);
  return started;
}

LocalHttpSession::Next AdminSession::next() {
  using Next = LocalHttpSession::Next;
  if (producing_) return Next::wait;
  if (body_) {
    if (made_ != TaskResult::refused) make_step();
    return Next::wait;
  }
  if (later_) return Next::wait;  // requests behind this one wait for its response
  if (listening_) return http_.discard_input() ? Next::again : Next::wait;
  return Next::read;
}

void AdminSession::on_request() {
  const http::RequestHead& head = request().head();
  const std::size_t hosts = head.fields.count(http::FieldName::host);
  if (hosts > 1 || (hosts == 0 && head.version == http::Version::http11)) {  // RFC 9112 §3.2
    http_.close_when_sent();
    return on_malformed({FaultKind::malformed_request, Side::client, hosts > 1 ? "more than one Host" : "no Host"});
  }
  rules_ = backend_.rules.get();
  const admin::AdminRequest asked = admin::make_request(head, request().body());
  if (request().too_long() || !admin::may_block(asked)) {
    response_ = made_at_once();
    return respond();
  }
  if (!owner_.may_start_work()) {
    response_ = admin::busy_response("too many responses are being produced", "1");
    return respond();
  }
  owner_.mark_working(*this);
  producing_ = true;
  http_.stop_waiting();
  making_.kind = admin::takes_long(asked) ? exec::Invocation::blocking : exec::Invocation::either;
  owner_.submit(exec::lend(making_));
}

void AdminSession::respond() {
  later_ = std::move(response_.later);
  if (later_) return poll_pending();
  send(std::exchange(response_, {}));
}

// Polls the pending response periodically until it is known.
void AdminSession::poll_pending() {
  constexpr Duration kPollPending = std::chrono::milliseconds(5);
  std::optional<admin::Response> response = later_->poll_pending();
  if (!response) return http_.wait_until(loop_.now() + kPollPending);
  later_.reset();
  send(*response);
}

void AdminSession::send(const admin::Response& response) {
  const http::RequestHead& head = request().head();
  const bool body_wanted = !head.has_method("HEAD");
  http::Framing framing = response.stream ? http::Framing::until_close : http::Framing::length;
  if (body_) framing = head.version == http::Version::http11 ? http::Framing::chunked : http::Framing::until_close;
  const bool close = !head.keep_alive || framing == http::Framing::until_close || owner_.leaving();
  WriteBatch out;
  write_head(response, framing, close, out.text());
  const bool subscribed = response.stream && body_wanted;
  if (close && !subscribed) http_.close_when_sent();
  chunked_ = framing == http::Framing::chunked;
  deadline_ = http_.request_deadline();
  http_.done_with_request();
  const std::string first = body_ ? body_->take() : std::string();
  if (!body_wanted) {
    body_.reset();
  } else if (body_) {
    streaming_ = true;
    add_step(out, first);
  } else {
    out.add(response.body);
  }
  send_out(out);
  if (http_.over()) return;
  if (!subscribed) return owner_.mark_waiting(*this);
  listening_ = true;
  owner_.mark_working(*this);
  owner_.subscribed();
}

void AdminSession::send_step() {
  const std::string step = body_->take();
  WriteBatch out;
  add_step(out, step);
  send_out(out);
  if (!http_.over()) owner_.mark_waiting(*this);
}

// Only the chunk framing is copied to the batch; the step itself is sent from its own memory.
void AdminSession::add_step(WriteBatch& out, const std::string& step) {
  if (chunked_ && !step.empty()) http::write_chunk_head(out.text(), step.size());
  out.add(step);
  if (chunked_ && !step.empty()) out.text().append("\r\n");
  if (!body_->complete()) return;
  if (chunked_) http::write_last_chunk(out.text(), {});
  body_.reset();
  streaming_ = false;
}

// All steps of a response share one timeout, which limits how long a client can hold its data and a gzip context.
void AdminSession::send_out(WriteBatch& out) {
  if (http_.send(out)) http_.wait_until(body_ ? deadline_ : http_.request_deadline());
}

void AdminSession::send_event(const admin::Event& event) {
  if (up_to_date_ && event.changes == nullptr) return;
  if (!http_.flush()) {
    up_to_date_ = false;
    return;
  }
  WriteBatch out;
  out.add(up_to_date_ ? *event.changes : *event.whole);
  if (!http_.send(out)) return;
  up_to_date_ = true;
  http_.restart_timer();  // a client that reads nothing until the timeout is closed
}

void AdminSession::on_malformed(const Fault& fault) {
  const std::uint16_t status = http::fault_status(fault.kind).status;
  const admin::Response response =
      admin::error_response(status, fault.detail.empty() ? http::fault_name(fault.kind) : fault.detail);
  WriteBatch out;
  write_head(response, http::Framing::length, true, out.text());
  if (!request().head().has_method("HEAD")) out.add(response.body);
  http_.send(out);
}

void AdminSession::poll_awaited() {
  if (!later_) return;
  poll_pending();
  if (!later_) http_.advance();
}

void AdminSession::on_timeout() {
  if (later_) return poll_awaited();
  if (!producing_ && made_ == TaskResult::refused && loop_.now() < deadline_) return make_step();
  end();
}

void AdminSession::on_end() {
  if (listening_) owner_.unsubscribed();
  if (!producing_) owner_.ended(*this);  // otherwise called when the response is ready
}

}  // namespace carpool::proxy
