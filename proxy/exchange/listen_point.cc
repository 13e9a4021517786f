#include "proxy/exchange/listen_point.h"

namespace carpool::proxy {

void ListenPoint::note_server_name(const std::string& name) {
  const Result<pool::Origin> named = pool::canonical_origin(pool::Scheme::https, name);
  interception_->other_name = !named || named->host != interception_->origin.host;
}

}  // namespace carpool::proxy
