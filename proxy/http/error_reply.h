// How a Fault looks to others: to the application (status and Proxy-Status, RFC 9209), to the metrics, to the log.
// One function each, and no other place decides it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

struct FaultStatus {
  std::uint16_t status;
  std::string_view reason;  // the phrase of that status
  std::string_view error;   // Proxy-Status: its error parameter
  bool retry_after;         // it passes by itself
};
FaultStatus fault_status(FaultKind kind);

// {reason} of pool_failures_total; empty: not a failure of the pool.
std::string_view fault_reason(FaultKind kind);

// "connect_refused (upstream): 127.0.0.1:1: Connection refused"
std::string_view fault_name(FaultKind kind);
std::string fault_text(const Fault& fault);

// A whole response of our own; returns its status. `close`: say Connection: close.
std::uint16_t write_error_reply(std::string& out, const Fault& fault, Version client_version, bool close,
                                bool head_request, std::string_view via_pseudonym);

}  // namespace carpool::proxy::http
