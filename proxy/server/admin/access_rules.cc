#include "proxy/server/admin/access_rules.h"

#include <arpa/inet.h>

#include <array>

#include "proxy/http/field_name.h"
#include "proxy/net/tls/server_context.h"
#include "proxy/server/admin/index.h"

namespace carpool::proxy::admin {
namespace {

bool is_ip(std::string_view text, int family) {
  const std::string copy(text.substr(0, 64));
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(family, copy.c_str(), bytes.data()) == 1;
}

bool digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the host without its port; empty if `authority` is not host[:port].
std::optional<std::string_view> host_of(std::string_view authority) {
  const bool bracketed = authority.starts_with('[');
  const std::size_t end = bracketed ? authority.find(']') : authority.find(':');
  if (bracketed && end == std::string_view::npos) return std::nullopt;
  const std::string_view host = authority.substr(0, bracketed ? end + 1 : end);
  const std::string_view rest = authority.substr(host.size());
  if (!rest.empty() && (rest.front() != ':' || !digits(rest.substr(1)))) return std::nullopt;
  return host;
}

bool exempt(std::string_view path) {
  return path == "/livez" || path == "/readyz" || path == "/metrics";
}

}  // namespace

// Returns false for a page of another site whose name resolves to this address (DNS rebinding): it sends the name of
// that site as Host, for which this listener has no certificate.
bool host_allowed(std::string_view authority, const ListenerIdentity& identity) {
  const auto host = host_of(authority);
  if (!host || host->empty()) return false;
  if (host->front() == '[') return is_ip(host->substr(1, host->size() - 2), AF_INET6);
  return is_ip(*host, AF_INET) || http::iequals(*host, "localhost") ||
         (identity != nullptr && identity->names(std::string(*host)));
}

bool forged(const AdminRequest& request, bool tls) {
  if (request.reads()) return false;
  // Different ports of one host are one *site*, so "same-site" may be the page of another program on localhost.
  const std::string_view site = request.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  if (request.origin.empty()) return false;
  const std::string_view scheme = tls ? "https://" : "http://";
  return !request.origin.starts_with(scheme) || !http::iequals(request.origin.substr(scheme.size()), request.host);
}

bool token_matches(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size() || !http::iequals(authorization.substr(0, kScheme.size()), kScheme))
    return false;
  std::string_view given = authorization.substr(kScheme.size());
  while (given.starts_with(' ')) given.remove_prefix(1);
  // Compares every byte, even after the first difference, so that the time reveals nothing about the token.
  volatile unsigned char difference = given.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = token.empty() ? '\0' : token[i % token.size()];
    difference = static_cast<unsigned char>(difference | static_cast<unsigned char>(given[i] ^ expected));
  }
  return difference == 0 && !token.empty();
}

std::optional<Response> refusal(const AdminRequest& request, const Rules& rules, std::string_view path) {
  // The metrics listener serves no secret and changes nothing, and scrapers address it by the name of a service.
  const bool any_host = rules.unix_socket || rules.metrics_only;
  if (!any_host && !host_allowed(request.host, rules.identity)) {
    return error_response(403, "Host must be an IP address, localhost or a name of the certificate");
  }
  if (!rules.token.empty() && !exempt(path) && !token_matches(request.authorization, rules.token)) {
    // A browser receives the page, which prompts for the token and contains no data of this instance.
    Response response =
        path == "/" && request.reads() ? index_response() : error_response(401, "a bearer token is required");
    response.status = 401;
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"carpool\"");
    return response;
  }
  if (forged(request, rules.identity != nullptr))
    return error_response(403, "refused: the request comes from another site");
  if (rules.metrics_only && !exempt(path)) return error_response(404, "not found");
  return std::nullopt;
}

}  // namespace carpool::proxy::admin
