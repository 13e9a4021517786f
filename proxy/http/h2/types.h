// HTTP/2 types (RFC 9113) for the owners of a session: stream identifiers, error codes, limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fault.h"
#include "proxy/http/limits.h"

namespace carpool::proxy::http {

using StreamId = std::int32_t;

enum class H2Role : std::uint8_t { server, client };

// RFC 9113 §7.
enum class H2Error : std::uint32_t {
  no_error = 0x0,
  protocol_error = 0x1,
  internal_error = 0x2,
  flow_control_error = 0x3,
  settings_timeout = 0x4,
  stream_closed = 0x5,
  frame_size_error = 0x6,
  refused_stream = 0x7,
  cancel = 0x8,
  compression_error = 0x9,
  connect_error = 0xa,
  enhance_your_calm = 0xb,
  inadequate_security = 0xc,
  http_1_1_required = 0xd,
};
std::string_view h2_error_name(H2Error error);
// Returns the grpc-status of a call whose stream was reset with this error (grpc/doc/PROTOCOL-HTTP2.md, "Errors").
std::uint8_t grpc_code_of_reset(H2Error error);
// Returns an error that gives this grpc-status to a call whose response has begun; internal_error if none does. Never
// refused_stream, after which a client may repeat the call.
H2Error reset_of_grpc_code(std::uint8_t code);

// Returns the text of the response to a head that H2Sink::on_refused_head() reports.
std::string_view h2_refused_head_reason(FaultKind kind);

// The reasons for terminating a session because of its peer; each value is a metric label.
enum class H2Abuse : std::uint8_t {
  none,
  resets,         // streams opened and reset, or made to be reset, faster than any real use requires
  control,        // PING, SETTINGS, PRIORITY, WINDOW_UPDATE, GOAWAY and empty frames without useful work between them
  continuations,  // a header block in too many frames
  header_list,    // a header block that far exceeds the limit when decoded
  memory,         // the session exceeded its memory limit
  unread,         // responses are requested but not read
};
inline constexpr std::size_t kH2Abuses = 7;
std::string_view h2_abuse_name(H2Abuse abuse);

// Options of our side of a session.
struct H2Options {
  Limits head;                          // for the peer's heads and trailers
  std::uint32_t max_streams = 250;      // server: concurrent streams that the peer may open
  std::uint32_t stream_window = 65535;  // initial receive window of a stream, in bytes
  std::uint32_t window = 256 * 1024;    // receive window of the session
  std::uint32_t header_table = 4096;    // size of the HPACK dynamic table, each way
  // Limit of the library's allocations for this session, and server: of the response heads that wait for it.
  std::size_t memory = std::size_t{4} << 20;
  bool extended_connect = true;  // server: offers RFC 8441
  // Returns bytes to the session's window as they arrive; consume() opens only the stream's window, so that a slow
  // reader of one stream does not block the others. All streams together may then hold as many bytes as their windows.
  bool shared_window_is_free = false;
};

// Settings received from the peer.
struct H2PeerSettings {
  std::uint32_t max_streams = 0;
  std::uint32_t stream_window = 65535;
  bool extended_connect = false;
  std::uint32_t header_list = UINT32_MAX;  // limit of a head, as H2Fields::list_size() counts it
};

// The client's connection preface, first line of RFC 9113 §3.4.
inline constexpr std::string_view kH2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace carpool::proxy::http
