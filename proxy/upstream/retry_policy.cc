#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

std::string_view not_repeated_reason(AttemptResult result, Repeatable request, bool body) {
  switch (result) {
    case AttemptResult::answered:
      return "a part of the response had arrived";
    case AttemptResult::violated:
      return "the origin had read the request";
    case AttemptResult::closed_new:
      return "the connection was new, so the origin may have processed the request";
    case AttemptResult::closed_idle:
    case AttemptResult::refused_status:
    case AttemptResult::reset:
    case AttemptResult::late:
      if (body) return "a request with a body may have been processed";
      return "the method is not idempotent, and the origin may have processed the request";
    default:
      return request == Repeatable::partial ? "the body is larger than request.replay_buffer" : "";
  }
}

bool is_idempotent(std::string_view method, bool put_and_delete) {
  if (method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE") return true;
  return put_and_delete && (method == "PUT" || method == "DELETE");
}

Repeatable repeatable(std::string_view method, bool body, bool replayable, bool put_and_delete) {
  if (!replayable) return Repeatable::partial;
  return !body && is_idempotent(method, put_and_delete) ? Repeatable::harmless : Repeatable::whole;
}

}  // namespace carpool::proxy
