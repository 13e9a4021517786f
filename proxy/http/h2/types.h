// Words of HTTP/2 (RFC 9113) that owners of a session need: numbers, error codes, limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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

// Why a session was ended because of what its peer did; each is a label of a metric.
enum class H2Abuse : std::uint8_t {
  none,
  resets,         // streams opened and reset, or made to be reset, faster than any use explains
  control,        // PING, SETTINGS, PRIORITY, WINDOW_UPDATE and empty frames without work between them
  continuations,  // a header block in too many frames
  header_list,    // a header block that grows far beyond the limit when it is decoded
  memory,         // the session needs more memory than it may have
  unread,         // answers are asked for and not taken
};
inline constexpr std::size_t kH2Abuses = 7;
std::string_view h2_abuse_name(H2Abuse abuse);

// One side's settings.
struct H2Options {
  Limits head;                                // of the peer's heads and trailers
  std::uint32_t max_streams = 250;            // server: streams the peer may have open
  std::uint32_t stream_window = 65535;        // bytes of body the peer may send ahead, per stream
  std::uint32_t window = 256 * 1024;          // and on all of them together
  std::uint32_t header_table = 4096;          // HPACK's dynamic table, each way
  std::size_t memory = std::size_t{4} << 20;  // what the library may allocate for this session
  bool extended_connect = true;               // server: RFC 8441 is offered
  // Bytes are given back to the session's window as they come; consume() opens the stream's alone, so that a reader
  // that is slow on one stream holds up no other.
  bool shared_window_is_free = false;
};

// What the peer's SETTINGS said.
struct H2PeerSettings {
  std::uint32_t max_streams = 0;
  std::uint32_t stream_window = 65535;
  bool extended_connect = false;
};

// The client's connection preface, first line of RFC 9113 §3.4.
inline constexpr std::string_view kH2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace carpool::proxy::http
