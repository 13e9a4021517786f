#include "proxy/telemetry/otlp_spans.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>

#include "base/protobuf.h"
#include "proxy/telemetry/otlp_attributes.h"

namespace carpool::proxy::otlp {

namespace {

// Field numbers of trace.proto.
enum SpanField : std::uint32_t {
  kTraceId = 1,
  kSpanId = 2,
  kParentSpanId = 4,
  kName = 5,
  kKind = 6,
  kStart = 7,
  kEnd = 8,
  kAttributes = 9,
  kEvents = 11,
  kStatus = 15,
  kFlags = 16
};
constexpr std::uint32_t kSpans = 2;                      // field of ScopeSpans
constexpr std::uint32_t kEventTime = 1, kEventName = 2;  // fields of Event
constexpr std::uint32_t kMessage = 2, kCode = 3;         // fields of Status
constexpr std::uint64_t kServer = 2, kClient = 3;        // values of SpanKind
constexpr std::uint64_t kError = 2;                      // value of StatusCode
constexpr std::uint32_t kHasIsRemote = 0x100, kIsRemote = 0x200;

constexpr std::size_t kMaxHost = 255, kMaxUrl = 1280, kMaxWord = 64, kMaxError = 512;

std::string_view cut(std::string_view text, std::size_t max) {
  return text.substr(0, max);
}

// Returns true for a standard method. By the HTTP semantic conventions any other is reported as _OTHER, which bounds
// the number of names.
bool known_method(std::string_view method) {
  constexpr std::array<std::string_view, 9> kKnown{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS",
                                                   "PATCH",   "POST",   "PUT", "TRACE"};
  return std::find(kKnown.begin(), kKnown.end(), method) != kKnown.end();
}

std::uint64_t unix_nanoseconds(Instant at, Duration wall) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch() + wall).count();
  return since > 0 ? static_cast<std::uint64_t>(since) : 0;
}

// Returns the bytes of an identifier in network order.
std::array<char, 8> big_endian(std::uint64_t value) {
  std::array<char, 8> bytes;
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i) & 0xFF);
  return bytes;
}

void add_ids(ProtobufWriter& out, const Span& span) {
  const auto view = [](const std::array<char, 8>& id) { return std::string_view(id.data(), id.size()); };
  out.head(kTraceId, 16);
  for (const std::uint64_t half : {span.trace.high, span.trace.low}) {
    for (const char byte : big_endian(half)) out.little_endian(static_cast<std::uint8_t>(byte), 1);
  }
  out.bytes(kSpanId, view(big_endian(span.id)));
  if (span.parent != 0) out.bytes(kParentSpanId, view(big_endian(span.parent)));
  const std::uint32_t remote = span.parent != 0 ? kHasIsRemote | kIsRemote : kHasIsRemote;
  out.fixed32(kFlags, remote | span.flags);
}

void add_http(Attributes& add, const Span& span, std::string_view method) {
  add.text("http.request.method", method);
  if (method == "_OTHER") add.text("http.request.method_original", cut(span.method, kMaxWord));
  if (!span.host.empty()) {
    add.text("server.address", cut(span.host, kMaxHost));
    add.number("server.port", span.port);
  }
  if (!span.target.empty()) {
    const bool ip6 = span.host.find(':') != std::string_view::npos;
    std::array<char, 5> port;
    const auto port_end = std::to_chars(port.data(), port.data() + port.size(), span.port).ptr;
    add.text("url.full", {span.scheme, "://", ip6 ? "[" : "", cut(span.host, kMaxHost), ip6 ? "]:" : ":",
                          std::string_view(port.data(), static_cast<std::size_t>(port_end - port.data())),
                          cut(span.target, kMaxUrl)});
  }
  if (span.status != 0) add.number("http.response.status_code", span.status);
  if (!span.protocol_version.empty()) {
    add.text("network.protocol.name", "http");
    add.text("network.protocol.version", span.protocol_version);
  }
  add.number("http.request.body.size", span.bytes_in);
  add.number("http.response.body.size", span.bytes_out);
  if (!span.error_type.empty()) add.text("error.type", span.error_type);
}

// Adds the attributes of the pool, named like the fields of the access log.
void add_pool(Attributes& add, const Span& span) {
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  if (span.asked_pool) add.real("carpool.wait_seconds", seconds(span.waited));
  if (span.connection != 0) {
    add.number("carpool.connection", span.connection);
    add.number("carpool.reuse", span.reuse);
  }
  if (!span.opened.empty()) {
    add.text("carpool.opened", span.opened);
    add.real("carpool.dial_seconds", seconds(span.dialed));
  }
  add.number("carpool.retries", span.retries);
  if (!span.retried.empty()) add.text("carpool.retried", span.retried);
  if (!span.not_repeated.empty()) add.text("carpool.not_repeated", cut(span.not_repeated, kMaxError));
}

void add_events(ProtobufWriter& out, const Span& span, Duration wall) {
  const auto event = [&](std::string_view name, Instant at) {
    if (at == Instant{}) return;
    const std::size_t begun = out.begin(kEvents);
    out.fixed64(kEventTime, unix_nanoseconds(at, wall));
    out.bytes(kEventName, name);
    out.end(begun);
  };
  event("carpool.wait", span.wait);
  event("carpool.dial", span.dial);
  event("carpool.send", span.send);
  event("carpool.first_byte", span.first_byte);
}

}  // namespace

void append_span(std::string& to, const Span& span, Duration wall) {
  ProtobufWriter out(to);
  const std::string_view method = known_method(span.method) ? span.method : "_OTHER";
  const std::size_t begun = out.begin(kSpans);
  add_ids(out, span);
  out.bytes(kName, method == "_OTHER" ? "HTTP" : method);
  out.number(kKind, span.to_origin ? kClient : kServer);
  out.fixed64(kStart, unix_nanoseconds(span.began, wall));
  out.fixed64(kEnd, unix_nanoseconds(span.ended, wall));
  Attributes add(out, kAttributes);
  add_http(add, span, method);
  add_pool(add, span);
  add_events(out, span, wall);
  if (!span.error_type.empty()) {
    const std::size_t status = out.begin(kStatus);
    const std::string_view message = cut(span.error, kMaxError);
    if (!message.empty()) {
      out.head(kMessage, message.size());
      out.ascii(message);
    }
    out.number(kCode, kError);
    out.end(status);
  }
  out.end(begun);
}

}  // namespace carpool::proxy::otlp
