#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

std::string_view name(Proof proof) {
  switch (proof) {
    case Proof::not_sent:
      return "not_sent";
    case Proof::goaway:
      return "goaway";
    case Proof::refused_stream:
      return "refused_stream";
    case Proof::idempotent_reused:
      return "idempotent_reused";
    case Proof::misdirected:
      return "misdirected";
  }
  return "";
}

bool repeatable(std::string_view method, bool put_and_delete) {
  if (method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE") return true;
  return put_and_delete && (method == "PUT" || method == "DELETE");
}

std::optional<Proof> may_retry(const Attempt& attempt, const RetryRules& rules) {
  if (attempt.timed_out || attempt.any_byte_back || !attempt.body_whole) return std::nullopt;
  if (attempt.attempts() >= most_attempts(rules)) return std::nullopt;
  const bool unsent = attempt.connection_ended && !attempt.any_byte_sent;
  if (attempt.unprocessed || unsent) return attempt.unprocessed.value_or(Proof::not_sent);
  if (!attempt.connection_ended) return std::nullopt;
  // An origin closes a connection that rests at any moment: a request that met this close was most likely never read,
  // but only "most likely", so only requests whose repetition is harmless go again.
  if (!attempt.reused || attempt.idempotent_retries >= rules.max_retries) return std::nullopt;
  if (!repeatable(attempt.method, rules.put_and_delete)) return std::nullopt;
  if (attempt.has_body) return std::nullopt;
  return Proof::idempotent_reused;
}

}  // namespace carpool::proxy
