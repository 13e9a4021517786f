// Who may ask: pure functions over a request's head. They keep web pages in a user's browser (DNS rebinding, forged
// requests) and strangers on the network away from what a local user may do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

// Of the listener that accepted.
struct Rules {
  bool unix_socket = false;   // no Host to judge
  bool metrics_only = false;  // [metrics] address: /metrics, /livez, /readyz and nothing else
  std::string name;           // a Host allowed besides IP literals and localhost; empty: none
  std::string token;          // demanded of every request but the three above; empty: none is needed
};

// Nothing: the request may pass.
std::optional<Response> refusal(const AdminRequest& request, const Rules& rules, std::string_view path);

bool host_allowed(std::string_view host, std::string_view name);
// A request that changes something and comes from another site's page.
bool forged(const AdminRequest& request);
bool token_matches(std::string_view authorization, std::string_view token);

}  // namespace carpool::proxy::admin
