// H1Client, input: parses bytes into requests, passes them to the exchange as they arrive, and starts the next request
// when an exchange ends.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/h2/types.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

namespace {
// ReadBody: passes a body to the client's exchange, which may end meanwhile.
class ReadBody final : public http::BodySink {
 public:
  explicit ReadBody(Exchange* const& exchange) : exchange_(exchange) {}
  void on_body(std::string_view bytes) override {
    exec::assume_on_loop();
    if (exchange_ != nullptr) exchange_->on_request_body(bytes);
  }
  void on_trailer(std::string_view name, std::string_view value, bool sensitive) override {
    exec::assume_on_loop();
    if (exchange_ != nullptr) exchange_->on_request_trailer(name, value, sensitive);
  }

 private:
  Exchange* const& exchange_;
};
}  // namespace

// Parses the bytes that were read and keeps those that cannot be processed yet. Returns false if no further step is
// possible now.
bool H1Client::parse(std::string_view bytes) {
  if (preface_ != kNoPreface) return match_preface(bytes);
  std::size_t used = 0;
  while (used < bytes.size() && left_ != 0 && state_ == State::open && may_read()) {
    if (exchange_ != nullptr && exchange_->tunnelled()) {
      exchange_->on_tunnel_bytes(bytes.substr(used));
      used = bytes.size();
      break;
    }
    used += feed(bytes.substr(used));
  }
  if (state_ != State::open) return !over();
  if (used < bytes.size()) pending_ = std::make_unique<std::string>(bytes.substr(used));
  // The head and all of the body that arrived with it are sent in one write.
  if (exchange_runs()) exchange_->pump();
  return !over() && (used == bytes.size() || may_read());
}

// Checks whether the bytes are the HTTP/2 preface (RFC 9113 §3.3) or the beginning of an HTTP/1.1 request.
bool H1Client::match_preface(std::string_view bytes) {
  note_use();
  const std::string_view expected = http::kH2Preface.substr(preface_);
  const auto [at, end] = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
  const auto same = static_cast<std::size_t>(at - bytes.begin());
  if (end == expected.end()) {
    upgrade_to_h2(bytes.substr(same));
    return false;
  }
  if (same == bytes.size()) {
    preface_ = static_cast<std::uint8_t>(preface_ + same);
    return true;
  }
  const std::size_t before = std::exchange(preface_, kNoPreface);
  if (before == 0) return parse(bytes);
  return parse(std::string(http::kH2Preface.substr(0, before)).append(bytes));
}

// Ends this client, whose socket another one takes over.
void H1Client::leave_socket() {
  enter(State::handed_over);
  timer_.disarm();
  exec::Deferred::unlink();
  context_.loop.unwatch(transport_->fd(), key_);
}

void H1Client::upgrade_to_h2(std::string_view bytes) {
  leave_socket();
  clients_.upgrade_to_h2(listener_, take_point(), std::move(transport_), std::string(peer_.known()), bytes,
                         drain_ != Drain::none);
}

std::size_t H1Client::feed(std::string_view bytes) {
  if (exchange_ == nullptr) {
    exchange_ = &context_.exchanges.acquire();
    enter(RequestState::head);
  }
  ReadBody body(exchange_);
  std::size_t used = 0;
  for (;;) {
    const Result<http::ParseResult> fed =
        reader_.feed(bytes.substr(used), exchange_->request(), body, &context_.buffers.layouts());
    if (!fed) {
      refuse(fed.fault());
      return used;
    }
    used += fed->consumed;
    if (!on_parse_result(*fed, bytes.size() - used)) return used + std::exchange(skipped_, 0);
  }
}

// Gives the exchange of an incomplete head back.
void H1Client::drop_exchange() {
  enter(RequestState::unread);
  context_.exchanges.give_back(*std::exchange(exchange_, nullptr));
}

// Handles the parser's result. Returns true to continue parsing. `more`: number of bytes read after the parsed part.
bool H1Client::on_parse_result(const http::ParseResult& fed, std::size_t more) {
  switch (fed.progress) {
    case http::Progress::need_more:
    case http::Progress::upgraded:
      return false;
    case http::Progress::head:
      return !ends_connect_here(more) && begin_request(more);
    case http::Progress::message:
      reader_.reset();
      enter(RequestState::complete);
      exchange_->on_request_end();
      return false;
  }
  return false;
}

