#include "proxy/net/dns/known_names.h"

namespace carpool::proxy::dns {

KnownNames& KnownNames::process() {
  static KnownNames all;
  return all;
}

// Beyond kMax any other name makes room: it is asked for again where it is needed.
void KnownNames::note(const std::string& host, const std::vector<net::Address>& addresses, Instant until) {
  const Held lock(mutex_);
  if (names_.size() >= kMax && names_.count(host) == 0) names_.erase(names_.begin());
  names_[host] = {addresses, until};
}

void KnownNames::forget(const std::string& host) {
  const Held lock(mutex_);
  names_.erase(host);
}

KnownNames::Known KnownNames::find(const std::string& host, Instant now) const {
  const Held lock(mutex_);
  const auto found = names_.find(host);
  return found == names_.end() || found->second.until <= now ? Known{} : found->second;
}

}  // namespace carpool::proxy::dns
