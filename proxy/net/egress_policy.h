// EgressPolicy: where carpool may connect to. Asked twice: with the origin before its name is resolved, and with each
// address that is about to be dialed. Its book of rules is immutable and replaced as a whole, so every loop asks it
// without a lock.
//
// What decides, first match wins:
//   1. an own listener: loop_detected; an admin or metrics address: egress_denied. Nothing lifts these.
//   2. link-local and metadata addresses: egress_denied, unless `allow` names an address or network inside that range
//      (a name or a wider network does not: whoever owns the name, or a typo, would decide).
//   3. `deny`, by name or by address.
//   4. with default = "allow": allowed. With default = "deny": allowed if `allow` matches the name or the address.
// With report_only what 3 and 4 deny passes, and is told as `reported`.
// An IPv4 address is judged in every spelling IPv6 has for it (v4-mapped, v4-compatible, NAT64, 6to4) by the rules that
// forbid; those that allow believe only the v4-mapped one, which is the same address.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/config/egress_rule.h"
#include "proxy/net/address.h"
#include "proxy/net/dial.h"

namespace carpool::proxy::net {

class EgressPolicy final : public AddressPolicy {
 public:
  enum class Decision : std::uint8_t { allowed, denied, reported };
  class DecisionListener {
   public:
    // On the thread that asks. `fault`: why not; null: allowed.
    virtual void on_decision(Decision decision, const pool::Origin& origin, const Fault* fault) = 0;

   protected:
    ~DecisionListener() = default;
  };
  using Rules = std::vector<config::EgressRule>;
  struct RuleSet {
    bool default_allow = true, report_only = false;
    Rules allow, deny;
    // With the ports that the sockets really got; Unix sockets are passed over.
    std::vector<Address> own, forbidden;
  };
  // Faults name the pattern.
  static Result<std::unique_ptr<RuleSet>> read(const config::Egress& egress);
  static Result<std::unique_ptr<EgressPolicy>> make(const config::Egress& egress);

  // The one in force; changed and replaced by one thread only.
  const RuleSet& book() const { return *book_; }
  // The old one: whoever asks in this moment may still look into it, nobody longer than one turn of a loop.
  std::unique_ptr<const RuleSet> replace(std::unique_ptr<const RuleSet> book);
  void set_witness(DecisionListener& witness) { witness_ = &witness; }  // these three before the loops start
  void set_own_listeners(std::vector<Address> listeners);
  void set_forbidden(std::vector<Address> addresses);

  // Before resolution. An address literal is judged completely; a name may still turn out to have no address that
  // may_dial() lets pass.
  Status may_ask(const pool::Origin& origin) const;
  Status may_dial(const pool::Origin& origin, const Address& address) const override;

 private:
  // Acquire, with the release of replace(): a new book is whole before a loop reads it.
  const RuleSet& now() const { return *current_.load(std::memory_order_acquire); }
  void edit(const RuleSet& changed);
  Status tell(const RuleSet& book, const pool::Origin& origin, Status absolute, Status rules) const;

  std::unique_ptr<const RuleSet> book_ = std::make_unique<RuleSet>();
  std::atomic<const RuleSet*> current_{book_.get()};
  DecisionListener* witness_ = nullptr;
};

}  // namespace carpool::proxy::net