// `more`: number of bytes read after the head.
bool H1Client::begin_request(std::size_t more) {
  CARPOOL_ASSERT(!connect_answered_ || response_end_ == ResponseEnd::persists);  // the first and only one: see start()
  http::RequestHead& request = exchange_->request();
  if (request.version == http::Version::http10 && !is_gateway()) request.keep_alive = false;
  const std::uint64_t body = request.framing == http::Framing::length ? request.length : 0;
  const bool at_hand = body != 0 && body <= more;
  enter(at_hand ? RequestState::body_at_hand : RequestState::body);
  head_timed_ = false;  // another head may begin in this turn
  if (left_ != 0) --left_;
  informed_ = false;
  response_end_ = ResponseEnd::persists;
  exchange_->begin(*this);
  if (exchange_ == nullptr) {  // already answered; the connection continues only if no body follows
    reader_.reset();
    if (at_hand) skipped_ = static_cast<std::uint32_t>(body);  // at most `more`
    return false;
  }
  if (at_hand) enter(RequestState::body);
  if (!exchange_->tunnelled()) return true;
  enter(RequestState::complete);  // the CONNECT was dispatched already: these bytes belong to the tunnel
  return false;
}

// Returns true if a connection of an HTTP/1.0 client may persist. The client may be a proxy that forwards Connection
// without understanding it, so a proxy keeps no connection with it (RFC 9112 §9.3). On a listener of one origin, and
// inside a CONNECT, carpool is not a proxy but that origin's gateway.
bool H1Client::is_gateway() const {
  return !listen_.origin.empty() || interception() != nullptr;
}

// Replies with an error, because the bytes are not HTTP or exceed a limit.
void H1Client::refuse(const Fault& fault) {
  if (exchange_runs()) return exchange_->on_request_broken(fault);
  const bool head = exchange_ != nullptr && exchange_->request().has_method("HEAD");
  const http::ReplyRules rules{
      .via_pseudonym = context_.pseudonym, .close = true, .head_request = head, .date = context_.wall_clock()};
  std::string unsent;  // a client whose CONNECT is answered already uses the tunnelled protocol
  const std::uint16_t status = http::write_error_reply(connect_answered_ ? unsent : out().text(), fault, rules);
  context_.stats.record_refused(peer(), fault, status);
  // Null as long as the bytes could be the beginning of the HTTP/2 preface.
  if (exchange_ != nullptr) drop_exchange();
  if (!flush()) return lost();
  progress_at_ = context_.loop.now();
  close_when_sent(connect_answered_);
}

void H1Client::on_eof() {
  // Within a head the client waits for no response, except for the rest of the one before.
  if (request_state_ == RequestState::head) drop_exchange();
  if (exchange_ == nullptr) {
    note_unused();
    return write_queue_.empty() ? close() : enter(State::closing);
  }
  if (exchange_->tunnelled()) {
    if (fin_ == Fin::forwarded) return;
    fin_ = Fin::forwarded;
    exchange_->on_tunnel_input_end();
    return;
  }
  if (request_state_ == RequestState::complete || waits_for_early_response()) return;
  exchange_->on_request_broken(
      {FaultKind::malformed_request, Side::client, "the client closed the connection inside its request"});
}

void H1Client::on_exchange_end(AfterExchange next) {
  const bool whole = request_state_ == RequestState::complete;
  enter(whole ? RequestState::none : RequestState::unread);
  context_.exchanges.give_back(*std::exchange(exchange_, nullptr));
  half_closed_until_ = kNever;
  progress_at_ = context_.loop.now();
  if (private_state_ == PrivateState::lent) private_state_ = PrivateState::broken;  // the exchange did not return it
  switch (end_batch(next)) {
    case AfterExchange::keep:
      if (!whole) {
        reader_.reset();
        enter(RequestState::none);
      }
      if (response_end_ != ResponseEnd::persists || private_state_ == PrivateState::broken) {
        close_when_sent(response_end_ == ResponseEnd::truncated);
      }
      break;
    case AfterExchange::close:
      close_when_sent(response_end_ == ResponseEnd::truncated);
      break;
    case AfterExchange::cut:
    case AfterExchange::malformed_end:
      close_when_sent(response_end_ == ResponseEnd::delimited || next == AfterExchange::malformed_end);
      break;
    case AfterExchange::gone:
      if (!write_queue_.empty()) transport_->reset_on_close();
      return lost();
  }
  if (advancing_) return;  // advance() arms the timer
  // Usually no further turn is needed: no input is pending, and the socket was read to EAGAIN.
  const bool input = fin_ != Fin::none || pending_ != nullptr || transport_->maybe_readable();
  state_ != State::open || input ? run_soon() : arm_timer();
}

}  // namespace carpool::proxy
