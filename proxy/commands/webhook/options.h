// The command line of `carpool webhook`.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"

namespace carpool::proxy {

struct WebhookOptions {
  std::string listen = "0.0.0.0:8443";
  std::string certificate = "/etc/carpool/tls/tls.crt",
              key = "/etc/carpool/tls/tls.key";  // of a Secret of type kubernetes.io/tls
  std::string injection = "/etc/carpool/injection/injection.json";
  Duration drain_delay{};  // time to keep accepting after TERM
};

// Returns nothing for another command, or for one that only requests help. Otherwise returns the options or an error
// text.
std::optional<std::variant<WebhookOptions, std::string>> parse_webhook(int argc, const char* const* argv);

}  // namespace carpool::proxy
