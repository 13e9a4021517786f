#include "proxy/net/policy.h"

#include <algorithm>
#include <utility>

#include "proxy/net/address_range.h"

namespace carpool::proxy::net {
namespace {

using config::EgressRule;

Status parse_all(const std::vector<std::string>& patterns, std::vector<EgressRule>& into) {
  for (const std::string& pattern : patterns) {
    auto rule = EgressRule::parse(pattern);
    if (!rule) return Fault(FaultKind::malformed_request, Side::self, pattern + ": " + rule.fault().detail);
    into.push_back(*rule);
  }
  return Done{};
}

bool any_name(const std::vector<EgressRule>& rules, const pool::Origin& origin) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const EgressRule& rule) { return rule.matches_name(origin.host, origin.port); });
}

bool any_address(const std::vector<EgressRule>& rules, const Address& address) {
  const auto bytes = rule_bytes(address);
  return std::any_of(rules.begin(), rules.end(),
                     [&](const EgressRule& rule) { return rule.matches_address(bytes, address.port()); });
}

// A name may yet resolve to what a network rule for this port allows.
bool any_network(const std::vector<EgressRule>& rules, std::uint16_t port) {
  return std::any_of(rules.begin(), rules.end(), [port](const EgressRule& rule) {
    return rule.kind == EgressRule::Kind::network && (rule.port == 0 || rule.port == port);
  });
}

bool any_reached(const std::vector<Address>& listeners, const Address& target) {
  return std::any_of(listeners.begin(), listeners.end(), [&](const Address& l) { return reaches(target, l); });
}

Fault denied(const pool::Origin& origin, const std::string& why) {
  return {FaultKind::egress_denied, Side::self, origin.label() + " is not allowed: " + why};
}

}  // namespace

Result<std::unique_ptr<RulePolicy>> RulePolicy::make(const config::Egress& egress) {
  auto policy = std::make_unique<RulePolicy>();
  policy->default_allow_ = egress.default_ == config::Verdict::allow;
  if (auto status = parse_all(egress.allow, policy->allow_); !status) return status.take_fault();
  if (auto status = parse_all(egress.deny, policy->deny_); !status) return status.take_fault();
  return policy;
}

Status RulePolicy::may_ask(const pool::Origin& origin) const {
  if (const auto literal = Address::literal(origin.host, origin.port)) return may_dial(origin, *literal);
  if (any_name(deny_, origin)) return denied(origin, "egress.deny");
  if (default_allow_ || any_name(allow_, origin) || any_network(allow_, origin.port)) return Done{};
  return denied(origin, "egress.default is deny and egress.allow does not name it");
}

Status RulePolicy::may_dial(const pool::Origin& origin, const Address& address) const {
  for (const Address& reading : readings_of(address)) {
    if (auto status = judge(origin, reading); !status) return status;
  }
  if (any_name(deny_, origin)) return denied(origin, "egress.deny");
  if (default_allow_ || any_name(allow_, origin) || any_address(allow_, address)) return Done{};
  return denied(origin, "egress.default is deny and egress.allow names neither it nor " + address.host());
}

// The rules that forbid, for one reading of an address.
Status RulePolicy::judge(const pool::Origin& origin, const Address& address) const {
  if (any_reached(own_, address)) {
    return Fault(FaultKind::loop_detected, Side::self, origin.label() + " is carpool's own listener " + address.text());
  }
  if (any_reached(forbidden_, address)) return denied(origin, "it is carpool's own admin or metrics address");
  if (protected_range(address) && !named_in_allow(address)) {
    return denied(origin, address.host() + " is link-local or a metadata service, and egress.allow does not name it");
  }
  if (any_address(deny_, address)) return denied(origin, "egress.deny, as " + address.host());
  return Done{};
}

bool RulePolicy::named_in_allow(const Address& address) const {
  const auto range = protected_range(address);
  const auto bytes = rule_bytes(address);
  return std::any_of(allow_.begin(), allow_.end(), [&](const EgressRule& rule) {
    return rule.kind == EgressRule::Kind::network && rule.prefix >= range->prefix &&
           rule.matches_address(bytes, address.port());
  });
}

}  // namespace carpool::proxy::net
