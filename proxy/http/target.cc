// parse_target(): the four request-target forms of RFC 9112 §3.2. Called for every request; allocates only
// to compare an :authority with a Host of another spelling.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/ascii.h"
#include "proxy/http/char_class.h"
#include "proxy/http/forward.h"

namespace carpool::proxy::http {

namespace {

// Characters of a registered name. pool::canonical_origin() decides which names are hosts; only the shape is checked
// here, so that no two parsers extract different hosts.
constexpr CharTable kHost = [] {
  CharTable table{};
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = true;
  for (unsigned c = 0x80; c < 256; ++c) table[c] = true;
  for (const char c : {'-', '.', '_', '~', '%'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

// Returns true if two hexadecimal digits follow each percent sign (RFC 3986 §2.1).
bool well_encoded(std::string_view host) {
  for (std::size_t at = host.find('%'); at != std::string_view::npos; at = host.find('%', at + 3)) {
    if (at + 2 >= host.size() || hex_value(host[at + 1]) < 0 || hex_value(host[at + 2]) < 0) return false;
  }
  return true;
}

const char* check_port(std::string_view text) {
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return "the port is not a number";
    value = std::min(value * 10 + static_cast<unsigned>(c - '0'), 65536U);
  }
  return value > 65535 ? "the port is greater than 65535" : nullptr;
}

bool is_ipv6(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> name{};
  if (text.size() >= name.size()) return false;
  text.copy(name.data(), text.size());
  in6_addr address;
  return inet_pton(AF_INET6, name.data(), &address) == 1;
}

// Returns the position of the first byte of the path or query behind an authority, or the end.
std::size_t end_of_authority(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != '/' && text[end] != '?') ++end;
  return end;
}

// Checks host[:port]. Returns nullptr, or an error text.
const char* check_authority(std::string_view authority) {
  std::string_view rest = authority;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return "the IPv6 address has no closing bracket";
    if (!is_ipv6(rest.substr(1, end - 1))) return "the brackets do not contain an IPv6 address";
    rest.remove_prefix(end + 1);
  } else {
    const std::string_view host = prefix_of(rest, kHost);
    if (rest.find('@') != std::string_view::npos) return "the authority contains userinfo";
    if (host.empty()) return "the host is empty";
    if (!well_encoded(host)) return "the host has a broken percent-encoding";
    rest.remove_prefix(host.size());
  }
  if (rest.empty()) return nullptr;
  return rest.front() == ':' ? check_port(rest.substr(1)) : "the host contains an invalid character";
}

// Returns the port of an authority with its colon, or an empty text.
std::string_view port_of(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == authority.size()) return {};
  return authority.find(']', colon) == std::string_view::npos ? authority.substr(colon) : std::string_view();
}

Fault malformed_target(const char* what) {
  return {FaultKind::malformed_request, Side::client, what};
}

// Matches "http://" or "https://" in any case; "ws://" and "wss://" are their WebSocket equivalents (RFC 6455 §3).
std::optional<pool::Scheme> scheme_of(std::string_view target, std::string_view& rest) {
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view word = target.substr(0, colon);
  rest = target.substr(colon + 3);
  if (iequals(word, "http") || iequals(word, "ws")) return pool::Scheme::http;
  if (iequals(word, "https") || iequals(word, "wss")) return pool::Scheme::https;
  return std::nullopt;
}

// `host`: the checked value of Host.
Result<Target> absolute(const RequestHead& head, std::string_view host) {
  Target found;
  std::string_view rest;
  const std::optional<pool::Scheme> scheme = scheme_of(head.target, rest);
  if (!scheme) return malformed_target("the request target is neither a path nor an http or https URI");
  found.form = TargetForm::absolute;
  found.named = true;
  found.scheme = *scheme;
  const std::size_t end = end_of_authority(rest);
  found.authority = rest.substr(0, end);
  found.path = rest.substr(end);
  if (found.path.empty()) found.path = head.has_method("OPTIONS") ? "*" : "/";
  if (!host.empty() && found.authority == host) return found;  // checked already
  if (const char* error = check_authority(found.authority)) return malformed_target(error);
  return found;
}

Result<Target> authority(const RequestHead& head) {
  Target found;
  found.form = TargetForm::authority;
  found.named = true;
  found.scheme = pool::Scheme::tcp;
  found.authority = found.path = head.target;
  if (const char* error = check_authority(head.target)) return malformed_target(error);
  if (port_of(head.target).empty()) return malformed_target("CONNECT without a port");
  return found;
}

// Returns the checked value of the only Host; empty if it is, or for HTTP/1.0 without Host.
Result<std::string_view> host_of(const RequestHead& head) {
  const std::size_t hosts = head.fields.count(FieldName::host);
  if (hosts > 1) return malformed_target("more than one Host");
  if (hosts == 0) {
    if (head.version == Version::http10) return std::string_view();
    return malformed_target("no Host");
  }
  const std::string_view host = head.fields.get(FieldName::host);
  if (host.empty()) return host;  // valid (RFC 9110 §7.2); only another form of target has an authority then
  if (const char* error = check_authority(host)) return malformed_target(error);
  return host;
}

// Returns true if both authorities name the same origin (RFC 9113 §8.3.1: they are compared after normalization).
bool same_authority(std::string_view a, std::string_view b, pool::Scheme scheme) {
  if (iequals(a, b)) return true;  // nearly always
  const Result<pool::Origin> first = pool::canonical_origin(scheme, a);
  const Result<pool::Origin> second = pool::canonical_origin(scheme, b);
  return first && second && *first == *second;
}

// CONNECT has an :authority alone (RFC 9113 §8.5), which Host must not contradict (§8.3.1). One without a port names no
// other place.
Result<Target> connect_of_http2(const RequestHead& head) {
  Result<Target> found = authority(head);
  if (head.fields.count(FieldName::host) > 1) return malformed_target("CONNECT with more than one Host");
  std::string host(head.fields.get(FieldName::host));
  if (!found || host.empty()) return found;
  if (port_of(host).empty()) host.append(port_of(head.target));
  if (same_authority(head.target, host, found->scheme)) return found;
  return Fault{FaultKind::misdirected, Side::client, ":authority contradicts Host"};
}

// Uses :scheme and :authority of HTTP/2 (RFC 9113 §8.3.1). "https" requests TLS to the origin, like an absolute form;
// "http" is what every cleartext client sends, including one that is unaware of the proxy.
Result<Target> of_http2(const RequestHead& head) {
  Target found;
  if (iequals(head.scheme, "https")) {
    found.scheme = pool::Scheme::https;
    found.form = TargetForm::absolute;
  } else if (!iequals(head.scheme, "http")) {
    return malformed_target(":scheme is neither http nor https");
  }
  if (head.fields.count(FieldName::host) > 1) return malformed_target("more than one Host");
  const std::string_view host = head.fields.get(FieldName::host);
  found.authority = head.authority.empty() ? host : std::string_view(head.authority);
  found.named = found.form == TargetForm::absolute || !head.authority.empty();
  if (const char* error = check_authority(found.authority)) return malformed_target(error);
  if (!host.empty() && !head.authority.empty() && !same_authority(head.authority, host, found.scheme)) {
    return Fault{FaultKind::misdirected, Side::client, ":authority contradicts Host"};
  }
  if (head.target.find('#') != std::string::npos) return malformed_target("the request target has a fragment");
  if (head.target == "*" && found.form == TargetForm::origin) found.form = TargetForm::asterisk;
  found.path = head.target;
  return found;
}

}  // namespace

Result<Target> parse_target(const RequestHead& head) {
  if (head.version == Version::http2) return head.has_method("CONNECT") ? connect_of_http2(head) : of_http2(head);
  const Result<std::string_view> host = host_of(head);
  if (!host) return host.fault();
  const std::string_view target = head.target;
  if (target.find('#') != std::string_view::npos) return malformed_target("the request target has a fragment");
  if (head.has_method("CONNECT")) return authority(head);
  if (!target.starts_with('/') && target != "*") return absolute(head, *host);
  if (target == "*" && !head.has_method("OPTIONS")) return malformed_target("only OPTIONS may have the target *");
  if (host->empty() && head.fields.has(FieldName::host)) return malformed_target("the host is empty");
  Target found;
  found.form = target == "*" ? TargetForm::asterisk : TargetForm::origin;
  found.authority = *host;
  found.path = target;
  return found;
}

}  // namespace carpool::proxy::http
