#include "proxy/commands/demo/reply.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "proxy/http/http_date.h"
#include "proxy/http/reason_phrase.h"

namespace carpool::proxy {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxDelay = 60'000;  // milliseconds
constexpr std::string_view kLine = "carpool's demo: sixty-four bytes a line make any part checkable\n";
static_assert(kLine.size() == 64);
constexpr std::size_t kBlock = std::size_t{64} * 1024;
constexpr std::string_view kPaths =
    "/          the protocol, the connection, and the number of the request on it\n"
    "/bytes/N   N bytes\n"
    "/delay/MS  a response after MS milliseconds\n"
    "/echo      the request's body, as it arrives\n"
    "/close     a response, then the connection closes\n";

DemoReply says(std::uint16_t status, std::string body) {
  DemoReply reply;
  reply.status = status;
  reply.body = std::move(body);
  return reply;
}

// Returns the path and query of a target, "/bytes/10?x" for "http://demo/bytes/10?x".
std::string_view path_of(std::string_view target) {
  if (const auto scheme = target.find("://"); scheme != std::string_view::npos && target.front() != '/') {
    const auto slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find('?'));
}

// Returns the number after `prefix`, or nothing for another path, an invalid number, or one above `most`.
std::optional<std::uint64_t> number_behind(std::string_view prefix, std::string_view path, std::uint64_t most) {
  if (!path.starts_with(prefix)) return std::nullopt;
  const auto number = number_in<std::uint64_t>(path.substr(prefix.size()));
  return number && *number <= most ? number : std::nullopt;
}

std::string greeting(const DemoVisit& visit) {
  std::string out = "Hello from the demo's origin.\n";
  out.append("protocol    ").append(visit.protocol).append("\n");
  out.append("connection  ").append(std::to_string(visit.connection)).append("\n");
  out.append("request     ").append(std::to_string(visit.request)).append(" on this connection");
  return out.append(visit.request > 1 ? ": it was reused\n" : ": it is new\n");
}

std::uint16_t status_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::target_too_long:
      return 414;
    case FaultKind::head_too_large:
      return 431;
    case FaultKind::not_implemented:
      return 501;
    default:
      return 400;
  }
}

void add_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void add_framing(std::string& out, const DemoReply& reply, const http::RequestHead& request) {
  if (reply.echo && request.framing == http::Framing::chunked) return add_field(out, "Transfer-Encoding", "chunked");
  std::uint64_t length = reply.fill != 0 ? reply.fill : reply.body.size();
  if (reply.echo) length = request.framing == http::Framing::length ? request.length : 0;
  add_field(out, "Content-Length", std::to_string(length));
}

}  // namespace

DemoReply demo_reply(const http::RequestHead& request, const DemoVisit& visit) {
  const std::string_view path = path_of(request.target);
  DemoReply reply;
  if (path == "/") {
    reply.body = greeting(visit);
  } else if (const auto bytes = number_behind("/bytes/", path, kMaxBytes)) {
    reply.fill = *bytes;
  } else if (const auto wait = number_behind("/delay/", path, kMaxDelay)) {
    reply.delay = std::chrono::milliseconds(*wait);
    reply.body = "waited " + std::to_string(*wait) + " ms\n";
  } else if (path == "/echo") {
    reply.echo = true;
  } else if (path == "/close") {
    reply.body = "this connection ends here\n";
    reply.close = true;
  } else if (path.starts_with("/bytes/") || path.starts_with("/delay/")) {
    return says(400, "a number, up to " + std::to_string(path[1] == 'b' ? kMaxBytes : kMaxDelay) + "\n");
  } else {
    return says(404, std::string(kPaths));
  }
  return reply;
}

DemoReply demo_refusal(const Fault& fault) {
  DemoReply reply = says(status_of(fault.kind), fault.detail + "\n");
  reply.close = true;
  return reply;
}

void write_demo_head(std::string& out, const DemoReply& reply, const http::RequestHead& request,
                     const DemoVisit& visit) {
  out.append("HTTP/1.1 ")
      .append(std::to_string(reply.status))
      .append(" ")
      .append(http::reason_phrase(reply.status))
      .append("\r\n");
  add_field(out, "Server", "carpool-demo");
  // An origin with a clock must send Date (RFC 9110 §6.6.1).
  add_field(out, "Date", http::date_text(std::chrono::system_clock::now()));
  add_field(out, "Content-Type", reply.echo ? "application/octet-stream" : "text/plain; charset=utf-8");
  add_field(out, "Demo-Connection", std::to_string(visit.connection));
  add_field(out, "Demo-Request", std::to_string(visit.request));
  if (reply.close || !request.keep_alive) {
    add_field(out, "Connection", "close");
  } else if (request.version == http::Version::http10) {
    add_field(out, "Connection", "keep-alive");
  }
  add_framing(out, reply, request);
  out.append("\r\n");
}

std::string_view demo_fill() {
  static const std::string block = [] {
    std::string lines;
    while (lines.size() < kBlock) lines += kLine;
    return lines;
  }();
  return block;
}

}  // namespace carpool::proxy
