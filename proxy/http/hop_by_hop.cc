#include "proxy/http/hop_by_hop.h"

#include <array>

#include "proxy/http/field_name.h"
#include "proxy/http/member_reader.h"

namespace carpool::proxy::http {

namespace {
// Scope: what a field applies to. A new field name is classified here.
enum class Scope : std::uint8_t { hop, length, host, max_forwards, expect, message };

Scope scope_of(FieldName name) {
  switch (name) {
    case FieldName::connection:
    case FieldName::http2_settings:
    case FieldName::keep_alive:
    case FieldName::proxy_authenticate:
    case FieldName::proxy_authentication_info:
    case FieldName::proxy_authorization:
    case FieldName::proxy_connection:
    case FieldName::te:
    case FieldName::transfer_encoding:
    case FieldName::upgrade:
      return Scope::hop;
    case FieldName::content_length:
      return Scope::length;
    case FieldName::host:
      return Scope::host;
    case FieldName::max_forwards:
      return Scope::max_forwards;
    case FieldName::expect:
      return Scope::expect;
    case FieldName::authorization:
    case FieldName::trailer:
    case FieldName::via:
    case FieldName::www_authenticate:
    case FieldName::other:
      return Scope::message;
  }
  return Scope::hop;
}

// Returns false if a quoted string begins in the value and does not end (RFC 9110 §5.6.4).
bool quotes_end(std::string_view value) {
  bool quoted = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '"') quoted = !quoted;
    if (quoted && value[i] == '\\') ++i;
  }
  return !quoted;
}

// Returns true for an open quoted string in Forwarded, which would hide the member that carpool appends.
bool hides_ours(const Fields::Field& field, const ForwardRules& rules) {
  return rules.client_name == "forwarded" && iequals(field.name, rules.client_name) && !quotes_end(field.value);
}

bool replaced_by_trace(const Fields::Field& field, const ForwardRules& rules) {
  return iequals(field.name, "traceparent") || (rules.begins_trace && iequals(field.name, "tracestate"));
}
}  // namespace

bool passes(const RequestHead& head, std::size_t i, const ConnectionOptions& options, const ForwardRules& rules) {
  const Scope scope = scope_of(head.fields.id(i));
  if (scope == Scope::hop || scope == Scope::length || scope == Scope::host) return false;  // written by us
  if (scope == Scope::max_forwards && rules.max_forwards >= 0) return false;
  // An HTTP/1.0 client does not wait for 100, so its Expect has no meaning (RFC 9110 §10.1.1).
  if (scope == Scope::expect && head.version == Version::http10) return false;
  if (rules.set != nullptr && rules.set->has(head.fields[i].name)) return false;
  if (hides_ours(head.fields[i], rules)) return false;
  if (!rules.traceparent.empty() && replaced_by_trace(head.fields[i], rules)) return false;
  return !options.lists(head.fields[i].name);
}

bool returns(const Fields& fields, std::size_t i, const ConnectionOptions& options, bool length) {
  const Scope scope = scope_of(fields.id(i));
  if (scope == Scope::hop) return false;
  if (scope == Scope::length) return length;
  return !options.lists(fields[i].name);
}

bool wants_trailers(const Fields& fields) {
  MemberReader list(fields, FieldName::te);
  for (std::string_view coding; list.next(coding);) {
    if (iequals(coding, "trailers")) return true;
  }
  return false;
}

bool asks_for_trailers(const RequestHead& head, const ConnectionOptions& options) {
  return (options.te || head.version == Version::http2) && wants_trailers(head.fields);
}

namespace {
bool offers(const Fields& request, std::string_view protocol) {
  if (iequals(protocol, "h2c")) return false;
  MemberReader list(request, FieldName::upgrade);
  for (std::string_view offered; list.next(offered);) {
    if (iequals(offered, protocol)) return true;
  }
  return false;
}
}  // namespace

bool switches_as_offered(const Fields& request, const Fields& switched) {
  constexpr std::size_t kMaxLayers = 16;  // each is searched for in the whole list of the request
  std::size_t layers = 0;
  bool any = false;
  MemberReader list(switched, FieldName::upgrade);
  for (std::string_view protocol; list.next(protocol);) {
    if (++layers > kMaxLayers) return false;
    const bool offered = offers(request, protocol);
    any = any || offered;
    if (!offered && !iequals(protocol, "HTTP/1.1")) return false;  // above TLS (RFC 2817, 3.3), never alone
  }
  return any;
}

std::string_view protocol_version(Version version) {
  constexpr std::array<std::string_view, 3> kNames{"1.0", "1.1", "2.0"};
  return kNames[static_cast<std::size_t>(version)];
}

}  // namespace carpool::proxy::http
