// The deadlines of an exchange as one table: which of them can pass in which state, what follows, and which fault ends
// the request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fault.h"
#include "proxy/exchange/exchange_deadlines.h"
#include "proxy/exchange/transition_table.h"

namespace carpool::proxy {

enum class DeadlineAction : std::uint8_t {
  check_body,   // the body may be sent now
  await_dial,   // waits longer, because the dial's own deadline reports the cause
  rearm,        // no effect: the next deadline is armed
  try_again,    // on another connection if that is allowed; otherwise like fail
  slow_body,    // like fail, and counted
  yield,        // like slow_body if a request waits for the connection; otherwise looks again later
  yield_read,   // like client_left, and counted, if a request waits for the connection; otherwise looks again later
  fail,         // the request ends with the row's fault and is not sent again
  client_left,  // like a disconnect of the client, and counted
};

struct DeadlineRow {
  ExchangeState state;
  Deadline deadline;
  DeadlineAction action;
  FaultKind kind = FaultKind::internal;
  Side side = Side::self;
  std::string_view detail{};  // the phase is appended for request.timeout
};

namespace detail {
inline constexpr std::string_view kTotal = "request.timeout passed while ";
inline constexpr std::string_view kSlow = "the request body arrived more slowly than listen.body_min_rate";
inline constexpr std::string_view kInTheWay =
    "the request body arrived more slowly than listen.body_min_rate while a request waited for its connection";
inline constexpr std::string_view kSlowReader =
    "the client accepted the response more slowly than listen.body_min_rate while a request waited for its connection";
inline constexpr std::string_view kNoToken = "oauth2.timeout passed while waiting for a token";
inline constexpr std::string_view kSilent = "request.idle_timeout passed while reading the request body";
inline constexpr std::string_view kNoContinue =
    "request.idle_timeout passed while waiting for 100 (Continue) or the response head";
inline constexpr std::string_view kUnread = "request.idle_timeout passed while sending the request body";
inline constexpr std::string_view kNoHead =
    "request.response_header_timeout passed while waiting for the response head";
inline constexpr std::string_view kLate = "request.per_try_timeout passed while waiting for the response head";
inline constexpr std::string_view kMidBody = "request.idle_timeout passed mid-body";
inline constexpr std::string_view kBothSilent = "request.idle_timeout passed without a byte in either direction";
inline constexpr std::string_view kUntaken = "request.idle_timeout passed while the origin read nothing";
inline constexpr std::string_view kLeft = "request.idle_timeout passed";
}  // namespace detail

// clang-format off
inline constexpr auto kDeadlineTable = [] {
  using enum ExchangeState;
  using enum Deadline;
  using enum DeadlineAction;
  using enum FaultKind;
  using namespace detail;
  return std::array{
      DeadlineRow{collecting, total,         fail,         request_timeout,     Side::self,     kTotal},
      DeadlineRow{collecting, body_check,    check_body},
      DeadlineRow{collecting, body_rate,     slow_body,    head_timeout,        Side::client,   kSlow},
      DeadlineRow{collecting, client_sends,  fail,         head_timeout,        Side::client,   kSilent},
      DeadlineRow{authorizing, total,        fail,         request_timeout,     Side::self,     kTotal},
      DeadlineRow{authorizing, body_rate,    slow_body,    head_timeout,        Side::client,   kSlow},
      DeadlineRow{authorizing, token_wait,   fail,         response_timeout,    Side::self,     kNoToken},
      DeadlineRow{borrowing,  total,         fail,         request_timeout,     Side::self,     kTotal},
      DeadlineRow{borrowing,  body_rate,     slow_body,    head_timeout,        Side::client,   kSlow},
      DeadlineRow{borrowing,  pool_wait,     fail,         wait_timeout,        Side::self,     "wait timed out"},
      DeadlineRow{borrowing,  dial_wait,     await_dial},
      DeadlineRow{forwarding, total,         fail,         request_timeout,     Side::self,     kTotal},
      DeadlineRow{forwarding, body_rate,     slow_body,    head_timeout,        Side::client,   kSlow},
      DeadlineRow{forwarding, streamed_rate, yield,        head_timeout,        Side::client,   kInTheWay},
      DeadlineRow{forwarding, client_sends,  fail,         head_timeout,        Side::client,   kSilent},
      DeadlineRow{forwarding, continue_head, fail,         response_timeout,    Side::upstream, kNoContinue},
      DeadlineRow{forwarding, origin_reads,  fail,         response_timeout,    Side::upstream, kUnread},
      DeadlineRow{forwarding, response_head, fail,         response_timeout,    Side::upstream, kNoHead},
      DeadlineRow{forwarding, attempt,       try_again,    response_timeout,    Side::upstream, kLate},
      DeadlineRow{forwarding, stream_idle,   rearm},
      DeadlineRow{relaying,   stream_idle,   rearm},
      DeadlineRow{tunnel,     stream_idle,   rearm},
      DeadlineRow{relaying,   total,         fail,         request_timeout,     Side::self,     kTotal},
      DeadlineRow{relaying,   origin_sends,  fail,         response_timeout,    Side::upstream, kMidBody},
      DeadlineRow{relaying,   both_silent,   fail,         request_timeout,     Side::self,     kBothSilent},
      DeadlineRow{relaying,   client_reads,  client_left,  client_gone,         Side::client,   kLeft},
      DeadlineRow{relaying,   reader_rate,   yield_read,   client_gone,         Side::client,   kSlowReader},
      DeadlineRow{tunnel,     total,         fail,         request_timeout,     Side::self,     kTotal},
      DeadlineRow{tunnel,     origin_reads,  fail,         response_timeout,    Side::upstream, kUntaken},
      DeadlineRow{tunnel,     both_silent,   fail,         request_timeout,     Side::self,     kBothSilent},
      DeadlineRow{tunnel,     client_reads,  client_left,  client_gone,         Side::client,   kLeft}};
}();
// clang-format on

// Returns the row's index, or kNoDeadlineRow.
inline constexpr std::size_t kNoDeadlineRow = kDeadlineTable.size();
constexpr std::size_t deadline_row(ExchangeState state, Deadline deadline) {
  for (std::size_t i = 0; i < kDeadlineTable.size(); ++i) {
    if (kDeadlineTable[i].state == state && kDeadlineTable[i].deadline == deadline) return i;
  }
  return kNoDeadlineRow;
}

namespace detail {
constexpr bool deadlines_deterministic() {
  for (std::size_t i = 0; i < kDeadlineTable.size(); ++i) {
    if (deadline_row(kDeadlineTable[i].state, kDeadlineTable[i].deadline) != i) return false;
  }
  return true;
}
constexpr bool every_state_is_bounded() {
  for (std::size_t state = 1; state < kExchangeStates; ++state) {
    if (deadline_row(static_cast<ExchangeState>(state), Deadline::total) == kNoDeadlineRow) return false;
  }
  return deadline_row(ExchangeState::idle, Deadline::total) == kNoDeadlineRow;
}
}  // namespace detail

static_assert(detail::deadlines_deterministic(), "two rows for one state and deadline");
static_assert(detail::every_state_is_bounded(), "request.timeout holds in every state but idle");

}  // namespace carpool::proxy
