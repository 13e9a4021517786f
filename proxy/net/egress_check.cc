#include "proxy/net/egress_check.h"

#include <optional>
#include <utility>

#include "proxy/config/read.h"
#include "proxy/net/egress_policy.h"

namespace carpool::proxy::net {
namespace {

// Returns the reason of the last address, if all are denied.
std::optional<std::string> denied_at_each(const EgressPolicy& policy, const pool::Origin& origin,
                                          const std::vector<std::string>& addresses) {
  std::optional<std::string> why;
  for (const std::string& text : addresses) {
    const Result<Address> address = Address::parse(text);
    if (!address) return std::nullopt;
    Status allowed = policy.may_dial(origin, *address);
    if (allowed) return std::nullopt;
    why = allowed.take_fault().detail;
  }
  return why;
}

}  // namespace

void check_fixed_origins(config::Reading& reading) {
  const auto policy = EgressPolicy::make(reading.config.egress);
  if (!policy) return;
  for (const config::FixedOrigin& fixed : reading.fixed) {
    const Result<pool::Origin> origin = pool::parse_origin(fixed.origin);
    if (!origin) continue;
    Status asked = (*policy)->may_ask(*origin);
    std::optional<std::string> why;
    if (!asked) {
      why = asked.take_fault().detail;
    } else {
      why = denied_at_each(**policy, *origin, fixed.addresses);
    }
    if (!why) continue;
    config::ConfigError error = fixed.place;
    error.text = *why + ", so each request of this listener would get 403, expected an origin that egress permits";
    reading.errors.push_back(std::move(error));
  }
}

}  // namespace carpool::proxy::net
