#include "proxy/http/error_reply.h"

#include <array>

#include "base/ascii.h"
#include "base/utf8.h"
#include "proxy/http/forward.h"
#include "proxy/http/http_date.h"
#include "proxy/http/reason_phrase.h"

namespace carpool::proxy::http {

namespace {

// The codes of gRPC that a fault may have (grpc/doc/statuscodes.md).
enum class Grpc : std::uint8_t {
  unknown = 2,
  deadline_exceeded = 4,
  permission_denied = 7,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

// Status, Proxy-Status error and gRPC code of each FaultKind, one row each, in the order of the enum. The code is that
// of gRPC's mapping of HTTP statuses (grpc/doc/http-grpc-status-mapping.md), which makes 429, 502, 503 and 504
// `unavailable`, with three exceptions (and Fault::grpc): a deadline that passes after the request was sent is
// `deadline_exceeded`, because clients retry after `unavailable`; content that is too large is `resource_exhausted`, as
// in a gRPC library; and what carpool does not implement is `unimplemented`.
struct FaultRow {
  FaultKind kind;
  std::string_view name;
  std::uint16_t status;
  std::string_view error;  // Proxy-Status error type, RFC 9209 §2.3
  Grpc grpc;
};
using enum FaultKind;
constexpr std::array kRows = {
    FaultRow{malformed_request, "malformed_request", 400, "http_request_error", Grpc::internal},
    FaultRow{head_timeout, "head_timeout", 408, "http_request_error", Grpc::unknown},
    FaultRow{head_too_large, "head_too_large", 431, "http_request_error", Grpc::resource_exhausted},
    FaultRow{target_too_long, "target_too_long", 414, "http_request_error", Grpc::internal},
    FaultRow{body_too_large, "body_too_large", 413, "http_request_error", Grpc::resource_exhausted},
    FaultRow{not_implemented, "not_implemented", 501, "http_request_error", Grpc::unimplemented},
    FaultRow{version_not_supported, "version_not_supported", 505, "http_request_error", Grpc::unknown},
    FaultRow{misdirected, "misdirected", 421, "http_request_error", Grpc::unknown},
    FaultRow{loop_detected, "loop_detected", 508, "proxy_loop_detected", Grpc::unknown},
    FaultRow{egress_denied, "egress_denied", 403, "http_request_denied", Grpc::permission_denied},
    FaultRow{not_authenticated, "not_authenticated", 407, "http_request_denied", Grpc::unauthenticated},
    FaultRow{client_gone, "client_gone", 400, "http_request_error", Grpc::internal},
    FaultRow{draining, "draining", 503, "proxy_internal_response", Grpc::unavailable},
    FaultRow{overloaded, "overloaded", 503, "proxy_internal_response", Grpc::unavailable},
    FaultRow{rate_limited, "rate_limited", 429, "http_request_denied", Grpc::unavailable},
    FaultRow{queue_full, "queue_full", 503, "connection_limit_reached", Grpc::unavailable},
    FaultRow{wait_timeout, "wait_timeout", 503, "connection_limit_reached", Grpc::unavailable},
    FaultRow{origins_exhausted, "origins_exhausted", 503, "connection_limit_reached", Grpc::unavailable},
    FaultRow{dns_error, "dns_error", 502, "dns_error", Grpc::unavailable},
    FaultRow{dns_timeout, "dns_timeout", 504, "dns_timeout", Grpc::unavailable},
    FaultRow{connect_refused, "connect_refused", 502, "connection_refused", Grpc::unavailable},
    FaultRow{connect_timeout, "connect_timeout", 504, "connection_timeout", Grpc::unavailable},
    FaultRow{unroutable, "unroutable", 502, "destination_ip_unroutable", Grpc::unavailable},
    FaultRow{tls_certificate, "tls_certificate", 502, "tls_certificate_error", Grpc::unavailable},
    FaultRow{tls_protocol, "tls_protocol", 502, "tls_protocol_error", Grpc::unavailable},
    FaultRow{parent_refused, "parent_refused", 502, "connection_refused", Grpc::unavailable},
    FaultRow{budget, "budget", 503, "connection_limit_reached", Grpc::unavailable},
    FaultRow{connection_terminated, "connection_terminated", 502, "connection_terminated", Grpc::unavailable},
    FaultRow{response_incomplete, "response_incomplete", 502, "http_response_incomplete", Grpc::unavailable},
    FaultRow{malformed_response, "malformed_response", 502, "http_protocol_error", Grpc::unavailable},
    FaultRow{response_head_too_large, "response_head_too_large", 502, "http_response_header_section_size",
             Grpc::unavailable},
    FaultRow{informational_limit, "informational_limit", 502, "http_protocol_error", Grpc::unavailable},
    FaultRow{response_timeout, "response_timeout", 504, "http_response_timeout", Grpc::deadline_exceeded},
    FaultRow{request_timeout, "request_timeout", 504, "http_response_timeout", Grpc::deadline_exceeded},
    FaultRow{internal, "internal", 500, "proxy_internal_error", Grpc::unknown},
};
constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(internal) + 1;
}
static_assert(in_order());

const FaultRow& row(FaultKind kind) {
  return kRows[static_cast<std::size_t>(kind)];
}

constexpr std::size_t kMaxDetail = 300;

// Returns the text of a Fault without detail.
std::string_view plain_words(FaultKind kind) {
  switch (kind) {
    case queue_full:
      return "wait queue full";
    case wait_timeout:
      return "wait timed out";
    case draining:
      return "the proxy is stopping";
    default:
      return fault_name(kind);
  }
}

// Returns what the reply says, in UTF-8: a detail may quote bytes of the client or of the origin.
std::string words(const Fault& fault) {
  return as_utf8(fault.detail.empty() ? plain_words(fault.kind) : std::string_view(fault.detail), kMaxDetail);
}

// Appends a quoted string (RFC 8941 §3.3.3): printable ASCII, with quote and backslash escaped.
void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c >= 0x20 && c <= 0x7E ? c : '?');
  }
  out.push_back('"');
}

