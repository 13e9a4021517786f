// UpstreamStreams: the streams of one attempt on connections and sessions of its own loop, and the response head that
// they fill in; one request uses one of them. Separate from the exchange, so that files that include the exchange do
// not include the protocols.
#pragma once

#include <string_view>

#include "proxy/upstream/h1_stream.h"
#include "proxy/upstream/h2/stream.h"

namespace carpool::proxy {

class CrossLoopStreams;

class UpstreamStreams {
 public:
  UpstreamStreams(CrossLoopStreams& cross_loop, UpstreamStreamHandler& user);

  struct Request {
    std::string_view method;
    bool upgrade = false;  // the request asks for 101
    bool bare_lf = false;  // lines of the response head may end in LF alone
  };
  // Begins a request on the connection of `lease`: on its HTTP/1.1 connection, on a stream of its session, or on a
  // stream of a session of another loop.
  UpstreamStream& begin(const pool::Lease& lease, const Request& request) LOOP_ONLY;
  http::ResponseHead& response() LOOP_ONLY { return response_; }
  void release_buffers() LOOP_ONLY;

 private:
  CrossLoopStreams& cross_loop_;  // those of this loop
  UpstreamStreamHandler& user_;
  http::ResponseHead response_;
  H1UpstreamStream h1_;
  H2UpstreamStream h2_;
};

}  // namespace carpool::proxy
