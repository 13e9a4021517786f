#include "proxy/exchange.h"

#include <algorithm>
#include <utility>

#include "proxy/downstream/client.h"
#include "proxy/local_answer.h"
#include "proxy/origins.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"

namespace carpool::proxy {

Exchange::Exchange(Worker& worker)
    : worker_(worker),
      reader_(worker.response_limits()),
      timer_(exec::Timer::bind<&Exchange::on_deadline>(worker.loop(), *this)) {}

Exchange::~Exchange() = default;

bool Exchange::bodyless() const {
  return request_.framing == http::Framing::none || (request_.framing == http::Framing::length && request_.length == 0);
}

// ---- borrowing: from the head to a connection ----

void Exchange::begin(Client& client) {
  client_ = &client;
  const Instant now = worker_.loop().now();
  facts_ = {};
  facts_.began = now;
  head_done_ = close_client_ = leftover_ = upstream_eof_ = tunnel_client_eof_ = private_ = false;
  idempotent_retries_ = proven_replays_ = 0;
  max_forwards_ = -1;
  total_deadline_ = wait_deadline_ = kNever;

  const Result<http::Target> target = http::parse_target(request_);
  if (!target) return reply(target.fault());
  connect_ = request_.method == "CONNECT";
  if (!may_forward(*target)) return;
  upgrade_ = request_.upgrade && !http::iequals(request_.fields.get("upgrade"), "h2c");
  upload_.begin(request_.framing, facts_.origin->request.replay_buffer);
  total_deadline_ = deadline_after(now, facts_.origin->request.timeout);
  enter(ExchangeEvent::begin);
  borrow(false);
}

// Everything that is decided by the head alone; false: it was answered.
bool Exchange::may_forward(const http::Target& target) {
  if (http::via_names(request_.fields, worker_.pseudonym())) {
    reply({FaultKind::loop_detected, Side::client, "the request has passed this proxy before"});
    return false;
  }
  if (connect_) {
    if (const std::optional<Fault> fault = tunnel_refusal(client_->listener(), request_, target)) {
      reply(*fault);
      return false;
    }
  }
  const std::uint64_t max_body = client_->listen().max_body;
  if (max_body != 0 && request_.framing == http::Framing::length && request_.length > max_body) {
    reply({FaultKind::body_too_large, Side::client, "Content-Length is over max_body"});
    return false;
  }
  if (const std::optional<std::uint32_t> forwards = max_forwards(request_)) {
    if (*forwards == 0) {
      answer_here();
      return false;
    }
    max_forwards_ = static_cast<int>(*forwards - 1);
  }
  Result<const Route*> route = worker_.router().route(client_->listen(), target);
  if (!route) {
    reply(route.fault());
    return false;
  }
  facts_.origin = (*route)->origin;
  host_.assign((*route)->host);
  path_ = target.path;
  return true;
}

// Max-Forwards ran out: we are the final recipient (RFC 9110 §7.6.2).
void Exchange::answer_here() {
  Gather& out = worker_.to_client();
  const bool keep = request_.keep_alive && bodyless() && !worker_.draining();
  write_local_answer(out.text(), request_, worker_.pseudonym(), !keep);
  facts_.status = 200;
  const bool sent = client_->send(out);
  enter(ExchangeEvent::answered);
  rest(!sent ? ClientNext::gone : keep ? ClientNext::keep : ClientNext::close);
}

void Exchange::borrow(bool fresh) {
  const Instant now = worker_.loop().now();
  const OriginContext& origin = *facts_.origin;
  if (!fresh) {
    if (pool::Lease own = client_->take_private(origin)) {
      private_ = true;
      return take(std::move(own));
    }
  }
  pool::Want want;
  want.fresh = fresh;
  want.tunnel = upgrade_ || connect_;
  if (origin.pool.reuse == config::Reuse::safe && !repeatable(request_.method, origin.request.retry_idempotent)) {
    constexpr Duration kMostRest = std::chrono::seconds(5);
    const Duration half = origin.pool.idle_timeout / 2;  // zero: connections rest for ever
    want.max_idle = half > Duration::zero() ? std::min(half, kMostRest) : kMostRest;
  }
  auto answer = origin.destination->borrow(*this, want, now);
  if (auto* lease = std::get_if<pool::Lease>(&answer)) return take(std::move(*lease));
  if (auto* fault = std::get_if<Fault>(&answer)) return reply(*fault);
  facts_.asked_pool = true;
  waiting_since_ = now;
  wait_deadline_ = now + origin.pool.wait_timeout;
  touch();
}

void Exchange::on_lease(pool::Lease lease) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  facts_.waited += lease.waited();
  take(std::move(lease));
  pump();
  resume_client();
}

