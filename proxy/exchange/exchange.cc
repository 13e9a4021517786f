#include "proxy/exchange/exchange.h"

#include <algorithm>
#include <utility>

#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/max_forwards_reply.h"
#include "proxy/exchange/priority_class.h"
#include "proxy/exchange/router.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

Exchange::Exchange(const ExchangeContext& context)
    : context_(context),
      h1_(context.remote_streams, *this, response_),
      h2_(context.remote_streams, *this, response_),
      timer_(exec::Timer::bind<&Exchange::on_deadline>(context.loop, *this)) {}

Exchange::~Exchange() = default;

bool Exchange::bodyless() const {
  return request_.framing == http::Framing::none || (request_.framing == http::Framing::length && request_.length == 0);
}

// ---- borrowing: from the head to a connection ----

void Exchange::begin(ClientStream& client_stream) {
  client_stream_ = &client_stream;
  const Instant now = context_.loop.now();
  facts_ = {};
  facts_.began = now;
  asked_.emplace(std::move(host_buffer_));
  if (request_.method == "CONNECT") asked_->tunnel.request(TunnelRequest::connect);

  const Result<http::Target> target = http::parse_target(request_);
  if (!target) return reply(target.fault());
  if (!may_forward(*target)) return;
  if (!facts_.origin->requests.take(now)) {
    context_.stats.count_limited(facts_.origin->slot, metrics::Limit::requests);
    return reply({FaultKind::rate_limited, Side::self, "the origin's request.rate is exceeded"});
  }
  if (request_.upgrade && forwards_upgrade()) asked_->tunnel.request(TunnelRequest::upgrade);
  request_body_.begin(request_, facts_.origin->request.replay_buffer, client_stream_->listen().max_body);
  asked_->deadlines.begin(now, facts_.origin->request);
  if (request_.framing == http::Framing::length && !request_.expect_continue) {
    asked_->deadlines.measure_body(now, client_stream_->listen());
  }
  facts_.origin->retries.deposit();
  if (waits_for_body()) {
    if (!request_body_.fits()) asked_->deadlines.look_at_body(now + RequestBody::kStreams);
    enter(ExchangeEvent::collect);
    return touch();
  }
  enter(ExchangeEvent::begin);
  static_cast<void>(borrow(false));  // the client pumps what came with the head
}

bool Exchange::forwards_upgrade() const {
  return !asked_->tunnel.connect() && facts_.origin->speaks.h1 && !http::iequals(request_.fields.get("upgrade"), "h2c");
}

// Decides everything that depends on the head alone. Returns false if the request was answered.
bool Exchange::may_forward(const http::Target& target) {
  if (client_stream_->accepted_while_shedding() && context_.overload.sheds(ShedLevel::new_clients)) {
    context_.stats.count_shed(metrics::Shed::new_clients);
    reply({FaultKind::overloaded, Side::self, "memory or file descriptors run short"});
    return false;
  }
  if (http::via_contains(request_.fields, context_.pseudonym)) {
    reply({FaultKind::loop_detected, Side::client, "the request has passed this proxy before"});
    return false;
  }
  if (asked_->tunnel.connect()) {
    if (const std::optional<Fault> fault = check_connect(client_stream_->listener(), request_, target)) {
      reply(*fault);
      return false;
    }
  }
  if (request_.upgrade && request_.fields.count("sec-websocket-key") > 1) {  // RFC 6455 §11.3.1, RFC 8441 §5
    reply({FaultKind::malformed_request, Side::client, "Sec-WebSocket-Key more than once, or in HTTP/2"});
    return false;
  }
  const std::uint64_t max_body = client_stream_->listen().max_body;
  if (max_body != 0 && request_.framing == http::Framing::length && request_.length > max_body) {
    reply({FaultKind::body_too_large, Side::client, "Content-Length exceeds max_body"});
    return false;
  }
  if (const std::optional<std::uint32_t> forwards = max_forwards(request_)) {
    if (*forwards == 0) {
      answer_here();
      return false;
    }
    asked_->max_forwards = static_cast<int>(*forwards - 1);
  }
  Result<const Route*> route =
      context_.router.route(client_stream_->listen(), client_stream_->listener().address(), target);
  if (!route) {
    reply(route.fault());
    return false;
  }
  facts_.origin = (*route)->origin;
  asked_->host.assign((*route)->host);
  asked_->path = target.path;
  return true;
}

