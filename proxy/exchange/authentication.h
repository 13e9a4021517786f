// Authentication: whether a request's client may use the listener (listen.credentials_file).
#pragma once

#include <optional>
#include <string>

#include "base/fault.h"
#include "exec/role.h"
#include "metrics/events.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

class ListenPoint;
struct ExchangeContext;

// Returns the result, which the caller counts; nothing if the listener asks for no credentials. `user`: the client's
// name if it was accepted.
std::optional<metrics::Authentication> authenticate(const ListenPoint& listener, const http::Fields& fields,
                                                    std::string& user);

// Returns no fault if the request may go on; counts the result.
std::optional<Fault> refuse_stranger(const ExchangeContext& context, const ListenPoint& listener,
                                     const http::Fields& fields, std::string& user) LOOP_ONLY;

}  // namespace carpool::proxy
