#include "proxy/exchange/exchange.h"

#include <utility>

#include "proxy/exchange/authentication.h"
#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/hedged_attempt.h"
#include "proxy/exchange/max_forwards_reply.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/exchange/request_rules.h"
#include "proxy/exchange/router.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/telemetry/span_buffer.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/origin/egress_log.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/upstream_streams.h"

namespace carpool::proxy {

Exchange::Exchange(const ExchangeContext& context)
    : context_(context),
      streams_(
          std::make_unique<UpstreamStreams>(context.cross_loop_streams, static_cast<UpstreamStreamHandler&>(*this))),
      response_(&streams_->response()),
      timer_(exec::Timer::bind<&Exchange::on_deadline>(context.loop, *this)) {}

Exchange::~Exchange() = default;

void Exchange::release_buffers() {
  request_.clear();
  request_.shrink();
  trailers_buffer_.clear();
  trailers_buffer_.shrink();
  host_buffer_.clear();
  http::shrink_text(host_buffer_);
  streams_->release_buffers();
  if (hedge_) hedge_->release_buffers();
}

// ---- the head ----

void Exchange::begin(ClientStream& client_stream) {
  client_stream_ = &client_stream;
  const Instant now = context_.loop.now();
  info_ = {};
  info_.began = now;
  request_values_.emplace(std::move(host_buffer_));
  user_ = client_stream_->listener().user();
  if (request_.has_method("CONNECT")) request_values_->tunnel.request(TunnelRequest::connect);
  if (context_.spans != nullptr && context_.spans->on()) begin_trace();

  const Result<http::Target> target = http::parse_target(request_);
  if (!target) return reply(target.fault());
  if (!may_forward(*target)) return;
  if (!info_.origin->requests.admit(now)) {
    context_.stats.count(info_.origin->slot, metrics::Limit::requests);
    return reply({FaultKind::rate_limited, Side::self, "the origin's request.rate is exceeded"});
  }
  if (request_.upgrade && forwards_upgrade()) request_values_->tunnel.request(TunnelRequest::upgrade);
  if (!request_.protocol.empty() && !request_values_->tunnel.upgrade()) {  // an Upgrade is optional, this is not
    return reply({FaultKind::not_implemented, Side::client, "the origin cannot be asked for this :protocol"});
  }
  request_body_.begin(request_, info_.origin->request.replay_buffer, client_stream_->listen().max_body);
  request_values_->deadlines.begin(now, info_.origin->request);
  if (request_body_.expected() && !request_.expect_continue) measure_body(rate_rule());
  info_.origin->retries.deposit();
  if (waits_for_body()) {
    if (!request_body_.fits()) request_values_->deadlines.check_body(now + RequestBody::kStreams);
    enter(ExchangeEvent::collect);
    return arm_deadline();
  }
  static_cast<void>(await_token_or_borrow());  // the client calls pump() for the bytes that arrived with the head
}

bool Exchange::forwards_upgrade() const {
  return !request_values_->tunnel.connect() && info_.origin->protocols.h1 && !http::iequals(request_.protocol, "h2c");
}

// Returns true if the body must be read before a connection is borrowed, so that a slow body does not hold one.
// Streamed bodies (chunked, HTTP/2, an upgrade) are exempt because their client may wait for a response before it
// continues, and so is a client that expects 100 (Continue).
bool Exchange::waits_for_body() const {
  return request_.framing == http::Framing::length && request_.length != 0 &&
         request_.version != http::Version::http2 && !request_.expect_continue && !request_values_->tunnel.upgrade() &&
         !request_body_.full();
}

namespace {
// Returns the fault of a request that must not reach any origin, regardless of the load.
std::optional<Fault> refuse_head(const ExchangeContext& context, const ClientStream& client,
                                 const http::RequestHead& request, const http::Target& target) {
  if (http::via_contains(request.fields, context.pseudonym)) {
    return Fault{FaultKind::loop_detected, Side::client, "the request has passed this proxy before"};
  }
  if (target.form == http::TargetForm::authority) {
    if (std::optional<Fault> fault = check_connect(client.listener(), request, target)) return fault;
  }
  if (request.upgrade && request.fields.count("sec-websocket-key") > 1) {  // RFC 6455 §11.3.1, RFC 8441 §5
    return Fault{FaultKind::malformed_request, Side::client, "Sec-WebSocket-Key more than once, or in HTTP/2"};
  }
  const std::uint64_t max_body = client.listen().max_body;
  if (max_body != 0 && request.framing == http::Framing::length && request.length > max_body) {
    return Fault{FaultKind::body_too_large, Side::client, "Content-Length exceeds max_body"};
  }
  return std::nullopt;
}
}  // namespace

// Makes every decision that depends on the head alone. Returns false if the request was answered.
bool Exchange::may_forward(const http::Target& target) {
  if (client_stream_->accepted_while_shedding() && context_.overload.is_shedding(ShedLevel::new_clients)) {
    context_.stats.count(metrics::Shed::new_clients);
    reply({FaultKind::overloaded, Side::self, "memory or file descriptors run short"});
    return false;
  }
  if (const std::optional<Fault> fault =
          check_authentication(context_, client_stream_->listener(), request_.fields, user_)) {
    reply(*fault);
    return false;
  }
  if (const std::optional<Fault> fault = refuse_head(context_, *client_stream_, request_, target)) {
    reply(*fault);
    return false;
  }
  if (const std::optional<std::uint32_t> forwards = max_forwards(request_)) {
    if (*forwards == 0) {
      reply_locally();
      return false;
    }
    request_values_->max_forwards = static_cast<int>(*forwards - 1);
  }
  Result<const Route*> route = context_.router.route(client_stream_->listener(), client_stream_->secured(), target);
  if (!route) {
    if (denied_by_egress(route.fault())) info_.egress = metrics::Egress::denied;
    reply(route.fault());
    return false;
  }
  info_.origin = (*route)->origin;
  info_.egress = metrics::Egress::allowed;
  if (const std::optional<Fault> fault = refused_by_rules(context_, *info_.origin, *client_stream_, request_, target)) {
    reply(*fault);
    return false;
  }
  request_values_->host.assign((*route)->host);
  request_values_->path = target.path;
  return true;
}

// Replies to a request whose Max-Forwards is 0: carpool is the final recipient (RFC 9110 §7.6.2).
void Exchange::reply_locally() {
  const bool keep = request_.keep_alive && bodyless() && context_.keeps_clients();
  client_stream_->send_local_reply(keep);
  info_.status = 200;
  const bool sent = client_stream_->flush();
  enter(ExchangeEvent::answered);
  finish(!sent ? AfterExchange::gone : keep ? AfterExchange::keep : AfterExchange::close);
}

}  // namespace carpool::proxy
