// AdminRequest: the parts of a request's head that routes and access rules need. Its views point into the head, so it
// must not outlive it.
#pragma once

#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy::admin {

struct AdminRequest {
  std::string_view method = "GET";
  std::string_view target = "/";  // origin-form
  std::string_view host, origin, fetch_site, authorization;
  std::string_view body;
  std::string_view accept_encoding;

  bool reads() const { return method == "GET" || method == "HEAD"; }
};

// Returns the value of a field that identifies the sender. Such a field must occur once: of two, one could come from
// the page and the other from the browser. No access rule accepts "null".
inline std::string_view only(const http::Fields& fields, std::string_view name) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) count += http::iequals(fields[i].name, name) ? 1 : 0;
  return count > 1 ? "null" : fields.get(name);
}

// In HTTP/2 :authority takes the place of Host (RFC 9113 §8.3.1).
inline AdminRequest make_request(const http::RequestHead& head, std::string_view body) {
  return {head.method,
          head.target,
          head.authority.empty() ? head.fields.get("Host") : std::string_view(head.authority),
          only(head.fields, "Origin"),
          only(head.fields, "Sec-Fetch-Site"),
          only(head.fields, "Authorization"),
          body,
          head.fields.get("Accept-Encoding")};
}

}  // namespace carpool::proxy::admin
