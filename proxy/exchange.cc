#include "proxy/exchange.h"

#include <algorithm>
#include <utility>

#include "proxy/local_answer.h"
#include "proxy/origins.h"
#include "proxy/priority.h"
#include "proxy/tunnel.h"
#include "proxy/upstream/h2_connection.h"
#include "proxy/worker.h"

namespace carpool::proxy {

Exchange::Exchange(Worker& worker)
    : worker_(worker),
      h1_(worker, *this, response_),
      h2_(worker, *this, response_),
      timer_(exec::Timer::bind<&Exchange::on_deadline>(worker.loop(), *this)) {}

Exchange::~Exchange() = default;

bool Exchange::bodyless() const {
  return request_.framing == http::Framing::none || (request_.framing == http::Framing::length && request_.length == 0);
}

// ---- borrowing: from the head to a connection ----

void Exchange::begin(Requester& requester) {
  requester_ = &requester;
  const Instant now = worker_.loop().now();
  facts_ = {};
  facts_.began = now;
  need_h1_ = misdirected_ = false;
  head_done_ = close_client_ = upstream_eof_ = tunnel_client_eof_ = private_ = false;
  idempotent_retries_ = proven_replays_ = 0;
  max_forwards_ = -1;
  total_deadline_ = wait_deadline_ = kNever;

  const Result<http::Target> target = http::parse_target(request_);
  if (!target) return reply(target.fault());
  connect_ = request_.method == "CONNECT";
  if (!may_forward(*target)) return;
  if (!facts_.origin->requests.take(now)) {
    worker_.recorder().count_limited(*facts_.origin, metrics::Limit::requests);
    return reply({FaultKind::rate_limited, Side::self, "more requests a second than request.rate of this origin"});
  }
  upgrade_ = request_.upgrade && facts_.origin->speaks.h1 && !http::iequals(request_.fields.get("upgrade"), "h2c");
  upload_.begin(request_.framing, facts_.origin->request.replay_buffer);
  total_deadline_ = deadline_after(now, facts_.origin->request.timeout);
  facts_.origin->retries.earn();
  enter(ExchangeEvent::begin);
  borrow(false);
}

// Everything that is decided by the head alone; false: it was answered.
bool Exchange::may_forward(const http::Target& target) {
  if (requester_->unwelcome() && worker_.sheds(Shedding::new_clients)) {
    worker_.recorder().count_shed(metrics::Shed::new_clients);
    reply({FaultKind::overloaded, Side::self, "memory or file descriptors run short"});
    return false;
  }
  if (http::via_names(request_.fields, worker_.pseudonym())) {
    reply({FaultKind::loop_detected, Side::client, "the request has passed this proxy before"});
    return false;
  }
  if (connect_) {
    if (const std::optional<Fault> fault = tunnel_refusal(requester_->listener(), request_, target)) {
      reply(*fault);
      return false;
    }
  }
  const std::uint64_t max_body = requester_->listen().max_body;
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
  Result<const Route*> route = worker_.router().route(requester_->listen(), target);
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
  const bool keep = request_.keep_alive && bodyless() && worker_.keeps_clients();
  requester_->send_local_answer(keep);
  facts_.status = 200;
  const bool sent = requester_->flush();
  enter(ExchangeEvent::answered);
  rest(!sent ? ClientNext::gone : keep ? ClientNext::keep : ClientNext::close);
}

namespace {
// What a request that must not be repeated may find on a connection: the learned horizon, or a guess before that.
Duration most_rest(const OriginContext& origin) {
  constexpr Duration kGuess = std::chrono::seconds(5);
  if (const Duration learned = origin.destination->horizon(); learned != Duration::max()) return learned;
  const Duration half = origin.pool.idle_timeout / 2;  // zero: connections rest for ever
  return half > Duration::zero() ? std::min(half, kGuess) : kGuess;
}
}  // namespace

void Exchange::borrow(bool fresh) {
  const Instant now = worker_.loop().now();
  const OriginContext& origin = *facts_.origin;
  if (!fresh) {
    if (pool::Lease own = requester_->take_private(origin)) {
      private_ = true;
      return take(std::move(own));
    }
  }
  pool::Want want;
  want.fresh = fresh;
  want.tunnel = upgrade_ || connect_;
  if (upgrade_ || connect_ || need_h1_) want.kind = pool::Kinds::h1_only;
  if (origin.pool.reuse == config::Reuse::safe && !repeatable(request_.method, origin.request.retry_idempotent)) {
    want.max_idle = most_rest(origin);
  }
  if (!origin.pool.classes.empty()) {
    want.priority_class =
        class_of(origin.pool.classes, requester_->listen().class_name, request_.fields.get("priority"));
  }
  auto answer = origin.destination->borrow(*this, want, now);
  if (auto* lease = std::get_if<pool::Lease>(&answer)) return take(std::move(*lease));
  if (auto* fault = std::get_if<Fault>(&answer)) {
    if (origin.destination->reclaimed()) return borrow_from_successor(fresh);
    return reply(*fault);
  }
  facts_.asked_pool = true;
  waiting_since_ = now;
  wait_deadline_ = now + origin.pool.wait_timeout;
  touch();
}

// The pool that its route leads to was not used for so long that it has just ended: there is a new one, or will be.
void Exchange::borrow_from_successor(bool fresh) {
  worker_.router().forget();
  const Result<http::Target> target = http::parse_target(request_);
  Result<const Route*> route =
      target ? worker_.router().route(requester_->listen(), *target) : Result<const Route*>(target.fault());
  if (!route) return reply(route.fault());
  facts_.origin = (*route)->origin;
  borrow(fresh);
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
  if (requester_ != nullptr && lease_) requester_->resume();
}

std::uint64_t Exchange::client() const {
  return requester_->identity();
}

void Exchange::on_refused(Fault fault) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  facts_.waited += worker_.loop().now() - waiting_since_;
  reply(fault);
}

