#include "proxy/upstream/h1_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "exec/read_buffer.h"
#include "proxy/net/read_with_budget.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

H1UpstreamStream::H1UpstreamStream(H2LoopContext& host, UpstreamStreamHandler& user, http::ResponseHead& response)
    : host_(host), user_(user), response_(response), reader_(H2LoopContext::response_limits()) {}

net::Transport& H1UpstreamStream::transport() const {
  return connection_->transport();
}

void H1UpstreamStream::begin(Connection& connection, std::string_view method, bool upgrade, bool bare_lf) {
  CARPOOL_ASSERT(connection_ == nullptr);
  connection_ = &connection;
  connection.events = this;
  log_state_change(connection, ConnectionState::borrowed, method);
  reader_.expect(method, upgrade, bare_lf);
  attempt_ = Attempt();
}

// Returns false if the connection ended between the grant and this call, when it had no user to receive the event.
bool H1UpstreamStream::usable() {
  if (connection_->certificates_replaced()) return false;
  return !transport().hangup_seen() && (!transport().maybe_readable() || transport().no_data_pending());
}

bool H1UpstreamStream::sent_before_request() {
  if (transport().hangup_seen() || !transport().maybe_readable()) return false;
  const exec::ReadBuffer buffer(host_.loop());
  return transport().read(buffer.span()).io == net::Io::ok;
}

// ---- the request ----

BatchLease& H1UpstreamStream::out() {
  if (!out_) out_ = host_.buffers().lease_batch(write_queue_, transport());
  return out_;
}

void H1UpstreamStream::send_head(const http::RequestHead& head, const http::ForwardRules& rules) {
  attempt_.framing = head.framing;
  attempt_.body_left = head.length;
  http::write_request(out().text(), head, rules);
}

void H1UpstreamStream::send_body(std::string_view bytes) {
  if (bytes.empty()) return;
  attempt_.body_left -= std::min<std::uint64_t>(attempt_.body_left, bytes.size());
  BatchLease& out = this->out();
  if (attempt_.tunnel() || attempt_.framing != http::Framing::chunked) return out.add(bytes);
  http::write_chunk_head(out.text(), bytes.size());
  out.add(bytes);
  out.text().append("\r\n");
}

void H1UpstreamStream::send_end(const http::Fields& trailers) {
  attempt_.end_sent = true;
  if (attempt_.framing == http::Framing::chunked) http::write_last_chunk(out().text(), trailers);
}

bool H1UpstreamStream::flush() {
  if (attempt_.write_failed || out_.empty()) {  // not used after a failure
    out_.discard();
    return false;
  }
  if (out_.send() == WriteQueue::Sent::failed) on_write_failed();
  return !attempt_.write_failed;
}

// Called when the origin stopped reading. Its response, if it was sent before, is still valid.
void H1UpstreamStream::on_write_failed() {
  write_queue_.drop_waiting();
  transport().on_readiness({.readable = true, .writable = false, .hangup = true});
  attempt_.write_failed = true;
  exec::Deferred::unlink();
  host_.loop().defer(*this);  // reads the available input, outside the client's turn
}

void H1UpstreamStream::on_upstream_ready() {
  if (!write_queue_.empty() && transport().maybe_writable() && !attempt_.write_failed) {
    if (write_queue_.flush(transport()) == WriteQueue::Sent::failed) return on_write_failed();
    if (write_queue_.empty() && attempt_.client_end == TunnelEnd::waits) pass_end_on();
    if (user_.on_writable() == AttemptState::over) return;
  }
  static_cast<void>(resume_reading());
}

// ---- the response ----

void H1UpstreamStream::run() {
  if (connection_ == nullptr) return;
  if (attempt_.write_failed && user_.on_writable() == AttemptState::over) return;
  if (resume_reading() == AttemptState::over || !attempt_.write_failed || attempt_.reading != Reading::head) return;
  static_cast<void>(fail_unread());
}

// Returns true if a write failed and no input is left. A write fails once the connection is lost, or once the system
// sends nothing more on it; an origin that waits for the rest of the request would otherwise wait as long as the
// client.
bool H1UpstreamStream::nothing_follows(const net::ReadOutcome& outcome) {
  return attempt_.write_failed && outcome.end == net::ReadEnd::drained && !transport().maybe_readable();
}

AttemptState H1UpstreamStream::fail_unread() {
  return fail({FaultKind::connection_terminated, Side::upstream, "the origin stopped reading"}, true);
}

AttemptState H1UpstreamStream::resume_reading() {
  return attempt_.tunnel() ? read_tunnel() : read_response();
}

