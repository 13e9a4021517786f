// ParentProxy: the proxy through which origins are reached (upstream.proxy). Requests to an http origin go to it in
// absolute form, everything else through its CONNECT.
#pragma once

#include <string>

#include "pool/origin.h"

namespace carpool::proxy::net {

struct ParentProxy {
  pool::Origin place;         // http; dialed instead of the origin
  std::string authorization;  // value of Proxy-Authorization; empty: none. Never shown, sent to `place` only.
};

}  // namespace carpool::proxy::net
