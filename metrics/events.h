// The events that the Registry counts, with the values of their labels, and the data of a completed request.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace carpool::metrics {

using OriginSlot = std::uint32_t;              // the number of an origin's label
inline constexpr OriginSlot kNoOrigin = 0;     // refused before its origin was known: origin="none"
inline constexpr OriginSlot kOtherOrigin = 1;  // beyond max_origins: origin="other"

// The reason for closing a client's HTTP/2 connection.
inline constexpr std::array<std::string_view, 6> kAbuses{"resets",      "control", "continuations",
                                                         "header_list", "memory",  "unread"};

// The actions of load shedding (proxy/server/overload).
enum class Shed : std::uint8_t { new_clients, idle, accepts };
inline constexpr std::array<std::string_view, 3> kSheds{"new_clients", "idle", "accepts"};
// The ends of a client's TLS handshake.
enum class ClientHandshake : std::uint8_t { full, resumed, failed, timeout, rejected };
inline constexpr std::array<std::string_view, 5> kClientHandshakes{"full", "resumed", "failed", "timeout", "rejected"};
// The results of checking a client's credentials.
enum class Authentication : std::uint8_t {
  accepted,
  missing,
  malformed,  // not one field with a scheme that carpool supports
  rejected    // no user has these credentials
};
inline constexpr std::array<std::string_view, 4> kAuthentications{"accepted", "missing", "malformed", "rejected"};
// The side of a peer whose connection ended because it sent too many TLS messages without data.
enum class TlsPeer : std::uint8_t { client, origin };
inline constexpr std::array<std::string_view, 2> kTlsPeers{"client", "origin"};
// The responses of a parent proxy (upstream.proxy) that refuse a request: 407, another 4xx, 5xx, or none.
enum class ParentRefusal : std::uint8_t { credentials, forbidden, unavailable, other, unanswered };
inline constexpr std::array<std::string_view, 5> kParentRefusals{"credentials", "forbidden", "unavailable", "other",
                                                                 "unanswered"};
// The results of reading the header of the PROXY protocol at a listener that expects it.
enum class ProxyHeader : std::uint8_t { named, local, untrusted, malformed, missing };
inline constexpr std::array<std::string_view, 5> kProxyHeaders{"named", "local", "untrusted", "malformed", "missing"};
// The result of a CONNECT to an intercepted origin: intercepted, refused, or continued as a tunnel.
enum class Intercept : std::uint8_t {
  intercepted,
  refused,        // the client does not accept the certificate
  failed,         // another fault of the handshake, or header_timeout
  not_tls,        // no TLS: the CONNECT becomes a tunnel, as it does in the cases below
  alpn,           // the client offers neither h2 nor http/1.1
  no_common_tls,  // the client offers no version, cipher suite, signature or group that carpool has
  distrusted,     // the client refused the certificate before
  early,          // bytes followed before the response
  in_tls,         // the client uses TLS with the listener
  in_h2,          // the CONNECT arrived in an HTTP/2 stream
  no_leaf         // no certificate could be made
};
inline constexpr std::array<std::string_view, 11> kIntercepts{"intercepted", "refused",       "failed",     "not_tls",
                                                              "alpn",        "no_common_tls", "distrusted", "early",
                                                              "in_tls",      "in_h2",         "no_leaf"};
// The offer of a client's first message inside a CONNECT: the version of TLS, and of HTTP by ALPN.
enum class TlsOffer : std::uint8_t { tls13_h2, tls13_h1, tls13, tls12_h2, tls12_h1, tls12 };
inline constexpr std::array<std::string_view, 6> kTlsOffers{"tls13_h2", "tls13_h1", "tls13",
                                                            "tls12_h2", "tls12_h1", "tls12"};
// The way in which a client refuses a certificate: with an alert (RFC 8446 §6.2), or by closing without one.
enum class CertificateAlert : std::uint8_t { unknown_ca, bad_certificate, certificate_unknown, other, none };
inline constexpr std::array<std::string_view, 5> kCertificateAlerts{"unknown_ca", "bad_certificate",
                                                                    "certificate_unknown", "other", "none"};
