// KnownNames: the last addresses of names, which the resolvers of all loops share. While the name servers fail, a loop
// that has not asked for a name before uses what another loop knows of it.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "proxy/net/address.h"

namespace carpool::proxy::dns {

class KnownNames {
 public:
  struct Known {
    std::vector<net::Address> addresses;  // empty: nothing is known
    Instant until = Instant::min();       // when they are too stale
  };
  static constexpr std::size_t kMax = 4096;

  static KnownNames& process();

  void note(const std::string& host, const std::vector<net::Address>& addresses, Instant until);
  // Must be called if a name server said that the name has no address.
  void forget(const std::string& host);
  Known find(const std::string& host, Instant now) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, Known> names_ GUARDED_BY(mutex_);
};

}  // namespace carpool::proxy::dns
