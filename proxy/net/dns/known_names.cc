#include "proxy/net/dns/known_names.h"

namespace carpool::proxy::dns {

KnownNames& KnownNames::process() {
  static KnownNames all;
  return all;
}

// The name that makes room is asked for again where it is needed.
void KnownNames::note(const std::string& host, const std::vector<net::Address>& addresses, Instant now, Instant until) {
  const Held lock(mutex_);
  remove(names_.find(host));
  while (!by_end_.empty() && (by_end_.begin()->first <= now || names_.size() >= kMax)) {
    remove(names_.find(*by_end_.begin()->second));
  }
  const auto added = names_.emplace(host, Known{addresses, until}).first;
  by_end_.emplace(until, &added->first);
}

void KnownNames::forget(const std::string& host) {
  const Held lock(mutex_);
  remove(names_.find(host));
}

void KnownNames::remove(Names::iterator name) {
  if (name == names_.end()) return;
  by_end_.erase({name->second.until, &name->first});
  names_.erase(name);
}

KnownNames::Known KnownNames::find(const std::string& host, Instant now) const {
  const Held lock(mutex_);
  const auto found = names_.find(host);
  return found == names_.end() || found->second.until <= now ? Known{} : found->second;
}

}  // namespace carpool::proxy::dns