// The result of reading a changed file with a credential of an origin.
enum class CredentialFile : std::uint8_t { renewed, failed };
inline constexpr std::array<std::string_view, 2> kCredentialFiles{"renewed", "failed"};
// The result of a request for a token (RFC 6749 §4.4).
enum class TokenRequest : std::uint8_t { granted, refused, unusable, timeout, failed };
inline constexpr std::array<std::string_view, 5> kTokenRequests{"granted", "refused", "unusable", "timeout", "failed"};
// The result of one of carpool's own spans (otlp.traces).
enum class OtlpSpan : std::uint8_t {
  exported,
  rejected,    // the collector accepted others of the same request (partial success)
  refused,     // the collector's response permits no other attempt
  given_up,    // every attempt failed
  buffer_full  // otlp.buffer
};
inline constexpr std::array<std::string_view, 5> kOtlpSpans{"exported", "rejected", "refused", "given_up",
                                                            "buffer_full"};
enum class OtlpSignal : std::uint8_t { traces, metrics };
inline constexpr std::array<std::string_view, 2> kOtlpSignals{"traces", "metrics"};
// The result of a request to the collector.
enum class OtlpRequest : std::uint8_t {
  accepted,
  refused,      // a status that permits no other attempt
  unavailable,  // 429, 502, 503, 504
  unusable,     // 200 with a body that is not an OTLP response
  timeout,      // otlp.timeout
  failed        // the collector was not reached, or its response is incomplete
};
inline constexpr std::array<std::string_view, 6> kOtlpRequests{"accepted", "refused", "unavailable",
                                                               "unusable", "timeout", "failed"};
// The reason for abandoning a request whose client could still have received a response.
enum class GivenUp : std::uint8_t { half_close, slow_body, slow_reader, unread };
inline constexpr std::array<std::string_view, 4> kGivenUps{"half_close", "slow_body", "slow_reader", "unread"};
// The limits that stop a client without a response: it waits until another one leaves, or its stream is refused.
enum class ClientLimit : std::uint8_t { connections, streams };
inline constexpr std::array<std::string_view, 2> kClientLimits{"connections", "streams"};
// The decision of the egress rules on an origin or an address.
enum class Egress : std::uint8_t { allowed, denied, reported };
inline constexpr std::array<std::string_view, 3> kEgress{"allowed", "denied", "reported"};

// Events of name resolution (proxy/net/dns).
enum class Dns : std::uint8_t { over_tcp, asked_again, addresses_left_out, resolv_conf_changed };
inline constexpr std::array<std::string_view, 4> kDns{"over_tcp", "asked_again", "addresses_left_out",
                                                      "resolv_conf_changed"};

// The reasons of retries: what made one safe, and the conditions of request.retry_on and request.per_try_timeout, which
// prove nothing.
enum class RetryReason : std::uint8_t {
  not_sent,
  goaway,
  refused_stream,
  idempotent_reused,
  misdirected,
  unauthorized,
  status,
  reset,
  connect_failure,
  per_try_timeout
};
inline constexpr std::array<std::string_view, 10> kRetryReasons{
    "not_sent",     "goaway", "refused_stream", "idempotent_reused", "misdirected",
    "unauthorized", "status", "reset",          "connect_failure",   "per_try_timeout"};

// HTTP/2 error codes of streams reset by origins; rare ones share the last.
inline constexpr std::array<std::string_view, 7> kResets{
    "REFUSED_STREAM", "CANCEL", "INTERNAL_ERROR", "PROTOCOL_ERROR", "NO_ERROR", "HTTP_1_1_REQUIRED", "other"};

// Hedged attempts (request.hedge), by result: the client got their response, it got that of the late attempt, or they
// got none.
enum class Hedge : std::uint8_t { won, lost, failed };
inline constexpr std::array<std::string_view, 3> kHedges{"won", "lost", "failed"};

// Requests refused, and dials refused or delayed, by an origin's rate limits.
enum class Limit : std::uint8_t { requests, connections };
inline constexpr std::array<std::string_view, 2> kLimits{"requests", "connections"};

// Limits on what an origin may cause for one request.
enum class Bound : std::uint8_t { informational, attempts };
inline constexpr std::array<std::string_view, 2> kUpstreamBounds{"informational", "attempts"};

// A completed request.
struct RequestInfo {
  std::string_view method;
  std::uint16_t status = 0;        // as sent to the client; 499: it left before the response head
  Duration total{};                // from head to last byte
  std::optional<Duration> waited;  // for a connection; absent: not borrowed from the pool
  bool reused = false;             // it used a connection that had served before,
  Duration saved{}, saved_cpu{};   // which saved a dial of this duration
};

}  // namespace carpool::metrics
