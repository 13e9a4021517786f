#include "proxy/http/hop_fields.h"

#include <array>

#include "proxy/http/list.h"

namespace carpool::proxy::http {

namespace {
bool listed(const ConnectionOptions& options, const Fields& fields, std::size_t i) {
  return options.lists(fields[i].name);
}
}  // namespace

bool passes(const RequestHead& head, std::size_t i, const ConnectionOptions& options, const ForwardRules& rules) {
  const Fields& fields = head.fields;
  switch (fields.id(i)) {
    case FieldName::connection:
    case FieldName::content_length:
    case FieldName::host:
    case FieldName::http2_settings:
    case FieldName::keep_alive:
    case FieldName::proxy_authenticate:
    case FieldName::proxy_authentication_info:
    case FieldName::proxy_authorization:
    case FieldName::proxy_connection:
    case FieldName::te:
    case FieldName::transfer_encoding:
    case FieldName::upgrade:
      return false;
    case FieldName::max_forwards:
      return rules.max_forwards < 0 && !listed(options, fields, i);
    case FieldName::expect:
      // An HTTP/1.0 client waits for no 100: what it says is no expectation (RFC 9110 §10.1.1).
      return head.version != Version::http10 && !listed(options, fields, i);
    case FieldName::authorization:
    case FieldName::trailer:
    case FieldName::via:
    case FieldName::www_authenticate:
    case FieldName::other:
      return !listed(options, fields, i);
  }
  return false;
}

bool returns(const Fields& fields, std::size_t i, const ConnectionOptions& options, bool length) {
  switch (fields.id(i)) {
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
      return false;
    case FieldName::content_length:
      return length;
    case FieldName::expect:
    case FieldName::host:
    case FieldName::max_forwards:
    case FieldName::authorization:
    case FieldName::trailer:
    case FieldName::via:
    case FieldName::www_authenticate:
    case FieldName::other:
      return !listed(options, fields, i);
  }
  return false;
}

bool wants_trailers(const Fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields.id(i) != FieldName::te) continue;
    ListReader list(fields[i].value);
    for (std::string_view coding; list.next(coding);) {
      if (iequals(coding, "trailers")) return true;
    }
  }
  return false;
}

bool asks_for_trailers(const RequestHead& head, const ConnectionOptions& options) {
  return (options.te || head.version == Version::http2) && wants_trailers(head.fields);
}

std::string_view protocol_version(Version version) {
  constexpr std::array<std::string_view, 3> kNames{"1.0", "1.1", "2.0"};
  return kNames[static_cast<std::size_t>(version)];
}

}  // namespace carpool::proxy::http
