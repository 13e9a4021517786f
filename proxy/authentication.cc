#include "proxy/authentication.h"

#include <string_view>

namespace carpool::proxy {

namespace {
// The scheme of any challenge in the list: "Basic realm=x, NTLM".
bool names_connection_scheme(std::string_view challenges) {
  while (!challenges.empty()) {
    const std::size_t comma = challenges.find(',');
    std::string_view item = challenges.substr(0, comma);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    const std::string_view scheme = item.substr(0, item.find_first_of(" \t"));
    if (http::iequals(scheme, "ntlm") || http::iequals(scheme, "negotiate")) return true;
    if (comma == std::string_view::npos) break;
    challenges.remove_prefix(comma + 1);
  }
  return false;
}
}  // namespace

bool authenticates_connection(const http::ResponseHead& head) {
  if (!head.fields.may_have(http::FieldName::www_authenticate) &&
      !head.fields.may_have(http::FieldName::proxy_authenticate)) {
    return false;
  }
  for (std::size_t i = 0; i < head.fields.size(); ++i) {
    const http::FieldName id = head.fields.id(i);
    const bool challenge = id == http::FieldName::www_authenticate || id == http::FieldName::proxy_authenticate;
    if (challenge && names_connection_scheme(head.fields[i].value)) return true;
  }
  return false;
}

bool authenticates_connection(const http::RequestHead& head) {
  return names_connection_scheme(head.fields.get(http::FieldName::authorization));
}

}  // namespace carpool::proxy
