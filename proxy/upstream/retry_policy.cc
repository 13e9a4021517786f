#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

std::string_view not_repeated_reason(RequestFate fate, Repeatable request, bool body) {
  switch (fate) {
    case RequestFate::answered:
      return "a part of the response had arrived";
    case RequestFate::violated:
      return "the origin had read the request";
    case RequestFate::closed_new:
      return "the connection was new, so the origin may have processed the request";
    case RequestFate::closed_reused:
    case RequestFate::refused_status:
    case RequestFate::reset:
    case RequestFate::late:
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
