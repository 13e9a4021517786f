// DemoReply: the demo origin's responses as a pure function of a request's head. The paths demonstrate reuse, waiting,
// bodies, and connections that the origin closes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fault.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

// DemoVisit: identifies a request. The same connection number with a higher request number proves reuse.
struct DemoVisit {
  std::string_view protocol;     // "HTTP/1.1 over TLSv1.3"
  std::uint64_t connection = 0;  // counted from 1 over all listeners
  std::uint64_t request = 0;     // counted from 1 on this connection
};

struct DemoReply {
  std::uint16_t status = 200;
  std::string body;
  std::uint64_t fill = 0;  // if not 0, replaces `body` by this many bytes of demo_fill()
  Duration delay{};        // time before the response
  bool echo = false;       // replaces `body` by the request's own body, as it arrives
  bool close = false;      // the connection closes after it
};

DemoReply demo_reply(const http::RequestHead& request, const DemoVisit& visit);
// Returns the reply to malformed input, which is always the last on its connection.
DemoReply demo_refusal(const Fault& fault);

// Writes the status line and fields of `reply`; an echo uses the framing of the request's body.
void write_demo_head(std::string& out, const DemoReply& reply, const http::RequestHead& request,
                     const DemoVisit& visit);

// Returns one block of the endless body: lines of 64 bytes, so that any part of it is easy to verify.
std::string_view demo_fill();

}  // namespace carpool::proxy
