#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

std::string_view name(RetryReason reason) {
  switch (reason) {
    case RetryReason::not_sent:
      return "not_sent";
    case RetryReason::goaway:
      return "goaway";
    case RetryReason::refused_stream:
      return "refused_stream";
    case RetryReason::idempotent_reused:
      return "idempotent_reused";
    case RetryReason::misdirected:
      return "misdirected";
    case RetryReason::unauthorized:
      return "unauthorized";
  }
  return "";
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
