// Exchange, a response that the origin sent before the request, because it was about to close an idle connection. Both
// cross on the wire; the client must not get it for an answer (RFC 9112 §9.5).
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// Records the turn. For a connection that was idle, usable() then reads the socket, because bytes may have arrived in
// this turn that no event has reported yet. In a busy pool connections are idle for less time, and no call is made.
void Exchange::expect_unsolicited(AttemptValues& attempt) {
  constexpr Duration kIdle = std::chrono::milliseconds(100);
  attempt.begun = context_.loop.now();
  if (attempt.lease.shared()) return;
  auto& connection = static_cast<Connection&>(*attempt.lease);
  const Instant since = connection.returned_at() == Instant{} ? connection.opened_at() : connection.returned_at();
  if (context_.loop.now() - since < kIdle) return;
  connection.transport().on_readiness({.readable = true, .writable = false, .hangup = false});
}

namespace {
// Returns true for a 408 on a connection that is closed: its origin says that it saw no request (RFC 9110 §15.5.9), but
// an application may mean something else by it.
bool may_be_unsolicited(const AttemptValues& attempt, const http::ResponseHead& head) {
  return head.status == 408 && head.announces_close() && attempt.was_idle && !attempt.lease.shared() &&
         !attempt.authenticated && !attempt.informed;
}

StreamFailure unsolicited_failure(const http::ResponseHead& head, std::string_view why) {
  StreamFailure failure;
  failure.fault.detail = "the origin sent a response with the status " + std::to_string(head.status);
  failure.fault.detail.append(why);
  failure.connection_ended = true;
  return failure;
}
}  // namespace

// Returns the failure of the attempt if the origin could not have received the request before it sent `head`.
// The system is asked only about responses that are rarely the answer: an interim one, an error, the last one of a
// connection, and one that is read in the turn in which the request was written, so that the usual one costs no system
// call.
std::optional<StreamFailure> Exchange::unsolicited(const AttemptValues& attempt, const http::ResponseHead& head) {
  if (attempt.lease.shared() || attempt.informed) return std::nullopt;
  const bool at_once = context_.loop.now() == attempt.begun;
  const bool interim = head.status < 200;
  if (!interim && head.keep_alive && head.status < 400 && !at_once) return std::nullopt;
  if (!attempt.was_idle && !attempt.authenticated) return std::nullopt;
  if (!attempt.upstream_stream->precedes_request()) return std::nullopt;
  StreamFailure failure = unsolicited_failure(head, " before it received the request");
  // An origin that announced its close processes no further request on the connection (RFC 9112 §9.6).
  failure.any_byte_sent = interim || !head.announces_close();
  return failure;
}

// Handles a response that may not be to the request. Returns nullopt if the client gets it: also a 408 to an idle
// connection, if the request is not sent again for it.
std::optional<AttemptState> Exchange::retry_unsolicited() {
  if (std::optional<StreamFailure> failure = unsolicited(*attempt_, *response_)) return on_failure(std::move(*failure));
  if (!may_be_unsolicited(*attempt_, *response_)) return std::nullopt;
  const StreamFailure failure = unsolicited_failure(*response_, " to the idle connection");
  if (hedge_pending()) return on_failure(failure);
  const RetryDecision decision = decide_retry(AttemptResult::closed_idle);
  if (decision.outcome != RetryOutcome::retry) return std::nullopt;
  note_failed_attempt(failure, decision.outcome);
  abandon_attempt(pool::CloseCause::peer_closed);
  retry(decision.reason);
  return AttemptState::over;
}

// ---- HedgeOwner ----

bool Exchange::crosses_hedge(const AttemptValues& attempt, const http::ResponseHead& head) {
  return may_be_unsolicited(attempt, head) || unsolicited(attempt, head);
}

}  // namespace carpool::proxy
