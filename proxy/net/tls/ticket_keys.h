// TicketKeys: the keys that encrypt the session tickets of one SSL_CTX. A stolen key reveals the sessions of its
// tickets, so a key makes tickets for kRotation only; then it decrypts until the last of them has expired (RFC 5077
// §5.5, RFC 8446 §2.3). Included by this directory's .cc files and by tests.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

class TicketKeys {
 public:
  using Now = Instant (*)();
  static constexpr std::chrono::hours kRotation{2};
  static constexpr std::chrono::hours kTicketLife{2};

  struct Key {
    std::array<unsigned char, 16> name{};
    std::array<unsigned char, 32> cipher{}, mac{};
    Instant made{};
    Key() = default;
    Key(const Key&) = default;
    Key& operator=(const Key&) = default;
    ~Key();  // wipes it
  };
  struct Found {
    Key key;
    bool renew = false;  // a newer key exists: the client gets another ticket
  };

  explicit TicketKeys(Now now) : now_(now) {}
  // Makes `context` use these keys; it must not outlive them. Returns false if OpenSSL refuses.
  bool install(SSL_CTX* context);

  // Returns the key of new tickets; creates one if there is none or its time is over. Nothing: no random bytes.
  std::optional<Key> current();
  // Returns the key of this name, unless all its tickets have expired.
  std::optional<Found> find(const unsigned char* name);

 private:
  Now now_;
  Mutex mutex_;
  std::optional<Key> current_ GUARDED_BY(mutex_), previous_ GUARDED_BY(mutex_);
};

}  // namespace carpool::proxy::tls