// Max-Forwards ran out: we are the final recipient (RFC 9110 §7.6.2).
void Exchange::answer_here() {
  const bool keep = request_.keep_alive && bodyless() && context_.keeps_clients();
  client_stream_->send_local_answer(keep);
  facts_.status = 200;
  const bool sent = client_stream_->flush();
  enter(ExchangeEvent::answered);
  finish(!sent ? AfterExchange::gone : keep ? AfterExchange::keep : AfterExchange::close);
}

namespace {
// The longest idle time of a connection that may carry a request which must not be repeated: what the origin's observed
// closes allow, and no more than a guess until a limit is known.
Duration most_rest(const OriginRuntime& origin) {
  constexpr Duration kGuess = std::chrono::seconds(5);
  const Duration trusted = origin.destination->trust();
  if (origin.destination->effective_limit() != Duration::max()) return trusted;
  const Duration half = origin.pool.idle_timeout / 2;  // zero: idle connections have no limit
  return std::min(trusted, half > Duration::zero() ? std::min(half, kGuess) : kGuess);
}
}  // namespace

// ---- collecting: the body is read before a connection is borrowed ----

// A slow body must not hold a connection. Streamed bodies (chunked, HTTP/2, an upgrade) are exempt because their client
// may wait for a response before it goes on; so does a client that expects 100 (Continue).
bool Exchange::waits_for_body() const {
  return request_.framing == http::Framing::length && request_.length != 0 &&
         request_.version != http::Version::http2 && !request_.expect_continue && !asked_->tunnel.upgrade() &&
         !request_body_.full();
}

// Returns `alive` if the exchange has a connection.
AttemptState Exchange::ask_when_body_may_travel() {
  const Duration since = context_.loop.now() - facts_.began;
  if (!request_body_.may_travel(since, client_stream_->listen().body_min_rate)) {
    touch();
    return AttemptState::over;
  }
  asked_->deadlines.body_may_travel();
  enter(ExchangeEvent::begin);
  return borrow(false);
}

// ---- borrowing ----

AttemptState Exchange::borrow(bool fresh) {
  const Instant now = context_.loop.now();
  const OriginRuntime& origin = *facts_.origin;
  if (!fresh) {
    if (pool::Lease own = client_stream_->take_private(origin)) {
      return take(std::move(own), true);
    }
  }
  pool::BorrowRequest want;
  want.new_connection_only = fresh;
  want.tunnel = asked_->tunnel.requested();
  if (want.tunnel || asked_->retries.h1_required()) want.kind = pool::ProtocolMask::h1_only;
  // A request with a body is not repeated, whatever its method.
  const bool may_repeat = bodyless() && is_idempotent(request_.method, origin.request.retry_idempotent);
  if (origin.pool.reuse == config::Reuse::safe && !may_repeat) {
    want.max_idle = most_rest(origin);
  }
  if (!origin.pool.classes.empty()) {
    want.priority_class =
        class_of(origin.pool.classes, client_stream_->listen().class_name, request_.fields.get("priority"));
  }
  auto answer = origin.destination->borrow(*this, want, now);
  if (auto* lease = std::get_if<pool::Lease>(&answer)) return take(std::move(*lease), false);
  if (auto* fault = std::get_if<Fault>(&answer)) {
    if (origin.destination->reclaimed()) return borrow_from_new_destination(fresh);
    reply(*fault);
    return AttemptState::over;
  }
  facts_.asked_pool = true;
  asked_->deadlines.wait(now, origin.pool);
  touch();
  return AttemptState::over;
}

// The pool of the cached route was removed after origin_idle_timeout. The new one is looked up by the origin, not by
// the request, because the listener's settings may have changed.
AttemptState Exchange::borrow_from_new_destination(bool fresh) {
  context_.router.forget();
  const Result<OriginRuntime*> successor = context_.origins.at(facts_.origin->destination->origin());
  if (!successor) {
    reply(successor.fault());
    return AttemptState::over;
  }
  facts_.origin = *successor;
  asked_->deadlines.use(facts_.origin->request);
  return borrow(fresh);
}

void Exchange::on_lease(pool::Lease lease) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  facts_.waited += lease.waited();
  if (take(std::move(lease), false) == AttemptState::alive) go_on();
}

// The exchange has a connection after a wait or a retry: sends the bytes that were collected and reads the client
// again.
void Exchange::go_on() {
  pump();
  resume_client();
}

// Request body that was paused (no connection, or the upstream buffer was full) can be read again. No socket event will
// announce it.
void Exchange::resume_client() {
  if (client_stream_ != nullptr && attempt_) client_stream_->resume();
}

std::uint64_t Exchange::client() const {
  return client_stream_->fairness_key();
}

void Exchange::on_refused(Fault fault) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  facts_.waited += asked_->deadlines.waited(context_.loop.now());
  reply(fault);
}

