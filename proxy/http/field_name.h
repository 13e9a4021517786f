// FieldName: the fields that a proxy treats specially. A name is identified once, when its field is parsed: by length,
// then one comparison.
#pragma once

#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

enum class FieldName : std::uint8_t {
  other,
  authorization,
  connection,
  content_length,
  expect,
  host,
  http2_settings,
  keep_alive,
  max_forwards,
  proxy_authenticate,
  proxy_authentication_info,
  proxy_authorization,
  proxy_connection,
  te,
  trailer,
  transfer_encoding,
  upgrade,
  via,
  www_authenticate,
};
inline constexpr unsigned kFieldNames = static_cast<unsigned>(FieldName::www_authenticate) + 1;

FieldName field_name(std::string_view name);

bool iequals(std::string_view a, std::string_view b);  // ignores ASCII case

}  // namespace carpool::proxy::http
