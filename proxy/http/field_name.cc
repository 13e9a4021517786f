#include "proxy/http/field_name.h"

#include <array>

namespace carpool::proxy::http {

namespace {
constexpr std::array<char, 256> kLower = [] {
  std::array<char, 256> table{};
  for (unsigned c = 0; c < 256; ++c) table[c] = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return table;
}();

char lower(char c) {
  return kLower[static_cast<unsigned char>(c)];
}

// `word` must be lower case and have the length of `name`.
FieldName if_is(std::string_view name, std::string_view word, FieldName found) {
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower(name[i]) != word[i]) return FieldName::other;
  }
  return found;
}
}  // namespace

bool iequals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

FieldName field_name(std::string_view name) {
  switch (name.size()) {
    case 2:
      return if_is(name, "te", FieldName::te);
    case 3:
      return if_is(name, "via", FieldName::via);
    case 4:
      return if_is(name, "host", FieldName::host);
    case 6:
      return if_is(name, "expect", FieldName::expect);
    case 7:
      return lower(name[0]) == 't' ? if_is(name, "trailer", FieldName::trailer)
                                   : if_is(name, "upgrade", FieldName::upgrade);
    case 10:
      return lower(name[0]) == 'c' ? if_is(name, "connection", FieldName::connection)
                                   : if_is(name, "keep-alive", FieldName::keep_alive);
    case 12:
      return if_is(name, "max-forwards", FieldName::max_forwards);
    case 13:
      return if_is(name, "authorization", FieldName::authorization);
    case 14:
      return lower(name[0]) == 'c' ? if_is(name, "content-length", FieldName::content_length)
                                   : if_is(name, "http2-settings", FieldName::http2_settings);
    case 16:
      return lower(name[0]) == 'p' ? if_is(name, "proxy-connection", FieldName::proxy_connection)
                                   : if_is(name, "www-authenticate", FieldName::www_authenticate);
    case 17:
      return if_is(name, "transfer-encoding", FieldName::transfer_encoding);
    case 18:
      return if_is(name, "proxy-authenticate", FieldName::proxy_authenticate);
    case 19:
      return if_is(name, "proxy-authorization", FieldName::proxy_authorization);
    case 25:
      return if_is(name, "proxy-authentication-info", FieldName::proxy_authentication_info);
    default:
      return FieldName::other;
  }
}

}  // namespace carpool::proxy::http
