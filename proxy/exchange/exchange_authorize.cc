// Exchange, credentials of the origin: a request waits for a token, gets the fields on a connection that may carry
// them, and is sent once more with another token after 401.
#include "pool/destination/destination.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/oauth_token.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
// Returns false for TRACE, whose response repeats the fields of the request (some origins ignore the case of the
// method), and for a request for a token, which must not wait for one.
bool gets_fields(const http::RequestHead& request, const ClientStream& client) {
  return !http::iequals(request.method, "TRACE") && !client.carries_secret();
}
}  // namespace

bool Exchange::has_token() const {
  const Credentials* const credentials = info_.origin->credentials;
  if (credentials == nullptr || credentials->token() == nullptr) return true;
  if (request_values_->tunnel.connect() || !gets_fields(request_, *client_stream_)) return true;
  const std::uint64_t serial = credentials->token()->serial();
  return serial != 0 && serial != request_values_->refused_token;
}

// Like has_token(). If there is none, a reload may have stopped its keeper: then the credentials in force count.
bool Exchange::finds_token() {
  if (!has_token()) follow_reload();
  return has_token();
}

AttemptState Exchange::await_token() {
  const OAuthToken& token = *info_.origin->credentials->token();
  if (const std::optional<Fault> fault = token.fault()) {
    if (attempt_) abandon_attempt(pool::CloseCause::error);
    reply(*fault);
    return AttemptState::over;
  }
  enter(ExchangeEvent::authorize);
  request_values_->deadlines.await_token(context_.loop.now(), token.settings().timeout);
  context_.exchanges.await_token(*this);
  arm_deadline();
  return AttemptState::over;
}

void Exchange::on_token_changed() {
  CARPOOL_ASSERT(state_ == ExchangeState::authorizing);
  follow_reload();
  if (has_token()) {
    enter(ExchangeEvent::begin);
    if (borrow(Accepts::any_connection) == AttemptState::alive) continue_attempt();
  } else if (const std::optional<Fault> fault = info_.origin->credentials->token()->fault()) {
    reply(*fault);
  } else {
    context_.exchanges.await_token(*this);
  }
}

// Applies the credentials in force, because a reload may have changed them while the request waited.
void Exchange::follow_reload() {
  const Result<OriginRuntime*> in_force = context_.origins.at(info_.origin->destination->origin());
  if (in_force && *in_force != info_.origin) use_origin(**in_force);
}

// Makes the request use the settings and the credentials of `origin` from now on.
void Exchange::use_origin(OriginRuntime& origin) {
  info_.origin = &origin;
  request_values_->deadlines.use(origin.request);
  if (request_values_->tunnel.upgrade() && !forwards_upgrade()) request_values_->tunnel.withdraw();
  request_values_->refused_token = 0;  // another keeper numbers its tokens independently
}

// Returns the fault if the connection is not proven to lead to the origin, or if the token expired meanwhile.
std::optional<Fault> Exchange::set_fields(http::ForwardRules& rules, AttemptValues& attempt) {
  Credentials* const credentials = info_.origin->credentials;
  const bool sets = credentials != nullptr && gets_fields(request_, *client_stream_);
  if (!sets && !client_stream_->carries_secret()) return std::nullopt;
  Fault fault{FaultKind::egress_denied, Side::self,
              "the request has credentials, and this connection is neither verified nor to a loopback address"};
  if (const std::optional<net::ProvenPeer>& peer = static_cast<Connection&>(*attempt.lease).proven_peer()) {
    if (!sets) return std::nullopt;
    const Credentials::InForce& own = credentials->in_force(*peer, context_.loop.id());
    rules.set = &own.fields;
    attempt.token = own.token;
    if (credentials->token() == nullptr || own.token != 0) return std::nullopt;
    fault = {FaultKind::response_timeout, Side::self, "the token expired before the request was sent"};
  }
  return fault;
}

// Handles a 401. The origin did not perform the request (RFC 9110 §15.5.2), which is sent once more with another token.
// Returns the same as retry_status().
std::optional<AttemptState> Exchange::retry_unauthorized() {
  const std::uint64_t sent = attempt_->token;
  if (sent == 0 || !info_.origin->credentials->token()->refuse(sent, context_.loop.now())) return std::nullopt;
  const RetryDecision decision = decide_retry(AttemptResult::unauthorized);
  if (decision.outcome != RetryOutcome::retry) return std::nullopt;
  request_values_->refused_token = sent;
  return drop_response(decision.reason);
}

}  // namespace carpool::proxy
