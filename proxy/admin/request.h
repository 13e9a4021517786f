// AdminRequest: what the routes and guards need of a request's head. Views into it: it lives no longer.
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

inline AdminRequest make_request(const http::RequestHead& head, std::string_view body) {
  return {head.method,
          head.target,
          head.fields.get("Host"),
          head.fields.get("Origin"),
          head.fields.get("Sec-Fetch-Site"),
          head.fields.get("Authorization"),
          body,
          head.fields.get("Accept-Encoding")};
}

}  // namespace carpool::proxy::admin