// Returns the response body: one line of plain text that no client can mistake for markup.
std::string body_of(const FaultStatus& mapped, std::string_view detail) {
  std::string body("carpool: ");
  body.append(mapped.error).append(": ");
  for (const char c : detail) {
    const auto code = static_cast<unsigned char>(c);
    body.push_back(code < 0x20 || code == 0x7F ? '?' : c);
  }
  return body.append("\n");
}

// Appends a grpc-message: bytes other than printable ASCII, and the percent sign, as %XX (grpc/doc/PROTOCOL-HTTP2.md).
void append_percent_encoded(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c >= 0x20 && c <= 0x7E && c != '%') {
      out.push_back(c);
      continue;
    }
    append_hex(out += '%', c, kUpperHex);
  }
}

// Appends the fields that every local reply has.
void append_cause(std::string& out, const Fault& fault, std::string_view error, const ReplyRules& rules) {
  if (rules.date) out.append("\r\nDate: ").append(date_text(*rules.date));
  out.append("\r\nVia: 1.1 ").append(rules.via_pseudonym);
  out.append("\r\nProxy-Status: carpool; error=").append(error).append("; details=");
  append_quoted(out, words(fault));
}

}  // namespace

FaultStatus fault_status(FaultKind kind) {
  const FaultRow& found = row(kind);
  // 503 means a temporary condition (the pool is full, or this instance is stopping and another one takes over), so it
  // gets Retry-After. So does 429: every rate limit is at least one per second.
  return {found.status, reason_phrase(found.status), found.error, found.status == 503 || found.status == 429};
}

std::string_view fault_name(FaultKind kind) {
  return row(kind).name;
}

std::uint8_t grpc_code(const Fault& fault) {
  return fault.grpc != 0 ? fault.grpc : static_cast<std::uint8_t>(row(fault.kind).grpc);
}

std::uint16_t write_error_reply(std::string& out, const Fault& fault, const ReplyRules& rules) {
  const FaultStatus mapped = fault_status(fault.kind);
  const std::string body = body_of(mapped, words(fault));
  out.append("HTTP/1.1 ").append(std::to_string(mapped.status)).append(1, ' ').append(mapped.reason);
  append_cause(out, fault, mapped.error, rules);
  if (mapped.retry_after) out.append("\r\nRetry-After: ").append(std::to_string(fault.retry_after));
  out.append("\r\n").append(fault.challenge);
  append_persistence(out, rules.client_version, rules.close, rules.keep_alive);
  out.append("Content-Type: text/plain; charset=utf-8\r\nContent-Length: ").append(std::to_string(body.size()));
  out.append("\r\n\r\n");
  if (!rules.head_request) out.append(body);
  return mapped.status;
}

// RFC 9110 §8.3.1: the type is not case-sensitive. application/grpc-web is another protocol.
bool is_grpc_type(std::string_view value) {
  constexpr std::string_view kType = "application/grpc";
  if (!iequals(value.substr(0, kType.size()), kType)) return false;
  return value.size() == kType.size() || std::string_view("+; \t").find(value[kType.size()]) != std::string_view::npos;
}

bool is_grpc(const RequestHead& request) {
  return request.version == Version::http2 && is_grpc_type(request.fields.get("content-type"));
}

std::uint16_t write_grpc_reply(std::string& out, const Fault& fault, const ReplyRules& rules) {
  const FaultStatus mapped = fault_status(fault.kind);
  out.append("HTTP/1.1 200 OK");
  append_cause(out, fault, mapped.error, rules);
  out.append("\r\nContent-Type: application/grpc\r\ngrpc-status: ").append(std::to_string(grpc_code(fault)));
  out.append("\r\ngrpc-message: carpool: ").append(mapped.error).append(": ");
  append_percent_encoded(out, words(fault));
  out.append("\r\n\r\n");
  return mapped.status;
}

}  // namespace carpool::proxy::http
