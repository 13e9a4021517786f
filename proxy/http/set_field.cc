#include "proxy/http/set_field.h"

#include "proxy/http/char_class.h"
#include "proxy/http/field_name.h"

namespace carpool::proxy::http {

namespace {
constexpr std::string_view kProxy = "proxy-";
constexpr std::string_view kHop = "belongs to one connection";
constexpr std::string_view kFraming = "describes the framing, which carpool writes";
constexpr std::string_view kRouting = "describes the route, which carpool writes";
}  // namespace

std::string_view refused_name(std::string_view name) {
  if (name.starts_with(':')) return "is a pseudo-header field";
  if (name.empty() || prefix_of(name, kToken).size() != name.size()) return "is not a field name";
  switch (field_name(name)) {
    case FieldName::proxy_authenticate:
    case FieldName::proxy_authentication_info:
    case FieldName::proxy_authorization:
    case FieldName::connection:
    case FieldName::proxy_connection:
    case FieldName::keep_alive:
    case FieldName::upgrade:
    case FieldName::http2_settings:
    case FieldName::te:
      return kHop;
    case FieldName::content_length:
    case FieldName::expect:
    case FieldName::trailer:
    case FieldName::transfer_encoding:
      return kFraming;
    case FieldName::host:
    case FieldName::max_forwards:
    case FieldName::via:
      return kRouting;
    case FieldName::www_authenticate:
      return "belongs to responses";
    case FieldName::authorization:
    case FieldName::other:
      return iequals(name.substr(0, kProxy.size()), kProxy) ? kHop : std::string_view();
  }
  return kHop;
}

bool sendable_value(std::string_view value) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  if (value.empty() || blank(value.front()) || blank(value.back())) return false;
  return prefix_of(value, kReason).size() == value.size();
}

}  // namespace carpool::proxy::http
