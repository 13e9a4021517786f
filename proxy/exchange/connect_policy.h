// CONNECT: which tunnels a listener allows (RFC 9110 §9.3.6).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

class ListenPoint;

// Returns no fault if the tunnel may be attempted. The egress rules apply later, to the resolved addresses.
std::optional<Fault> check_connect(const ListenPoint& listener, const http::RequestHead& request,
                                   const http::Target& target);

void write_tunnel_response(std::string& out, http::Version version, std::string_view via_pseudonym);

}  // namespace carpool::proxy
