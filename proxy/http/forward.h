// Rewrites heads as a proxy must (RFC 9110 §7.6, RFC 9112): pure functions without I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "pool/origin.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Target: where a request is addressed to, before aliases and listener rules.
enum class TargetForm : std::uint8_t { origin, absolute, authority, asterisk };
struct Target {
  TargetForm form = TargetForm::origin;
  pool::Scheme scheme = pool::Scheme::http;  // tcp for the authority form
  bool named = false;  // the authority is that of the target (absolute form, :authority), not that of Host
  // host[:port] of the absolute or authority form, else of Host; without userinfo. Empty only in HTTP/1.0 without Host.
  std::string_view authority;
  // Path and query for the origin: "/x?q", or "*" for OPTIONS; never empty. "?q" if an absolute form has a query but no
  // path; write_request() then prepends "/".
  std::string_view path;
};
// Returns malformed_request for what RFC 9112 §3.2 forbids: no or several Host, a Host that does not parse, an empty
// host, an unclosed IPv6 address, a non-numeric port, an origin form without leading "/", an asterisk with a method
// other than OPTIONS, an authority form with a method other than CONNECT, userinfo, a fragment, a scheme other than
// http and https. The reader has already rejected control bytes. Views point into `head`.
Result<Target> parse_target(const RequestHead& head);

struct ForwardRules {
  std::string_view via_pseudonym;  // "carpool-1a2b3c4d"; empty: no Via of ours
  std::string_view host;           // value of Host for the origin
  std::string_view path;
  // The next hop is a proxy: the target's scheme and authority in absolute form; empty: origin form.
  std::string_view absolute;
  std::string_view proxy_authorization;  // for that proxy; empty: none
  bool upgrade = false;   // pass Connection: Upgrade and Upgrade on (websocket and other tokens, never h2c)
  int max_forwards = -1;  // value to send, or -1 to forward it as received
  // Fields of end-to-end meaning that replace those of the same name in the request, whatever Connection lists; null:
  // none. Sent as sensitive over HTTP/2.
  const Fields* set = nullptr;
  // A field about the client, sent after those of the request; no name: none.
  std::string_view client_name, client_value;
  // Replaces the request's traceparent; empty: the request's is forwarded.
  std::string_view traceparent;
  bool begins_trace = false;  // the request's tracestate belongs to no trace and is not forwarded
};
// Returns true if Via contains our own pseudonym: the request loops.
bool via_contains(const Fields& fields, std::string_view pseudonym);

// Returns the members of Via in one line, without the first ones if they have more than `limit` bytes.
std::string members_of_via(const Fields& fields, std::size_t limit);

// Serialises the head for the upstream (always HTTP/1.1, origin form, keep-alive). Removes hop-by-hop fields, fields
// that Connection lists (never the framing) and Proxy-Authorization; reduces TE to trailers; appends Via; puts Host
// first; replaces fields by those of `set`; writes the framing itself (Content-Length or Transfer-Encoding: chunked).
void write_request(std::string& out, const RequestHead& head, const ForwardRules& rules);

struct ReplyRules {
  std::string_view via_pseudonym;  // empty: Via is already present
  Version client_version = Version::http11;
  bool close = false;  // send Connection: close (if false, HTTP/1.0 keep-alive clients get Connection: keep-alive)
  bool head_request = false;
  bool own = false;                // the response is a local reply: Proxy-Authenticate is for this client
  bool upgrade = false;            // 101: pass Connection: Upgrade and Upgrade on
  std::optional<WallTime> date{};  // of a local reply; nullopt: it has no Date
  // Seconds for which the client may keep the connection idle, sent as Keep-Alive: timeout; 0: not sent.
  std::uint32_t keep_alive = 0;
};
// Returns the idle time in seconds that is announced to a client if carpool closes after `idle_timeout`: a request sent
// at its end still arrives in time. 0: it is too short, or there is no limit.
std::uint32_t announced_keep_alive(Duration idle_timeout);
// Appends Connection, and Keep-Alive if `keep_alive` is not 0.
void append_persistence(std::string& out, Version client_version, bool close, std::uint32_t keep_alive);
// Returns the framing of the body towards this client, whatever framing the origin chose: chunked, or until_close, if
// the length is not known; an HTTP/1.0 client supports only until_close.
Framing reply_framing(const ResponseHead& head, const ReplyRules& rules);
// Returns true if the origin's Content-Length is passed on although no body follows: it is the length that GET would
// have. A 101 or 204 must not have one, in response to HEAD either (RFC 9110 §8.6).
bool keeps_length(const ResponseHead& head, const ReplyRules& rules);
void write_response(std::string& out, const ResponseHead& head, const ReplyRules& rules);
void write_informational(std::string& out, const ResponseHead& head, std::string_view via_pseudonym);  // 100, 103

// Returns true if this trailer field may be forwarded (RFC 9110 §6.5.1: never framing, routing, authentication).
// `grpc`: of a call, whose trailers are metadata of the application, and of which nothing is merged into the head.
bool trailer_allowed(std::string_view name, bool grpc = false);

}  // namespace carpool::proxy::http
