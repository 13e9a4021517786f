#include "proxy/upstream/upstream_streams.h"

#include "proxy/upstream/connection.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/h2/cross_loop_streams.h"

namespace carpool::proxy {

UpstreamStreams::UpstreamStreams(CrossLoopStreams& cross_loop, UpstreamStreamHandler& user)
    : cross_loop_(cross_loop), user_(user), h1_(cross_loop, user, response_), h2_(cross_loop, user, response_) {}

UpstreamStream& UpstreamStreams::begin(const pool::Lease& lease, const Request& request) {
  response_.clear();
  auto& connection = static_cast<Connection&>(*lease);
  if (!lease.shared()) {
    h1_.begin(connection, request.method, request.upgrade, request.bare_lf);
    return h1_;
  }
  auto& session = static_cast<H2Connection&>(connection);
  if (lease.home() != cross_loop_.loop().id()) {
    CrossLoopStream& stream = cross_loop_.acquire(lease.home());
    stream.begin(session, user_, response_);
    return stream;
  }
  h2_.begin(session);
  return h2_;
}

void UpstreamStreams::release_buffers() {
  response_.clear();
  response_.shrink();
}

}  // namespace carpool::proxy
