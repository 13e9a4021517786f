#include "proxy/exchange/max_forwards_reply.h"

#include <algorithm>
#include <charconv>

#include "proxy/http/hop_by_hop.h"
#include "proxy/http/http_date.h"

namespace carpool::proxy {

namespace {
// Returns true for fields that TRACE must not reflect (RFC 9110 §9.3.8), because a script could read credentials that
// it must not see.
bool secret(std::string_view name) {
  return http::iequals(name, "authorization") || http::iequals(name, "proxy-authorization") ||
         http::iequals(name, "cookie");
}

std::string reflected(const http::RequestHead& request) {
  std::string body = request.method + " " + request.target + " HTTP/";
  body.append(http::protocol_version(request.version)).append("\r\n");
  // A pseudo-header field has no place in message/http; as in any HTTP/1.1 form of the request, Host names the
  // authority.
  if (!request.authority.empty() && !request.fields.has(http::FieldName::host)) {
    body.append("Host: ").append(request.authority).append("\r\n");
  }
  for (std::size_t i = 0; i < request.fields.size(); ++i) {
    const http::Fields::Field field = request.fields[i];
    if (secret(field.name)) continue;
    body.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return body.append("\r\n");
}
}  // namespace

std::optional<std::uint32_t> max_forwards(const http::RequestHead& request) {
  if (!request.has_method("TRACE") && !request.has_method("OPTIONS")) return std::nullopt;
  const std::string_view text = request.fields.get("max-forwards");
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool too_large = error == std::errc::result_out_of_range;
  if ((error != std::errc() && !too_large) || end != text.data() + text.size()) return std::nullopt;
  constexpr std::uint32_t kMax = 1000;  // more hops than any path has
  return too_large ? kMax : std::min(value, kMax);
}

void write_max_forwards_reply(std::string& out, const http::RequestHead& request, const http::ReplyRules& rules) {
  const bool trace = request.has_method("TRACE");
  const std::string body = trace ? reflected(request) : std::string();
  out.append("HTTP/1.1 200 OK\r\nProxy-Status: carpool");
  if (rules.date) out.append("\r\nDate: ").append(http::date_text(*rules.date));
  out.append("\r\nVia: 1.1 ").append(rules.via_pseudonym).append("\r\n");
  out.append(trace ? "Content-Type: message/http\r\n"
                   : "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH\r\n");
  http::append_persistence(out, rules.client_version, rules.close, rules.keep_alive);
  out.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n").append(body);
}

}  // namespace carpool::proxy
