// Decides whether a request whose attempt failed may be sent again, and what proves that this is safe: one pure table,
// the only place of this decision. RetryState (proxy/exchange/retry_state.h) adds the limits and the budget.
// Exchange::decide_retry() asks it, for each way in which an attempt ends (proxy/exchange/exchange_retry.cc). A hedged
// attempt is not a retry: proxy/exchange/exchange_hedge.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "metrics/events.h"

namespace carpool::proxy {

using metrics::RetryReason;
// Returns true for the reasons that prove nothing: only max_retries and the budget bound them.
constexpr bool conditional(RetryReason reason) {
  return reason >= RetryReason::status;
}
constexpr std::string_view name(RetryReason reason) {
  return metrics::kRetryReasons[static_cast<std::size_t>(reason)];
}

// AttemptResult: how an attempt ended, and so what is known of its request. Of the timeouts only
// request.per_try_timeout ends an attempt; the others end the request.
enum class AttemptResult : std::uint8_t {
  not_sent,        // no byte of it was sent, or the origin cannot have read it
  goaway,          // the origin declared the request unprocessed by GOAWAY
  refused_stream,  // the origin declared the request unprocessed by RST_STREAM
  misdirected,     // the origin responded with 421: not on this connection
  unauthorized,    // the origin responded with 401 to the token, and another token was granted
  closed_idle,     // a connection that was idle before ended without a byte of a response
  closed_new,      // like closed_idle, on a connection that was dialed for the request
  answered,        // a byte of a response arrived, 1xx included
  violated,        // the origin violated the protocol; the connection did not end
  refused_status,  // the origin responded with a status of request.retry_on
  reset,           // like closed_new, or the origin reset the stream, and request.retry_on names it
  unconnected,     // the dial failed, and request.retry_on names it
  late,            // request.per_try_timeout passed
};
inline constexpr std::size_t kAttemptResults = 13;

// Repeatable: how much of the request can be sent again.
enum class Repeatable : std::uint8_t {
  harmless,  // all of it, and a repetition has no further effect: an idempotent method without a body
  whole,     // all of it: the replay buffer holds every body byte received
  partial,   // a part of the body is lost
};
inline constexpr std::size_t kRepeatables = 3;

// clang-format off
inline constexpr auto kRetryTable = [] {
  using enum RetryReason;
  using Row = std::array<std::optional<RetryReason>, kRepeatables>;
  constexpr std::optional<RetryReason> no;
  return std::array<Row, kAttemptResults>{
      //  harmless           whole           partial
      Row{not_sent,          not_sent,       no},   // not_sent
      Row{goaway,            goaway,         no},   // goaway
      Row{refused_stream,    refused_stream, no},   // refused_stream
      Row{misdirected,       misdirected,    no},   // misdirected
      Row{unauthorized,      unauthorized,   no},   // unauthorized
      // An origin closes an idle connection at any moment. A request that met this close was most likely never read,
      // but that is not certain, so only a request whose repetition is harmless is sent again.
      Row{idempotent_reused, no,             no},   // closed_idle
      Row{no,                no,             no},   // closed_new
      Row{no,                no,             no},   // answered
      Row{no,                no,             no},   // violated
      // The origin may have processed these. Only a harmless request is sent again, and only if an operator configured
      // it.
      Row{status,            no,             no},   // refused_status
      Row{reset,             no,             no},   // reset
      Row{connect_failure,   connect_failure, no},  // unconnected: nothing was sent
      Row{per_try_timeout,   no,             no}};  // late
}();
// clang-format on

constexpr std::optional<RetryReason> retry_reason(AttemptResult result, Repeatable request) {
  return kRetryTable[static_cast<std::size_t>(result)][static_cast<std::size_t>(request)];
}

namespace detail {
constexpr bool nothing_is_repeated_in_part() {
  for (const auto& row : kRetryTable) {
    if (row[static_cast<std::size_t>(Repeatable::partial)]) return false;
  }
  return true;
}
}  // namespace detail
static_assert(detail::nothing_is_repeated_in_part(), "a request is repeated whole");

// Returns why the table has no reason for this cell, for an operator.
std::string_view not_repeated_reason(AttemptResult result, Repeatable request, bool body);

// Returns true if two requests have the same effect as one (RFC 9110 §9.2.2); by default without PUT and DELETE.
bool is_idempotent(std::string_view method, bool put_and_delete);

// `body`: the request announces a body. `replayable`: every byte of it is kept. `put_and_delete`:
// request.retry_idempotent.
Repeatable repeatable(std::string_view method, bool body, bool replayable, bool put_and_delete);

}  // namespace carpool::proxy