// What it held back while there was no connection, or no room, may come now: no event of its socket will say so.
void Exchange::resume_client() {
  if (client_ != nullptr && lease_) client_->resume();
}

void Exchange::on_refused(Fault fault) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  facts_.waited += worker_.loop().now() - waiting_since_;
  reply(fault);
}

// ---- forwarding: the request travels ----

void Exchange::take(pool::Lease lease) {
  lease_ = std::move(lease);
  upstream().user = this;
  wait_deadline_ = kNever;
  facts_.leased = worker_.loop().now();
  facts_.asked_pool = true;
  facts_.connection = upstream().id();
  facts_.uses_before = lease_.uses_before();
  if (!lease_.reused()) facts_.opened = lease_.opened();
  enter(ExchangeEvent::lease);
  response_.clear();
  reader_.expect(request_.method, upgrade_);
  if (dead_before_use()) {
    return on_upstream_broken({FaultKind::connection_terminated, Side::upstream, "it ended before it was used"}, true);
  }

  if (connect_) return open_tunnel();
  Gather& out = worker_.to_upstream();
  out.clear();
  http::ForwardRules rules;
  rules.via_pseudonym = worker_.pseudonym();
  rules.host = host_;
  rules.path = path_;
  rules.upgrade = upgrade_;
  rules.max_forwards = max_forwards_;
  http::write_request(out.text(), request_, rules);
  upload_.start(out);
  touch();
}

// Its end may have been noticed between the grant and now, when nobody was there to act on it.
bool Exchange::dead_before_use() {
  net::Transport& transport = upstream().transport();
  if (connect_) return false;  // what it says, or that it left, is for the client to see
  return transport.hangup_seen() || (transport.maybe_readable() && !transport.quiet());
}

void Exchange::on_request_body(std::string_view bytes) {
  if (state_ == ExchangeState::resting) return;  // already answered; the client throws the rest away
  facts_.bytes_in += bytes.size();
  const std::uint64_t max_body = client_->listen().max_body;
  if (max_body != 0 && facts_.bytes_in > max_body) {
    over_limit_ = true;
    return;
  }
  upload_.add(bytes, lease_ ? &worker_.to_upstream() : nullptr);
}

void Exchange::on_request_trailer(std::string_view name, std::string_view value) {
  if (state_ != ExchangeState::resting && http::trailer_allowed(name)) upload_.add_trailer(name, value);
}

void Exchange::on_request_end() {
  if (state_ == ExchangeState::resting) return;
  upload_.end(lease_ ? &worker_.to_upstream() : nullptr);
}

void Exchange::pump() {
  if (over_limit_) {
    over_limit_ = false;
    return on_request_broken({FaultKind::body_too_large, Side::client, "the body is over max_body"});
  }
  if (!lease_) return touch();
  Gather& out = worker_.to_upstream();
  if (write_failed_) out.clear();  // nobody reads it any more
  if (out.empty()) return;
  if (upload_.outbox.send(upstream().transport(), out, worker_.pieces()) == Outbox::Sent::failed)
    return on_write_failed();
  touch();
}

bool Exchange::wants_input() const {
  switch (state_) {
    case ExchangeState::resting:
      return false;
    case ExchangeState::borrowing:
      return !upload_.full();
    case ExchangeState::forwarding:
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      return upload_.outbox.size() < kHighMark;
  }
  return false;
}

// The origin will not read on. What it said before it left still counts: an early answer is an answer.
void Exchange::on_write_failed() {
  upload_.outbox.drop_waiting();
  upstream().transport().note({.readable = true, .writable = false, .hangup = true});
  write_failed_ = true;
  exec::Deferred::unlink();
  worker_.loop().defer(*this);  // read what is there, outside of the client's turn
}

void Exchange::on_upstream_ready() {
  if (!upload_.outbox.empty() && upstream().transport().maybe_writable() && !write_failed_) {
    if (upload_.outbox.flush(upstream().transport()) == Outbox::Sent::failed) return on_write_failed();
    touch();
    if (upload_.outbox.size() < kHighMark) client_->resume();
  }
  read_on();
}

void Exchange::on_client_writable() {
  if (lease_) read_on();
}

void Exchange::run() {
  if (state_ == ExchangeState::resting || !lease_) return;
  read_on();
  if (write_failed_ && lease_ && !head_done_) {
    on_upstream_broken({FaultKind::connection_terminated, Side::upstream, "the origin stopped reading"}, true);
  }
}

void Exchange::read_on() {
  if (state_ == ExchangeState::tunnel) return relay_tunnel();
  read_response();
}

}  // namespace carpool::proxy
