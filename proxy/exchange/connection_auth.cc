#include "proxy/exchange/connection_auth.h"

#include <string_view>

namespace carpool::proxy {

namespace {
// Returns true if any member of the list begins with such a scheme, as in "Basic realm=x, NTLM". A comma inside a
// quoted string may be misread as the start of a member. The connection is then private without need, but never shared
// by mistake.
bool names_connection_scheme(std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    const std::string_view scheme = item.substr(0, item.find_first_of(" \t"));
    if (http::iequals(scheme, "ntlm") || http::iequals(scheme, "negotiate")) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

template <class Wanted>
bool any_names_connection_scheme(const http::Fields& fields, Wanted wanted) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (wanted(fields.id(i)) && names_connection_scheme(fields[i].value)) return true;
  }
  return false;
}
}  // namespace

bool authenticates_connection(const http::ResponseHead& head) {
  using enum http::FieldName;
  if (!head.fields.may_have(www_authenticate) && !head.fields.may_have(proxy_authenticate)) return false;
  return any_names_connection_scheme(
      head.fields, [](http::FieldName id) { return id == www_authenticate || id == proxy_authenticate; });
}

bool authenticates_connection(const http::RequestHead& head) {
  using enum http::FieldName;
  if (!head.fields.may_have(authorization) && !head.fields.may_have(proxy_authorization)) return false;
  return any_names_connection_scheme(
      head.fields, [](http::FieldName id) { return id == authorization || id == proxy_authorization; });
}

}  // namespace carpool::proxy
