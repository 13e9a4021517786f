// EgressPolicy: decides where carpool may connect to. It is called with the origin before its name is resolved, and
// with each address before it is dialed. The RuleSet is immutable and replaced as a whole, so loops read it without a
// lock.
//
// The first matching rule decides:
// 1. an own listener: loop_detected; an admin or metrics address: egress_denied. No rule overrides these.
// 2. link-local and metadata addresses: egress_denied, unless `allow` has an address or network inside that range
// (a name or a wider network is not enough: the owner of the name, or a typo, would decide).
// 3. `deny`, by name or by address.
// 4. with default = "allow": allowed. With default = "deny": allowed if `allow` matches the name or the address.
// With report_only, connections that 3 and 4 deny are permitted, and the reason is reported.
// A Unix socket is an address of [[origin]].addresses: only 1, and the rules about the origin's name, apply to it.
// An IPv4 address is checked in each of its IPv6 forms (v4-mapped, v4-compatible, NAT64, 6to4) by rules that deny;
// rules that allow accept only the v4-mapped form, which is the same address.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/config/egress_rule.h"
#include "proxy/net/address.h"
#include "proxy/net/address_policy.h"

namespace carpool::proxy::net {

class EgressPolicy final : public AddressPolicy {
 public:
  using Rules = std::vector<config::EgressRule>;
  struct RuleSet {
    bool default_allow = true, report_only = false;
    Rules allow, deny;
    // With the actual ports of the sockets.
    std::vector<Address> own, forbidden;
  };
  // Faults contain the invalid pattern.
  static Result<std::unique_ptr<RuleSet>> read(const config::Egress& egress);
  static Result<std::unique_ptr<EgressPolicy>> make(const config::Egress& egress);

  // The current rules; read and replaced by one thread only.
  const RuleSet& rule_set() const { return *rule_set_; }
  // Returns the old rules: a concurrent reader may still use them for at most one turn of its loop.
  std::unique_ptr<const RuleSet> replace(std::unique_ptr<const RuleSet> rule_set);
  // these two must be called before the loops start
  void set_own_listeners(std::vector<Address> listeners);
  void set_forbidden(std::vector<Address> addresses);

  // Checks an origin before resolution. An address literal is checked completely; a name may still have no address that
  // may_dial() permits. `reported`: the reason, if only report_only permits it. `resolved`: false if a parent proxy
  // resolves the name: then no address follows, and a network in `allow` permits no name.
  Status may_ask(const pool::Origin& origin, std::optional<Fault>* reported = nullptr, bool resolved = true) const;
  Status may_dial(const pool::Origin& origin, const Address& address) const override;
  Status may_dial_parent(const pool::Origin& parent, const Address& address) const override;
  bool is_own(const Address& address) const override;
  std::optional<Fault> reported(const pool::Origin& origin, const Address& address) const override;

 private:
  // Acquire pairs with the release in replace(): the loop sees a complete RuleSet.
  const RuleSet& now() const { return *current_.load(std::memory_order_acquire); }
  void edit(const RuleSet& changed);
  std::unique_ptr<const RuleSet> rule_set_ = std::make_unique<RuleSet>();
  std::atomic<const RuleSet*> current_{rule_set_.get()};
};

}  // namespace carpool::proxy::net
