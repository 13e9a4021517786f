// The rules of an origin for the requests that it may receive (origin.allow).
#pragma once

#include <optional>

#include "base/fault.h"
#include "exec/role.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

class ClientStream;
struct ExchangeContext;
struct OriginRuntime;

// Returns no fault if `origin` may receive the request; otherwise counts it and writes a log line.
std::optional<Fault> refused_by_rules(const ExchangeContext& context, const OriginRuntime& origin,
                                      const ClientStream& client, const http::RequestHead& request,
                                      const http::Target& target) LOOP_ONLY;

}  // namespace carpool::proxy
