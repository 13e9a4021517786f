// KnownNames: the last addresses of names, which the resolvers of all loops share. While the name servers fail, a loop
// that has not asked for a name before uses what another loop knows of it.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
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

  // Removes the names that are too stale at `now`, and beyond kMax the one that becomes so first.
  void note(const std::string& host, const std::vector<net::Address>& addresses, Instant now, Instant until);
  // Must be called if a name server said that the name has no address.
  void forget(const std::string& host);
  Known find(const std::string& host, Instant now) const;

 private:
  using Names = std::unordered_map<std::string, Known>;
  void remove(Names::iterator name) REQUIRES(mutex_);

  mutable Mutex mutex_;
  Names names_ GUARDED_BY(mutex_);
  std::set<std::pair<Instant, const std::string*>> by_end_ GUARDED_BY(mutex_);  // the keys of names_
};

}  // namespace carpool::proxy::dns
