// SessionStore: sessions to resume, shared by all loops. Bounded both ways: peers remembered and sessions per peer; the
// oldest go first. Touched at handshakes and when tickets arrive, so a mutex costs nothing that counts.
//
// Invariant: a TLS 1.3 ticket leaves the store when it is offered (RFC 8446 C.4: single use); a TLS 1.2 session stays,
// and what is offered is a copy.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// A resumed session is not verified again, so it must end with the certificate that was verified. False: it has ended.
bool end_with_certificate(SSL_SESSION* session);

class SessionStore {
 public:
  static constexpr std::size_t kMostPeers = 1024;
  static constexpr std::size_t kMostPerPeer = 8;

  void put(const std::string& peer, SessionPtr session);
  // The newest one that has not expired, or null.
  SessionPtr take(const std::string& peer);
  std::size_t size() const;

 private:
  struct Stack {
    std::deque<SessionPtr> sessions;  // newest at the back
    std::list<std::string>::iterator age;
  };
  using Stacks = std::unordered_map<std::string, Stack>;

  Stack& at(const std::string& peer);
  void forget(Stacks::iterator stack);

  mutable std::mutex mutex_;
  Stacks stacks_;
  std::list<std::string> by_age_;  // last used at the back
};

}  // namespace carpool::proxy::tls
