#include "proxy/exchange/connect_policy.h"

#include <algorithm>

#include "pool/origin.h"
#include "proxy/exchange/listen_point.h"

namespace carpool::proxy {

namespace {
// Without connect_ports, clients on this machine may use any port and others only 443.
bool port_allowed(const ListenPoint& listener, std::uint16_t port) {
  const config::Listen& settings = listener.settings();
  if (settings.connect_ports) {
    return std::find(settings.connect_ports->begin(), settings.connect_ports->end(), port) !=
           settings.connect_ports->end();
  }
  return !listener.address().ip() || listener.address().loopback() || port == 443;
}
}  // namespace

std::optional<Fault> check_connect(const ListenPoint& listener, const http::RequestHead& request,
                                   const http::Target& target) {
  if (!listener.settings().connect) {
    return Fault{FaultKind::egress_denied, Side::client, "this listener does not accept CONNECT"};
  }
  if (request.framing == http::Framing::chunked || request.length != 0) {
    return Fault{FaultKind::malformed_request, Side::client, "CONNECT with a body"};
  }
  Result<pool::Origin> origin = pool::canonical_origin(pool::Scheme::tcp, target.authority);
  if (!origin) return origin.take_fault();
  if (!port_allowed(listener, origin->port)) {
    return Fault{FaultKind::egress_denied, Side::client,
                 "CONNECT to port " + std::to_string(origin->port) + " is not allowed"};
  }
  return std::nullopt;
}

void write_tunnel_response(std::string& out, http::Version version, std::string_view via_pseudonym) {
  out.append(version == http::Version::http10 ? "HTTP/1.0" : "HTTP/1.1");
  out.append(" 200 Connection Established\r\nVia: 1.1 ").append(via_pseudonym).append("\r\n\r\n");
}

}  // namespace carpool::proxy
