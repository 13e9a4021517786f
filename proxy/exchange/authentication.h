// Authentication: decides whether a request's client may use the listener (listen.credentials_file).
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

// Returns the result, which the caller counts, or nothing if the listener requires no credentials. Sets `user` to the
// client's name if it was accepted.
std::optional<metrics::Authentication> authenticate(const ListenPoint& listener, const http::Fields& fields,
                                                    std::string& user);

// Counts the result. Returns a fault unless the request may continue.
std::optional<Fault> check_authentication(const ExchangeContext& context, const ListenPoint& listener,
                                          const http::Fields& fields, std::string& user) LOOP_ONLY;

}  // namespace carpool::proxy
