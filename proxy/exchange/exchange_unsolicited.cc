// Exchange, a response that the origin sent before the request, because it was about to close an idle connection. Both
// cross on the wire; the client must not get it for an answer (RFC 9112 §9.5).
#include <chrono>
#include <string>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

// Makes usable() ask the socket of a connection that rested: bytes may have arrived in this turn, of which no event has
// told yet. In a busy pool connections rest shorter, so that this costs nothing.
void Exchange::expect_farewell(AttemptValues& attempt) {
  constexpr Duration kRest = std::chrono::milliseconds(100);
  if (attempt.lease.shared()) return;
  auto& connection = static_cast<Connection&>(*attempt.lease);
  if (connection.returned_at() == Instant{} || context_.loop.now() - connection.returned_at() < kRest) return;
  connection.transport().on_readiness({.readable = true, .writable = false, .hangup = false});
}

// Returns the failure of the attempt if `head` is no response to its request. The proof is that the origin could not
// have received the request. 408 on a connection that is closed also says so (RFC 9110 §15.5.9), but an application may
// mean something else by it; so a client whose request must not be repeated gets it.
std::optional<StreamFailure> Exchange::unsolicited(const AttemptValues& attempt, const http::ResponseHead& head) {
  const bool served = attempt.lease.reused() || attempt.authenticated;
  if (!served || attempt.lease.shared() || attempt.informed || (head.keep_alive && head.status < 400)) {
    return std::nullopt;
  }
  const bool precedes = attempt.upstream_stream->precedes_request();
  const bool farewell = head.status == 408 && !head.keep_alive && request_repeatable() == Repeatable::harmless;
  if (!precedes && !farewell) return std::nullopt;
  StreamFailure failure;
  failure.fault.detail = "the origin sent a response with the status " + std::to_string(head.status) +
                         (precedes ? " before it received the request" : " to the idle connection");
  failure.connection_ended = true;
  // An origin that announced its close processes no further request on the connection (RFC 9112 §9.6).
  failure.any_byte_sent = !precedes || head.keep_alive;
  return failure;
}

}  // namespace carpool::proxy
