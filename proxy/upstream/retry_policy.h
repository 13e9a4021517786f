// May this request be sent again, and what proves it? A pure function; the only place that decides (DESIGN §1.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace carpool::proxy {

enum class RetryReason : std::uint8_t { not_sent, goaway, refused_stream, idempotent_reused, misdirected };
std::string_view name(RetryReason proof);

struct Attempt {
  std::string_view method;
  bool has_body = false;                   // the request announces one
  bool body_whole = true;                  // every byte of the body that was received is still in the replay buffer
  bool reused = false;                     // the connection had served before
  bool any_byte_sent = false;              // of the request
  bool any_byte_back = false;              // of a response, 1xx included
  bool timed_out = false;                  // never again after a timeout
  bool connection_ended = false;           // EOF, reset or a failed write (not a malformed answer)
  std::optional<RetryReason> unprocessed;  // goaway, refused_stream: the origin said that it did nothing
  std::uint32_t idempotent_retries = 0;
  std::uint32_t proven_replays = 0;

  std::uint32_t attempts() const { return 1 + idempotent_retries + proven_replays; }  // this one included
};

struct RetryRules {
  std::uint32_t max_retries = 1;  // idempotent_reused only
  bool put_and_delete = false;    // request.retry_idempotent
};

inline constexpr std::uint32_t kMaxProvenReplays = 8;

// Attempts of one request, the first one included, whatever the proofs and the origin say: each may cost a dial.
constexpr std::uint32_t most_attempts(const RetryRules& rules) {
  return rules.max_retries + kMaxProvenReplays;
}

std::optional<RetryReason> retry_reason(const Attempt& attempt, const RetryRules& rules);

// Sent twice has the effect of sent once (RFC 9110 §9.2.2), by default without PUT and DELETE.
bool is_idempotent(std::string_view method, bool put_and_delete);

}  // namespace carpool::proxy
