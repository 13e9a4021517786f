// Intercepts: the intercepted origins of the process, each with the TLS identity shown to its clients, and the clients
// that refused one. Shared by all loops. Each CONNECT accesses it a few times.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "metrics/events.h"
#include "metrics/sample.h"
#include "proxy/downstream/listener_identity.h"

namespace carpool::proxy {

struct Interception;

class Intercepts {
 public:
  // Leaves: by the label of the origin, https://host[:port]; nullptr if no certificate could be made.
  using Leaves = std::unordered_map<std::string, ListenerIdentity>;
  struct Leaf {
    ListenerIdentity identity;
    std::uint64_t authority;  // number of the authority
  };

  // Replaces everything. `authority`: a number that no other authority ever had. `tunnels_after_refusal`: a client that
  // refused a certificate gets tunnels for a while.
  void replace(Leaves leaves, std::uint64_t authority, bool tunnels_after_refusal);
  // Returns nothing if the origin is not intercepted.
  std::optional<Leaf> leaf(const std::string& label) const;
  // Returns true if a new client would still be intercepted, under the same authority.
  bool in_force(const Interception& interception) const;

  // First_refusal: the first one at this origin, by any client.
  enum class Noted : std::uint8_t { suspicion, refusal, first_refusal };
  // Records that the client refused the certificate with `alert`. Without an alert it is a suspicion, because a client
  // may leave for many reasons; the next one makes it a refusal, unless note_trust() is called in between.
  Noted note_refusal(const Interception& to, metrics::CertificateAlert alert, Instant now);
  void note_trust(const Interception& to);  // records that the client uses its connection
  bool refused_before(const Interception& to, Instant now) const;
  bool tunnels_after_refusal() const;
  std::vector<metrics::RefusalSample> refusals() const;

 private:
  struct Refusal {
    std::string key;
    Instant until;
    bool proven;  // false: a suspicion
  };
  using Refusals = std::list<Refusal>;  // oldest first
  using Counts = std::array<std::array<std::uint64_t, metrics::kCertificateAlerts.size()>, metrics::kTlsOffers.size()>;
  struct Tally {
    Counts counts{};
    bool begun = false;  // a refusal was counted since the interception of the origin began
  };

  bool renew(const std::string& key, Instant now) REQUIRES(mutex_);
  void forget(Refusals::iterator one) REQUIRES(mutex_);

  mutable Mutex mutex_;
  Leaves leaves_ GUARDED_BY(mutex_);
  std::uint64_t authority_ GUARDED_BY(mutex_) = 0;
  bool tunnels_ GUARDED_BY(mutex_) = true;
  Refusals refusals_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, Refusals::iterator> by_key_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, Tally> tallies_
      GUARDED_BY(mutex_);  // by label; none is erased: a counter never falls
};

}  // namespace carpool::proxy
