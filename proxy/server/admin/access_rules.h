// Access rules of the admin endpoint: pure functions of a request's head. They protect against web pages in a user's
// browser (DNS rebinding, forged requests) and against other hosts on the network.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

// Rules: the rules of the listener that accepted the request.
struct Rules {
  bool unix_socket = false;   // Host is not checked
  bool metrics_only = false;  // [metrics] address: /metrics, /livez, /readyz and nothing else
  // The names of its certificate are accepted as Host, besides IP literals and localhost; null: plain text.
  ListenerIdentity identity;
  std::string token;  // required for all requests except /metrics, /livez and /readyz; empty: not required
};

// SharedRules: the rules of a listener. Threads that handle requests read them while a reload may change them.
class SharedRules {
 public:
  Rules get() const {
    const Held lock(mutex_);
    return rules_;
  }
  // Calls change(rules).
  template <class Change>
  void change(Change change) {
    const Held lock(mutex_);
    change(rules_);
  }

 private:
  mutable Mutex mutex_;
  Rules rules_ GUARDED_BY(mutex_);
};

// Returns the refusal, or nothing if the request is allowed.
std::optional<Response> refusal(const AdminRequest& request, const Rules& rules, std::string_view path);

bool host_allowed(std::string_view host, const ListenerIdentity& identity);
// Returns true for a request that changes something and was sent by another site's page.
bool forged(const AdminRequest& request, bool tls);
bool token_matches(std::string_view authorization, std::string_view token);

}  // namespace carpool::proxy::admin
