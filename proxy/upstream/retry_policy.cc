#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

std::string_view name(RetryReason proof) {
  switch (proof) {
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
  }
  return "";
}

bool is_idempotent(std::string_view method, bool put_and_delete) {
  if (method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE") return true;
  return put_and_delete && (method == "PUT" || method == "DELETE");
}

std::optional<RetryReason> retry_reason(const Attempt& attempt, const RetryRules& rules) {
  if (attempt.timed_out || attempt.any_byte_back || !attempt.body_whole) return std::nullopt;
  if (attempt.attempts() >= most_attempts(rules)) return std::nullopt;
  const bool unsent = attempt.connection_ended && !attempt.any_byte_sent;
  if (attempt.unprocessed || unsent) return attempt.unprocessed.value_or(RetryReason::not_sent);
  if (!attempt.connection_ended) return std::nullopt;
  // An origin closes a connection that rests at any moment: a request that met this close was most likely never read,
  // but only "most likely", so only requests whose repetition is harmless go again.
  if (!attempt.reused || attempt.idempotent_retries >= rules.max_retries) return std::nullopt;
  if (!is_idempotent(attempt.method, rules.put_and_delete)) return std::nullopt;
  if (attempt.has_body) return std::nullopt;
  return RetryReason::idempotent_reused;
}

}  // namespace carpool::proxy
