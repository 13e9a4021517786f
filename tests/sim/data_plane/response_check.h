// ResponseCheck: a client's checks of each response, of either protocol.
#pragma once

#include <string>
#include <string_view>

#include "tests/sim/data_plane/account.h"

namespace carpool::test {

inline constexpr const char* kCauseField = "proxy-status";  // of a reply of carpool's own

// Returns true if a body follows.
inline bool check_head(Account& account, RequestRecord& one, std::uint32_t status, const std::string& mark,
                       std::string_view pad, std::string_view cause) {
  account.log("head", status * 100000ULL + one.received);
  if (!mark.empty() && mark.substr(0, 6) != one.token) {
    account.complain(one, one.token + " received a head of " + mark);
    return true;
  }
  if (status < 200) {
    if (mark.empty() && status != 100) account.complain(one, one.token + " received an unmarked interim response");
    if (one.plan.version != 0) account.complain(one, one.token + ": an interim response for HTTP/1.0");
    if (++one.informational > 64U * one.attempts.size() + 1) account.complain(one, one.token + ": too many 1xx");
    return true;
  }
  // No request of a plan is malformed: carpool itself refuses only a client that stops sending, or one that exceeds a
  // limit.
  const bool slow = status == 408 && (one.plan.stalls != 0 || account.impatient);
  if (mark.empty() && status < 500 && status != 429 && !slow) {
    account.complain(one, one.token + " was refused with " + std::to_string(status));
  }
  // A request enters the pool that follows one that has ended.
  if (cause.find("the pool is stopping") != std::string_view::npos)
    account.complain(one, one.token + " was refused because a pool had ended");
  if (one.answered) account.complain(one, one.token + " received two final heads");
  one.answered = true;
  one.attempt = mark.empty() ? SIZE_MAX : std::strtoul(mark.substr(7).c_str(), nullptr, 10);
  if (!mark.empty() && one.attempt >= one.attempts.size()) {
    account.complain(one, one.token + " received a response to no attempt");
  }
  if (one.attempt < one.attempts.size()) {
    account.check_pad(one, one.attempts[one.attempt].response.fields, pad);
    account.note_received(one, one.attempts[one.attempt]);
  }
  return one.method() != "HEAD" && status != 204 && status != 304;
}
inline void check_body(Account& account, RequestRecord& one, std::string_view bytes) {
  if (one.attempt != SIZE_MAX && !bears_mark(one.token, one.received, bytes)) {
    account.complain(one, one.token + " received foreign, lost or doubled bytes");
  }
  if (!one.answered) account.complain(one, one.token + " received a body before its head");
  one.received += bytes.size();
  account.log("body", bytes.size());
}
inline void check_tail(Account& account, RequestRecord& one, std::string_view value) {
  account.log("tail", one.received);
  if (one.tails++ != 0) account.complain(one, one.token + " received trailers twice");
  if (value != one.token + "/" + std::to_string(one.attempt))
    account.complain(one, one.token + " received the trailers of " + std::string(value));
}
inline void check_end(Account& account, RequestRecord& one) {
  ++one.ends;
  account.log("end", one.received);
  account.check_complete(one);
}

}  // namespace carpool::test
