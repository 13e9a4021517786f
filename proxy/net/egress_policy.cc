#include "proxy/net/egress_policy.h"

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

// No rule names a Unix socket: only the rules for the origin's name apply to it.
bool any_address(const std::vector<EgressRule>& rules, const Address& address) {
  if (!address.ip()) return false;
  const auto bytes = rule_bytes(address);
  return std::any_of(rules.begin(), rules.end(),
                     [&](const EgressRule& rule) { return rule.matches_address(bytes, address.port()); });
}

// Returns true if the name may still resolve to an address that a network rule for this port allows.
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

using RuleSet = EgressPolicy::RuleSet;

bool named_in_allow(const RuleSet& rule_set, const Address& address) {
  const auto range = protected_range(address);
  const auto bytes = rule_bytes(address);
  return std::any_of(rule_set.allow.begin(), rule_set.allow.end(), [&](const EgressRule& rule) {
    return rule.kind == EgressRule::Kind::network && rule.prefix >= range->prefix &&
           rule.matches_address(bytes, address.port());
  });
}

// Applies the denials that no rule can override, to one interpretation of an address.
Status never(const RuleSet& rule_set, const pool::Origin& origin, const Address& address) {
  if (any_reached(rule_set.own, address)) {
    return Fault(FaultKind::loop_detected, Side::self, origin.label() + " is carpool's own listener " + address.text());
  }
  if (any_reached(rule_set.forbidden, address)) return denied(origin, "it is carpool's own admin or metrics address");
  if (protected_range(address) && !named_in_allow(rule_set, address)) {
    return denied(origin, address.host() + " is link-local or a metadata service, and egress.allow does not name it");
  }
  return Done{};
}

Status never_in_any_reading(const RuleSet& rule_set, const pool::Origin& origin, const Address& address) {
  for (const Address& reading : readings_of(address)) {
    if (auto status = never(rule_set, origin, reading); !status) return status;
  }
  return Done{};
}

Status by_rules(const RuleSet& rule_set, const pool::Origin& origin, const Address& address) {
  for (const Address& reading : readings_of(address)) {
    if (any_address(rule_set.deny, reading)) return denied(origin, "egress.deny, as " + reading.host());
  }
  if (any_name(rule_set.deny, origin)) return denied(origin, "egress.deny");
  if (rule_set.default_allow || any_name(rule_set.allow, origin) || any_address(rule_set.allow, address)) return Done{};
  return denied(origin, "egress.default is deny and egress.allow names neither it nor " + address.host());
}

Status by_name(const RuleSet& rule_set, const pool::Origin& origin, bool resolved) {
  if (any_name(rule_set.deny, origin)) return denied(origin, "egress.deny");
  if (rule_set.default_allow || any_name(rule_set.allow, origin)) return Done{};
  if (resolved && any_network(rule_set.allow, origin.port)) return Done{};
  return denied(origin, "egress.default is deny and egress.allow does not name it");
}

}  // namespace

Result<std::unique_ptr<RuleSet>> EgressPolicy::read(const config::Egress& egress) {
  auto rule_set = std::make_unique<RuleSet>();
  rule_set->default_allow = egress.default_ == config::EgressAction::allow;
  rule_set->report_only = egress.report_only;
  if (auto status = parse_all(egress.allow, rule_set->allow); !status) return status.take_fault();
  if (auto status = parse_all(egress.deny, rule_set->deny); !status) return status.take_fault();
  return rule_set;
}

Result<std::unique_ptr<EgressPolicy>> EgressPolicy::make(const config::Egress& egress) {
  Result<std::unique_ptr<RuleSet>> rule_set = read(egress);
  if (!rule_set) return rule_set.take_fault();
  auto policy = std::make_unique<EgressPolicy>();
  policy->replace(std::move(*rule_set));
  return policy;
}

std::unique_ptr<const RuleSet> EgressPolicy::replace(std::unique_ptr<const RuleSet> rule_set) {
  current_.store(rule_set.get(), std::memory_order_release);
  return std::exchange(rule_set_, std::move(rule_set));
}

void EgressPolicy::edit(const RuleSet& changed) {
  replace(std::make_unique<RuleSet>(changed));
}

void EgressPolicy::set_own_listeners(std::vector<Address> listeners) {
  RuleSet changed = *rule_set_;
  changed.own = std::move(listeners);
  edit(changed);
}

void EgressPolicy::set_forbidden(std::vector<Address> addresses) {
  RuleSet changed = *rule_set_;
  changed.forbidden = std::move(addresses);
  edit(changed);
}

namespace {
// report_only lifts the denials of the rules, but no absolute denial.
Status apply_report_only(const RuleSet& rule_set, Status absolute, Status rules, std::optional<Fault>* reported) {
  if (!absolute || rules || !rule_set.report_only) return absolute ? std::move(rules) : std::move(absolute);
  if (reported != nullptr) *reported = rules.take_fault();
  return Done{};
}

Status check_address(const RuleSet& rule_set, const pool::Origin& origin, const Address& address,
                     std::optional<Fault>* reported) {
  return apply_report_only(rule_set, never_in_any_reading(rule_set, origin, address),
                           by_rules(rule_set, origin, address), reported);
}
}  // namespace

Status EgressPolicy::may_ask(const pool::Origin& origin, std::optional<Fault>* reported, bool resolved) const {
  const RuleSet& rule_set = now();
  const auto literal = Address::literal(origin.host, origin.port);
  if (literal) return check_address(rule_set, origin, *literal, reported);
  return apply_report_only(rule_set, Done{}, by_name(rule_set, origin, resolved), reported);
}

Status EgressPolicy::may_dial(const pool::Origin& origin, const Address& address) const {
  return check_address(now(), origin, address, nullptr);
}

Status EgressPolicy::may_dial_parent(const pool::Origin& parent, const Address& address) const {
  const RuleSet& rule_set = now();
  for (const Address& reading : readings_of(address)) {
    if (any_reached(rule_set.own, reading)) {
      return Fault(FaultKind::loop_detected, Side::self,
                   "upstream.proxy " + parent.label() + " is carpool's own listener " + reading.text());
    }
    if (any_reached(rule_set.forbidden, reading)) {
      return denied(parent, "upstream.proxy is carpool's own admin or metrics address");
    }
  }
  return Done{};
}

bool EgressPolicy::is_own(const Address& address) const {
  const RuleSet& rule_set = now();
  const std::vector<Address> readings = readings_of(address);
  return std::any_of(readings.begin(), readings.end(), [&](const Address& reading) {
    return any_reached(rule_set.own, reading) || any_reached(rule_set.forbidden, reading);
  });
}

std::optional<Fault> EgressPolicy::reported(const pool::Origin& origin, const Address& address) const {
  std::optional<Fault> reason;
  const RuleSet& rule_set = now();
  if (rule_set.report_only) static_cast<void>(check_address(rule_set, origin, address, &reason));
  return reason;
}

}  // namespace carpool::proxy::net
