// Intercepts: the intercepted origins of the process, each with the identity that its clients are shown, and the
// clients that refused one. Shared by all loops; a client looks here once, at its CONNECT.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "proxy/downstream/listener_identity.h"

namespace carpool::proxy {

class Intercepts {
 public:
  // By the label of the origin, https://host[:port]; nullptr: no certificate could be made.
  using Leaves = std::unordered_map<std::string, ListenerIdentity>;

  // Replaces all. `tunnels_after_refusal`: a client that refused a certificate gets tunnels for a while.
  void replace(Leaves leaves, bool tunnels_after_refusal);
  // Returns nothing if the origin is not intercepted.
  std::optional<ListenerIdentity> leaf(const std::string& label) const;

  // `client`: an address and what distinguishes the applications behind it. Returns true for the first refusal of
  // anyone at this origin since it is intercepted.
  bool note_refusal(const std::string& label, const std::string& client, Instant now);
  bool refused_before(const std::string& label, const std::string& client, Instant now) const;
  bool tunnels_after_refusal() const;

 private:
  struct Refusal {
    std::string key;
    Instant until;
  };
  using Refusals = std::list<Refusal>;  // the oldest first

  mutable Mutex mutex_;
  Leaves leaves_ GUARDED_BY(mutex_);
  bool tunnels_ GUARDED_BY(mutex_) = true;
  Refusals refusals_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, Refusals::iterator> by_key_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, bool> warned_ GUARDED_BY(mutex_);  // by label
};

}  // namespace carpool::proxy
