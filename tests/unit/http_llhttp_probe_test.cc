// Probes of llhttp: inputs shaped for request smuggling, among them those that one build of llhttp or another accepts.
// Whichever is linked, only the first is a request.
#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

TEST(Llhttp, NeverLetsASmugglerThroughWhicheverVersionWasLinked) {
  EXPECT_EQ(read_requests("GET / HTTP/1.1\r\nHost: a\r\n\r\n").messages, 1U);
  const std::vector<std::pair<const char*, const char*>> inputs = {
      {"bare CR ends header value", "GET / HTTP/1.1\r\nHost: a\r\nDummy: x\rContent-Length: 5\r\n\r\nhello"},
      {"bare LF line ends", "GET / HTTP/1.1\nHost: a\n\n"},
      {"bare LF behind a good request line", "GET / HTTP/1.1\r\nHost: a\n\n"},
      {"bare CR after headers", "GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n"},
      {"CL and TE", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"two CL equal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab"},
      {"two CL differ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"},
      {"CL +4", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd"},
      {"TE: chunked, identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
      {"TE: xchunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"chunk size bare LF", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n"},
      {"chunk ext bare CR",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a\rb\r\nab\r\n0\r\n\r\n"},
      {"chunk data not ended by CRLF",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabXX0\r\n\r\n"},
      {"bare LF ends the trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n"},
      {"chunk size wraps",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nab\r\n0\r\n\r\n"},
      {"space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
      {"empty name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
      {"obs-fold", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"},
      {"obs-fold TE", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"},
      {"NUL-less ctl in value", "GET / HTTP/1.1\r\nHost: a\r\nX: b\x01\r\n\r\n"},
  };
  for (const auto& [name, bytes] : inputs) {
    const Reading whole = read_requests(bytes);
    EXPECT_EQ(whole.messages, 0U) << name;
    EXPECT_EQ(whole.fault, FaultKind::malformed_request) << name;
    EXPECT_EQ(read_requests(bytes, every_byte(std::string_view(bytes).size())), whole) << name;
  }
}

}  // namespace
}  // namespace carpool::proxy::http
