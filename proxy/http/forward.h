// What a proxy changes in a head on its way: pure rules, one table (RFC 9110 §7.6, RFC 9112).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Where a request wants to go, before aliases and listener rules (CONTRACT "Addressing a request").
enum class TargetForm : std::uint8_t { origin, absolute, authority, asterisk };
struct Target {
  TargetForm form = TargetForm::origin;
  pool::Scheme scheme = pool::Scheme::http;  // tcp for the authority form
  bool named = false;  // the authority is a part of the target (absolute form, :authority), not a Host beside it
  // host[:port] of absolute or authority form, else of Host; without userinfo. Empty only in HTTP/1.0 without Host.
  std::string_view authority;
  // What the origin gets: "/x?q", "*" for OPTIONS; never empty. "?q" where an absolute form has a query and no path:
  // write_request() puts the "/" in front.
  std::string_view path;
};
// Refuses (malformed_request) what RFC 9112 §3.2 refuses: no or several Host, a Host that does not parse, empty host,
// unclosed IPv6, non-numeric port, origin-form that does not start with "/", asterisk with another method than OPTIONS,
// authority-form with another method than CONNECT, userinfo, fragment, another scheme than http and https. Control
// bytes do not pass the reader. Views point into `head`.
Result<Target> parse_target(const RequestHead& head);

struct ForwardRules {
  std::string_view via_pseudonym;  // "carpool-1a2b3c4d"
  std::string_view host;           // value of Host for the origin
  std::string_view path;
  bool upgrade = false;   // pass Connection: Upgrade + Upgrade on (websocket and other tokens, never h2c)
  int max_forwards = -1;  // value to send, or -1 to leave as received
};
// Our own pseudonym in Via: the request has been here before.
bool via_contains(const Fields& fields, std::string_view pseudonym);

// Serialises the head for the upstream (always HTTP/1.1, origin-form, keep-alive): hop-by-hop fields and those that
// Connection lists removed (never the framing), Proxy-Authorization removed, TE reduced to trailers, Via appended, Host
// first, framing written by us (Content-Length or Transfer-Encoding: chunked).
void write_request(std::string& out, const RequestHead& head, const ForwardRules& rules);

struct ReplyRules {
  std::string_view via_pseudonym;  // empty: Via is there already
  Version client_version = Version::http11;
  bool close = false;  // say Connection: close (or, to 1.0 keep-alive clients, Connection: keep-alive when not)
  bool head_request = false;
  bool upgrade = false;  // 101: Connection: Upgrade + Upgrade pass
};
// How the body goes to this client: chunked, or until_close where the length is known to nobody, whatever the origin
// chose; an HTTP/1.0 client has only until_close.
Framing reply_framing(const ResponseHead& head, const ReplyRules& rules);
void write_response(std::string& out, const ResponseHead& head, const ReplyRules& rules);
void write_informational(std::string& out, const ResponseHead& head, std::string_view via_pseudonym);  // 100, 103

// May this trailer field be passed on? (RFC 9110 §6.5.1: never framing, routing, authentication.)
bool trailer_allowed(std::string_view name);

}  // namespace carpool::proxy::http
