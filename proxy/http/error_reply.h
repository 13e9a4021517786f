// Maps a Fault to its representations: status and Proxy-Status (RFC 9209) for the client, a metric label and a log
// text. No other file decides these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

struct FaultStatus {
  std::uint16_t status;
  std::string_view reason;  // reason phrase of `status`
  std::string_view error;   // error parameter of Proxy-Status
  bool retry_after;         // the condition is temporary
};
FaultStatus fault_status(FaultKind kind);

// Returns the kind's name: "connect_refused".
std::string_view fault_name(FaultKind kind);

// Returns the grpc-status of a local reply.
std::uint8_t grpc_code(const Fault& fault);

// Returns true for a gRPC request: HTTP/2 with application/grpc, with or without a suffix.
bool is_grpc(const RequestHead& request);
bool is_grpc_type(std::string_view content_type);

// Appends a complete local reply and returns its status. `rules.own` and `rules.upgrade` have no effect.
std::uint16_t write_error_reply(std::string& out, const Fault& fault, const ReplyRules& rules);

// Appends the head of a local reply to a gRPC request: status 200 and grpc-status without a body ("Trailers-Only"). A
// gRPC client treats any other status as a broken server and shows no text. Returns the status that another client
// would get.
std::uint16_t write_grpc_reply(std::string& out, const Fault& fault, const ReplyRules& rules);

}  // namespace carpool::proxy::http