// Reads within the byte budget of this turn. If the budget is exhausted, reading continues in another turn.
template <class Wants>
net::ReadOutcome H1UpstreamStream::read(std::size_t& budget, Wants wants) {
  const net::ReadOutcome outcome = net::read_with_budget(
      host_.loop(), transport(), budget, [&]() LOOP_ONLY { return wants() && user_.wants_response(); },
      [this]() LOOP_ONLY { return user_.writable_bytes(); },
      [this](std::string_view bytes) LOOP_ONLY { return on_read(bytes) == AttemptState::alive; });
  return outcome.end == net::ReadEnd::exhausted ? exhausted() : outcome;
}

net::ReadOutcome H1UpstreamStream::exhausted() {
  if (!exec::Deferred::linked()) host_.loop().defer(*this);
  return {net::ReadEnd::exhausted};
}

// Returns how many of the next bytes can go from the origin's socket to the client's without being copied: the rest of
// a long body, and all bytes of a tunnel whose last read found many.
std::size_t H1UpstreamStream::spliceable() const {
  const std::size_t left = attempt_.tunnel() ? attempt_.last_read : reader_.body_left();
  if (left < kSplicedBytes || !transport().splices() || !transport().maybe_readable() || !user_.splices_body())
    return 0;
  return attempt_.tunnel() ? SIZE_MAX : left;
}

net::ReadOutcome H1UpstreamStream::splice(std::size_t& budget) {
  for (std::size_t most = spliceable(); most != 0 && user_.wants_response(); most = spliceable()) {
    if (budget == 0) return exhausted();
    net::IoResult io;
    if (user_.splice_body(transport(), most, io) == AttemptState::over) return {net::ReadEnd::stopped};
    if (io.io == net::Io::would_block || io.io == net::Io::eof) return read_once(budget);
    if (io.io != net::Io::ok) return {net::ReadEnd::closed, io};
    budget -= std::min(budget, io.bytes);
    if (on_spliced(io.bytes) == AttemptState::over) return {net::ReadEnd::stopped};
  }
  return {};
}

AttemptState H1UpstreamStream::on_spliced(std::size_t bytes) {
  if (attempt_.tunnel()) {
    attempt_.last_read = bytes;
    return user_.on_read_complete();
  }
  const bool ends = reader_.skip_body(bytes);
  return ends ? user_.on_response_end() : user_.on_read_complete();
}

// The mark of TCP's urgent data stops a splice as an empty socket does, and if FIN has arrived, too, as the end of the
// stream does. A read passes it.
net::ReadOutcome H1UpstreamStream::read_once(std::size_t& budget) {
  transport().on_readiness({.readable = true});
  bool first = true;
  return read(budget, [&first] { return std::exchange(first, false); });
}

AttemptState H1UpstreamStream::on_read(std::string_view bytes) {
  if (!attempt_.tunnel()) return feed(bytes);
  attempt_.last_read = bytes.size();
  user_.on_body(bytes);
  return user_.on_read_complete();
}

// Reads while wants() is true, and splices what can be spliced. Bytes are read if the system does not splice them after
// all.
template <class Wants>
net::ReadOutcome H1UpstreamStream::read_or_splice(std::size_t& budget, Wants wants) {
  for (;;) {
    net::ReadOutcome outcome = read(budget, [&]() LOOP_ONLY { return wants() && spliceable() == 0; });
    if (outcome.end == net::ReadEnd::drained && wants() && spliceable() != 0) outcome = splice(budget);
    if (outcome.end != net::ReadEnd::drained || !wants() || !transport().maybe_readable() || !user_.wants_response()) {
      return outcome;
    }
  }
}

AttemptState H1UpstreamStream::read_response() {
  std::size_t budget = kTurnBytes;
  const net::ReadOutcome outcome = read_or_splice(budget, [this] { return !attempt_.tunnel(); });
  if (outcome.end == net::ReadEnd::stopped) return AttemptState::over;
  if (outcome.end == net::ReadEnd::closed) return on_end(outcome.io);
  if (nothing_follows(outcome) && attempt_.reading == Reading::body) return fail_unread();
  return attempt_.tunnel() ? read_tunnel() : AttemptState::alive;
}

// With TLS the request must have been written at once: then the part of the bytes on the wire that exceeds the request
// is too short for a record that the origin could read.
bool H1UpstreamStream::precedes_request() const {
  const std::uint64_t sent = write_queue_.bytes_written();
  const bool at_once = attempt_.framing == http::Framing::none || connection_->security().version.empty();
  return (sent == 0 || at_once) && transport().input_precedes(sent);
}

