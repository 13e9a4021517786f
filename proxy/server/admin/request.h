// AdminRequest: the parts of a request's head that routes and access rules need. Its views point into the head, so it
// must not outlive it.
#pragma once

#include <algorithm>
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

// Returns the authority of an absolute-form target, which takes the place of Host, and leaves the origin-form in
// `target` (RFC 9112 §3.2.2); returns `host` for any other target.
inline std::string_view take_authority(std::string_view& target, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!http::iequals(target.substr(0, scheme.size()), scheme)) continue;
    const std::string_view rest = target.substr(scheme.size());
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    target = end == rest.size() ? "/" : rest.substr(end);
    return rest.substr(0, end);
  }
  return host;
}

// In HTTP/2 :authority takes the place of Host (RFC 9113 §8.3.1).
inline AdminRequest make_request(const http::RequestHead& head, std::string_view body) {
  std::string_view target = head.target;
  const std::string_view host =
      head.authority.empty() ? take_authority(target, head.fields.get("Host")) : std::string_view(head.authority);
  return {head.method,
          target,
          host,
          only(head.fields, "Origin"),
          only(head.fields, "Sec-Fetch-Site"),
          only(head.fields, "Authorization"),
          body,
          head.fields.get("Accept-Encoding")};
}

}  // namespace carpool::proxy::admin
