// The fields a proxy treats in a way of its own, told apart once when a field is read: by length, then one comparison.
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

bool iequals(std::string_view a, std::string_view b);  // ASCII case

}  // namespace carpool::proxy::http
