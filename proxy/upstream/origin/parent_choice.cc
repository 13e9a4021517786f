#include "proxy/upstream/origin/parent_choice.h"

#include <algorithm>
#include <utility>

#include "base/forbid_dumps.h"
#include "proxy/config/check_credentials.h"
#include "proxy/config/egress_rule.h"
#include "proxy/config/secret.h"
#include "proxy/net/address_range.h"
#include "proxy/net/tls/digest.h"

namespace carpool::proxy {

namespace {
bool names(const std::string& pattern, const pool::Origin& origin, const std::optional<net::Address>& literal) {
  const Result<config::EgressRule> rule = config::EgressRule::parse(pattern);
  if (!rule) return false;  // validated with the configuration
  return literal ? rule->matches_address(net::rule_bytes(*literal), origin.port)
                 : rule->matches_name(origin.host, origin.port);
}
}  // namespace

bool goes_through_parent(const config::Upstream& upstream, const pool::Origin& origin, bool pinned) {
  if (upstream.proxy.empty() || pinned || origin.host == "localhost") return false;
  const std::optional<net::Address> literal = net::Address::literal(origin.host, origin.port);
  if (literal && literal->loopback()) return false;
  return std::none_of(upstream.no_proxy.begin(), upstream.no_proxy.end(),
                      [&](const std::string& pattern) { return pattern == "*" || names(pattern, origin, literal); });
}

config::Upstream settings_without_choice(config::Upstream upstream, bool through_parent) {
  upstream.no_proxy.clear();
  if (through_parent) return upstream;
  upstream.proxy.clear();
  upstream.proxy_credentials = {};
  return upstream;
}

Result<net::ParentProxy> parent_of(const config::Upstream& upstream) {
  Result<pool::Origin> place = pool::parse_origin(upstream.proxy);
  if (!place) return place.take_fault();
  net::ParentProxy parent{std::move(*place), {}};
  if (!upstream.proxy_credentials.given()) return parent;
  forbid_dumps();
  Result<std::string> pair = config::value_of(upstream.proxy_credentials);
  if (!pair) {
    return Fault{FaultKind::internal, Side::self, "upstream.proxy_credentials: " + pair.fault().detail};
  }
  const bool usable = config::is_user_and_password(*pair);
  if (usable) parent.authorization = "Basic " + tls::base64(*pair);
  config::wipe(*pair);
  if (usable) return parent;
  return Fault{FaultKind::internal, Side::self, "upstream.proxy_credentials: is not user:password"};
}

}  // namespace carpool::proxy