// ---- forwarding: the request travels ----

void Exchange::take(pool::Lease lease) {
  close_leak();
  lease_ = std::move(lease);
  wait_deadline_ = asked_at_ = kNever;
  facts_.leased = worker_.loop().now();
  facts_.asked_pool = true;
  auto& connection = static_cast<Connection&>(*lease_);
  facts_.connection = connection.id();
  facts_.uses_before = lease_.uses_before();
  if (!lease_.reused()) facts_.opened = lease_.opened();
  carrier_ = &carry();
  enter(ExchangeEvent::lease);
  response_.clear();
  if (connect_) return open_tunnel();  // what it says, or that it left, is for the client to see
  if (!carrier_->usable()) {
    Breakage ended;
    ended.fault.detail = "it ended before it was used";
    ended.connection_ended = true;
    ended.any_byte_sent = false;
    return on_broken(std::move(ended));
  }
  http::ForwardRules rules;
  rules.via_pseudonym = worker_.pseudonym();
  rules.host = host_;
  rules.path = path_;
  rules.upgrade = upgrade_;
  rules.max_forwards = max_forwards_;
  carrier_->send_head(request_, rules);
  upload_.start(*carrier_);
  touch();
}

// Who speaks for this exchange on the connection that it has.
Carrier& Exchange::carry() {
  auto& connection = static_cast<Connection&>(*lease_);
  if (!lease_.shared()) {
    h1_.begin(connection, request_.method, upgrade_);
    return h1_;
  }
  auto& session = static_cast<H2Connection&>(connection);
  if (lease_.home() != worker_.loop().id()) {
    RemoteStream& remote = worker_.take_remote(lease_.home());
    remote.begin(session, *this, response_);
    return remote;
  }
  h2_.begin(session);
  return h2_;
}

void Exchange::on_request_body(std::string_view bytes) {
  if (state_ == ExchangeState::resting) return;  // already answered; the client throws the rest away
  facts_.bytes_in += bytes.size();
  const std::uint64_t max_body = requester_->listen().max_body;
  if (max_body != 0 && facts_.bytes_in > max_body) {
    over_limit_ = true;
    return;
  }
  upload_.add(bytes, carrier_);
}

void Exchange::on_request_trailer(std::string_view name, std::string_view value) {
  if (state_ != ExchangeState::resting && http::trailer_allowed(name)) upload_.add_trailer(name, value);
}

void Exchange::on_request_end() {
  if (state_ == ExchangeState::resting) return;
  upload_.end(carrier_);
}

void Exchange::pump() {
  if (over_limit_) {
    over_limit_ = false;
    return on_request_broken({FaultKind::body_too_large, Side::client, "the body is over max_body"});
  }
  if (!lease_) return touch();
  if (carrier_->flush()) touch();
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
      return carrier_->backlog() < kHighMark;
  }
  return false;
}

void Exchange::on_client_writable() {
  if (lease_) carrier_->read_on();
}

// What waited was sent, or never will be.
bool Exchange::on_room() {
  if (state_ == ExchangeState::tunnel && tunnel_over()) {
    end_tunnel();
    return false;
  }
  touch();
  if (carrier_->backlog() < kHighMark) requester_->resume();
  return true;
}

}  // namespace carpool::proxy
