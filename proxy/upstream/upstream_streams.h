// UpstreamStreams: the streams of one exchange on connections and sessions of its own loop; one request uses one of
// them. Separate from the exchange, so that files that include the exchange do not include the protocols.
#pragma once

#include "proxy/upstream/h1_stream.h"
#include "proxy/upstream/h2/stream.h"

namespace carpool::proxy {

struct UpstreamStreams {
  UpstreamStreams(H2LoopContext& host, UpstreamStreamHandler& user, http::ResponseHead& response)
      : h1(host, user, response), h2(host, user, response) {}
  H1UpstreamStream h1;
  H2UpstreamStream h2;
};

}  // namespace carpool::proxy