// ---- forwarding: the request travels ----

AttemptState Exchange::take(pool::Lease taken, bool authenticated) {
  CARPOOL_ASSERT(!attempt_);
  attempt_.emplace(std::move(taken), std::move(trailers_buffer_));
  attempt_->authenticated = authenticated;
  const pool::Lease& lease = attempt_->lease;
  facts_.leased = context_.loop.now();
  asked_->deadlines.lease(facts_.leased);
  facts_.asked_pool = true;
  facts_.connection = static_cast<Connection&>(*lease).id();
  facts_.uses_before = lease.uses_before();
  if (!lease.reused()) facts_.opened = lease.opened();
  attempt_->upstream_stream = &select_upstream_stream();
  enter(ExchangeEvent::lease);
  response_.clear();
  if (asked_->tunnel.connect()) return open_tunnel();  // the client sees the origin's bytes and its end itself
  if (!attempt_->upstream_stream->usable()) {
    StreamFailure ended;
    ended.fault.detail = "the connection ended before it was used";
    ended.connection_ended = true;
    ended.any_byte_sent = false;
    return on_failure(std::move(ended));
  }
  http::ForwardRules rules;
  rules.via_pseudonym = context_.pseudonym;
  rules.host = asked_->host;
  rules.path = asked_->path;
  rules.upgrade = asked_->tunnel.upgrade();
  rules.max_forwards = asked_->max_forwards;
  attempt_->upstream_stream->send_head(request_, rules);
  if (request_body_.full()) asked_->deadlines.client_was_paused(facts_.leased, request_body_.received());
  request_body_.start(*attempt_->upstream_stream);
  touch();
  return AttemptState::alive;
}

// Selects the stream implementation (HTTP/1.1, HTTP/2, HTTP/2 on another loop) for the leased connection.
UpstreamStream& Exchange::select_upstream_stream() {
  const pool::Lease& lease = attempt_->lease;
  auto& connection = static_cast<Connection&>(*lease);
  if (!lease.shared()) {
    h1_.begin(connection, request_.method, asked_->tunnel.upgrade(), facts_.origin->speaks.bare_lf);
    return h1_;
  }
  auto& session = static_cast<H2Connection&>(connection);
  if (lease.home() != context_.loop.id()) {
    CrossLoopStream& remote = context_.remote_streams.take(lease.home());
    remote.begin(session, *this, response_);
    return remote;
  }
  h2_.begin(session);
  return h2_;
}

void Exchange::on_request_body(std::string_view bytes) {
  if (state_ == ExchangeState::idle) return;  // already answered; the client discards the rest
  facts_.bytes_in += bytes.size();
  if (request_.expect_continue && request_body_.received() == 0 && request_.framing == http::Framing::length) {
    asked_->deadlines.measure_body(context_.loop.now(), client_stream_->listen());
  }
  request_body_.add(bytes, upstream_stream());
}

void Exchange::on_request_trailer(std::string_view name, std::string_view value) {
  if (state_ != ExchangeState::idle && http::trailer_allowed(name)) request_body_.add_trailer(name, value);
}

void Exchange::on_request_end() {
  if (state_ == ExchangeState::idle) return;
  request_body_.end(upstream_stream());
}

void Exchange::pump() {
  if (request_body_.over_limit()) return fail({FaultKind::body_too_large, Side::client, "the body exceeds max_body"});
  if (state_ == ExchangeState::collecting && ask_when_body_may_travel() != AttemptState::alive) return;
  if (!attempt_) return touch();
  if (!attempt_->upstream_stream->flush()) return;
  asked_->deadlines.sent(context_.loop.now());
  touch();
}

bool Exchange::wants_input() const {
  switch (state_) {
    case ExchangeState::idle:
      return false;
    case ExchangeState::collecting:
    case ExchangeState::borrowing:
      return !request_body_.full();
    case ExchangeState::forwarding:
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      return attempt_->upstream_stream->backlog() < kHighWatermark;
  }
  return false;
}

void Exchange::on_client_writable() {
  if (attempt_) static_cast<void>(attempt_->upstream_stream->resume_reading());
}

// The upstream write queue drained, or its connection failed.
AttemptState Exchange::on_writable() {
  if (state_ == ExchangeState::tunnel && tunnel_over()) {
    end_tunnel();
    return AttemptState::over;
  }
  asked_->deadlines.origin_accepted(context_.loop.now(), request_body_.received());
  touch();
  if (attempt_->upstream_stream->backlog() < kHighWatermark) client_stream_->resume();
  return AttemptState::alive;
}

}  // namespace carpool::proxy
