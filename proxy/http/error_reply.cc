#include "proxy/http/error_reply.h"

#include <array>

#include "proxy/http/forward.h"
#include "proxy/http/reason_phrase.h"

namespace carpool::proxy::http {

namespace {

// Status and Proxy-Status error of each FaultKind, one row each, in the order of the enum.
struct Row {
  FaultKind kind;
  std::string_view name;
  std::uint16_t status;
  std::string_view error;  // Proxy-Status error type, RFC 9209 §2.3
};
using enum FaultKind;
constexpr std::array kRows = {
    Row{malformed_request, "malformed_request", 400, "http_request_error"},
    Row{head_timeout, "head_timeout", 408, "http_request_error"},
    Row{head_too_large, "head_too_large", 431, "http_request_error"},
    Row{target_too_long, "target_too_long", 414, "http_request_error"},
    Row{body_too_large, "body_too_large", 413, "http_request_error"},
    Row{not_implemented, "not_implemented", 501, "http_request_error"},
    Row{version_not_supported, "version_not_supported", 505, "http_request_error"},
    Row{misdirected, "misdirected", 421, "http_request_error"},
    Row{loop_detected, "loop_detected", 508, "proxy_loop_detected"},
    Row{egress_denied, "egress_denied", 403, "http_request_denied"},
    Row{not_authenticated, "not_authenticated", 407, "http_request_denied"},
    Row{client_gone, "client_gone", 400, "http_request_error"},
    Row{draining, "draining", 503, "proxy_internal_response"},
    Row{overloaded, "overloaded", 503, "proxy_internal_response"},
    Row{rate_limited, "rate_limited", 429, "http_request_denied"},
    Row{queue_full, "queue_full", 503, "connection_limit_reached"},
    Row{wait_timeout, "wait_timeout", 503, "connection_limit_reached"},
    Row{origins_exhausted, "origins_exhausted", 503, "connection_limit_reached"},
    Row{dns_error, "dns_error", 502, "dns_error"},
    Row{dns_timeout, "dns_timeout", 504, "dns_timeout"},
    Row{connect_refused, "connect_refused", 502, "connection_refused"},
    Row{connect_timeout, "connect_timeout", 504, "connection_timeout"},
    Row{unroutable, "unroutable", 502, "destination_ip_unroutable"},
    Row{tls_certificate, "tls_certificate", 502, "tls_certificate_error"},
    Row{tls_protocol, "tls_protocol", 502, "tls_protocol_error"},
    Row{budget, "budget", 503, "connection_limit_reached"},
    Row{connection_terminated, "connection_terminated", 502, "connection_terminated"},
    Row{response_incomplete, "response_incomplete", 502, "http_response_incomplete"},
    Row{malformed_response, "malformed_response", 502, "http_protocol_error"},
    Row{response_head_too_large, "response_head_too_large", 502, "http_response_header_section_size"},
    Row{informational_limit, "informational_limit", 502, "http_protocol_error"},
    Row{response_timeout, "response_timeout", 504, "http_response_timeout"},
    Row{request_timeout, "request_timeout", 504, "http_response_timeout"},
    Row{internal, "internal", 500, "proxy_internal_error"},
};
constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(internal) + 1;
}
static_assert(in_order());

const Row& row(FaultKind kind) {
  return kRows[static_cast<std::size_t>(kind)];
}

constexpr std::size_t kLongestDetail = 300;

// The text that is used if a Fault has no detail.
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

std::string_view words(const Fault& fault) {
  return fault.detail.empty() ? plain_words(fault.kind) : std::string_view(fault.detail);
}

// Appends a quoted string (RFC 8941 §3.3.3): printable ASCII, with quote and backslash escaped.
void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text.substr(0, kLongestDetail)) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c >= 0x20 && c <= 0x7E ? c : '?');
  }
  out.push_back('"');
}

// Returns the response body: one line of plain text that no client can mistake for markup.
std::string body_of(const FaultStatus& told, std::string_view detail) {
  std::string body("carpool: ");
  body.append(told.error).append(": ");
  for (const char c : detail.substr(0, kLongestDetail)) {
    const auto code = static_cast<unsigned char>(c);
    body.push_back(code < 0x20 || code == 0x7F ? '?' : c);
  }
  return body.append("\n");
}

}  // namespace

FaultStatus fault_status(FaultKind kind) {
  const Row& said = row(kind);
  // 503 means a temporary condition (the pool is full, or this instance is stopping and another one takes over), so it
  // gets Retry-After. So does 429: every rate limit is at least one per second.
  return {said.status, reason_phrase(said.status), said.error, said.status == 503 || said.status == 429};
}

std::string_view fault_name(FaultKind kind) {
  return row(kind).name;
}

std::uint16_t write_error_reply(std::string& out, const Fault& fault, Version client_version, bool close,
                                bool head_request, std::string_view via_pseudonym, std::uint32_t keep_alive) {
  const FaultStatus told = fault_status(fault.kind);
  const std::string body = body_of(told, words(fault));
  out.append("HTTP/1.1 ").append(std::to_string(told.status)).append(1, ' ').append(told.reason);
  out.append("\r\nVia: 1.1 ").append(via_pseudonym);
  out.append("\r\nProxy-Status: carpool; error=").append(told.error).append("; details=");
  append_quoted(out, words(fault));
  if (told.retry_after) out.append("\r\nRetry-After: 1");
  out.append("\r\n").append(fault.challenge);
  append_persistence(out, client_version, close, keep_alive);
  out.append("Content-Type: text/plain; charset=utf-8\r\nContent-Length: ").append(std::to_string(body.size()));
  out.append("\r\n\r\n");
  if (!head_request) out.append(body);
  return told.status;
}

}  // namespace carpool::proxy::http
