// AddressPolicy: decides which addresses may be dialed (never own listeners, admin, metadata, denied ones). Called with
// the address that is actually dialed. EgressPolicy implements it.
#pragma once

#include <optional>

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

class AddressPolicy {
 public:
  // Returns a Fault (egress_denied, loop_detected) or success.
  virtual Status may_dial(const pool::Origin& origin, const Address& address) const = 0;
  // The same for the proxy of upstream.proxy. The rules apply to the origins, not to the proxy, but it must not be
  // carpool.
  virtual Status may_dial_parent(const pool::Origin& parent, const Address& address) const {
    static_cast<void>(parent);
    static_cast<void>(address);
    return Done{};
  }
  // Returns true for an address of carpool itself, which no rule permits. Such an address explains the failure of a
  // name better than the refusals of its other addresses.
  virtual bool is_own(const Address& address) const {
    static_cast<void>(address);
    return false;
  }
  // Returns the reason for which the rules would deny this address without report_only.
  virtual std::optional<Fault> reported(const pool::Origin& origin, const Address& address) const {
    static_cast<void>(origin);
    static_cast<void>(address);
    return std::nullopt;
  }

 protected:
  ~AddressPolicy() = default;
};

}  // namespace carpool::proxy::net