AttemptState H1UpstreamStream::feed(std::string_view bytes) {
  std::size_t used = 0;
  for (;;) {
    const Result<http::ParseResult> fed =
        reader_.feed(bytes.substr(used), response_, user_, &host_.buffers().layouts());
    if (!fed) return fail_malformed(fed.fault());
    used += fed->consumed;
    switch (fed->progress) {
      case http::Progress::need_more:
        return user_.on_read_complete();
      case http::Progress::head:
        if (response_.status >= 200) attempt_.reading = Reading::body;
        if (user_.on_response_head() == AttemptState::over) return AttemptState::over;
        break;
      case http::Progress::upgraded:
        attempt_.reading = Reading::tunnel;
        return user_.on_switched(bytes.substr(used));
      case http::Progress::message:
        attempt_.leftover = used < bytes.size();
        return user_.on_response_end();
    }
  }
}

AttemptState H1UpstreamStream::on_end(const net::IoResult& io) {
  if (io.io == net::Io::eof) {
    Result<http::Progress> end = reader_.finish();
    if (end) return user_.on_response_end();
    return fail(end.take_fault(), true);
  }
  const FaultKind kind = reader_.any_byte() ? FaultKind::response_incomplete : FaultKind::connection_terminated;
  return fail({kind, Side::upstream, std::string(io.detail)}, true);
}

// Bytes that precede the request, such as the late rest of another response, end a connection that had served like a
// FIN. On one that had not, they are the greeting of another protocol, with which the next one would begin, too.
AttemptState H1UpstreamStream::fail_malformed(Fault fault) {
  const bool served = connection_->returned_at() != Instant{};
  if (!served || attempt_.reading != Reading::head || !precedes_request()) return fail(std::move(fault), false);
  StreamFailure failure;
  failure.fault = std::move(fault);
  failure.fault.detail.append("; its bytes precede the request");
  failure.connection_ended = true;
  return user_.on_failure(std::move(failure));
}

AttemptState H1UpstreamStream::fail(Fault fault, bool connection_ended) {
  StreamFailure failure;
  failure.fault = std::move(fault);
  failure.connection_ended = connection_ended;
  failure.any_byte_sent = write_queue_.bytes_written() > 0;
  failure.any_byte_received = reader_.any_byte();
  return user_.on_failure(std::move(failure));
}

// ---- the end ----

void H1UpstreamStream::leave() {
  connection_->events = nullptr;
  connection_ = nullptr;
  exec::Deferred::unlink();
  out_.discard();
}

// Returns the connection to the pool only if it is clean: both bodies are complete, no bytes follow them, and both
// sides keep it alive.
std::optional<pool::CloseCause> H1UpstreamStream::finish(pool::Lease&) {
  // A client of HTTP/2 may end its stream after the last byte of its Content-Length, when the origin has responded.
  const bool length_sent = attempt_.framing == http::Framing::length && attempt_.body_left == 0;
  const bool whole =
      (attempt_.end_sent || length_sent) && write_queue_.empty() && out_.empty() && !attempt_.write_failed;
  const bool ends = attempt_.leftover || !response_.keep_alive || response_.framing == http::Framing::until_close;
  leave();
  write_queue_.clear();
  if (!whole) return pool::CloseCause::error;
  return ends ? std::optional(pool::CloseCause::peer_closed) : std::nullopt;
}

std::optional<pool::CloseCause> H1UpstreamStream::abandon(pool::CloseCause cause, pool::Lease&) {
  // The peer of a tunnel must not take its loss for the end of the client's bytes (RFC 9113 §8.5), also if it has ended
  // its own ones.
  const bool in_order =
      attempt_.reading == Reading::ended && attempt_.client_end != TunnelEnd::open && write_queue_.empty();
  if (attempt_.tunnel() && !in_order) transport().reset_on_close();
  leave();
  write_queue_.clear();
  return cause;
}

// ---- tunnels ----

void H1UpstreamStream::open_tunnel() {
  attempt_.reading = Reading::tunnel;
  if (transport().maybe_readable()) host_.loop().defer(*this);  // the origin may have sent first
}

void H1UpstreamStream::shut_write_when_sent() {
  attempt_.client_end = TunnelEnd::waits;
  if (write_queue_.empty()) pass_end_on();
}

void H1UpstreamStream::pass_end_on() {
  attempt_.client_end = TunnelEnd::passed_on;
  transport().shut_write();
}

AttemptState H1UpstreamStream::read_tunnel() {
  std::size_t budget = kTurnBytes;
  const net::ReadOutcome outcome = read_or_splice(budget, [this] { return attempt_.reading != Reading::ended; });
  if (outcome.end == net::ReadEnd::stopped) return AttemptState::over;
  if (nothing_follows(outcome)) return fail_unread();
  if (outcome.end != net::ReadEnd::closed) return AttemptState::alive;
  if (outcome.io.io == net::Io::failed)
    return fail({FaultKind::connection_terminated, Side::upstream, std::string(outcome.io.detail)}, true);
  attempt_.reading = Reading::ended;
  return user_.on_tunnel_eof();
}

}  // namespace carpool::proxy
