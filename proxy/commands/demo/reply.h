// What the demo's origin answers: pure, one function from a request's head to a reply. The paths show what a pool does:
// reuse, waiting, bodies, a connection that the origin ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fault.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

// Where a request arrived: the same connection number with a higher request number is reuse, seen from the origin.
struct DemoVisit {
  std::string_view protocol;     // "HTTP/1.1 over TLSv1.3"
  std::uint64_t connection = 0;  // counted over both listeners, from 1
  std::uint64_t request = 0;     // on this connection, from 1
};

struct DemoReply {
  std::uint16_t status = 200;
  std::string body;
  std::uint64_t fill = 0;  // instead of `body`: so many bytes of demo_fill()
  Duration delay{};        // before the answer
  bool echo = false;       // instead of `body`: the request's own, while it comes
  bool close = false;      // the connection ends behind it
};

DemoReply demo_reply(const http::RequestHead& request, const DemoVisit& visit);
// For bytes that are no request; always the last on its connection.
DemoReply demo_refusal(const Fault& fault);

// Status line and fields for `reply`; an echo takes the framing of the request's body.
void write_demo_head(std::string& out, const DemoReply& reply, const http::RequestHead& request,
                     const DemoVisit& visit);

// One block of the endless body: lines of 64 bytes, so that any part of it is easy to check.
std::string_view demo_fill();

}  // namespace carpool::proxy
