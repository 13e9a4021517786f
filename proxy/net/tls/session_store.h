// SessionStore: resumable sessions, shared by all loops. The number of peers, of sessions per peer, and the size of a
// ticket are bounded; the oldest are evicted first. Accessed only at handshakes and when tickets arrive, so the mutex
// cost is negligible.
//
// Invariant: a TLS 1.3 ticket leaves the store when it is offered (RFC 8446 C.4: single use); a TLS 1.2 session stays,
// and a copy of it is offered.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

class SessionStore {
 public:
  static constexpr std::size_t kMaxPeers = 1024;
  static constexpr std::size_t kMaxPerPeer = 8;
  static constexpr std::size_t kMaxTicket = 8192;  // bytes; one with a client's certificates takes about half of it

  // A session with a longer ticket is not stored: the next handshake is a full one.
  void put(const std::string& peer, SessionPtr session);
  // Returns the newest unexpired session, or nullptr.
  SessionPtr take(const std::string& peer);
  void forget(const std::string& peer);
  std::size_t size() const;

 private:
  struct Stack {
    std::deque<SessionPtr> sessions;  // newest at the back
    std::list<std::string>::iterator age;
  };
  using Stacks = std::unordered_map<std::string, Stack>;

  Stack& at(const std::string& peer) REQUIRES(mutex_);
  void forget(Stacks::iterator stack) REQUIRES(mutex_);

  mutable Mutex mutex_;
  Stacks stacks_ GUARDED_BY(mutex_);
  std::list<std::string> by_age_ GUARDED_BY(mutex_);  // last used at the back
};

}  // namespace carpool::proxy::tls
