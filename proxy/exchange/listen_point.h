// ListenPoint: the parts of a listener on which the handling of a request depends: the settings in force, the required
// credentials, and the bound address. Outlives every client.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "metrics/events.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

class ClientCredentials;

// InterceptedClient: a client inside a CONNECT, as far as it can be distinguished from others.
struct InterceptedClient {
  std::string name;           // its address and User-Agent
  metrics::TlsOffer offer{};  // what its TLS offers
  std::uint64_t suites = 0;   // digest of its cipher suites
};

// Interception: an intercepted CONNECT, whose requests reach this origin only.
struct Interception {
  pool::Origin origin;          // https
  std::uint64_t authority = 0;  // number of the authority whose certificate the client is shown
  InterceptedClient client{};
  Instant since{};          // when its TLS was established
  bool other_name = false;  // the client's TLS named another host, so that its requests reach no origin
};

class ListenPoint {
 public:
  ListenPoint() = default;
  // The point of a CONNECT that `outer` has accepted from `user`. It serves nothing else and requires no credentials.
  ListenPoint(const ListenPoint& outer, std::string user)
      : settings_(&outer.settings()), address_(outer.address_), user_(std::move(user)) {}
  // The point of the requests inside an intercepted CONNECT.
  ListenPoint(const ListenPoint& outer, Interception interception, std::string user = {})
      : settings_(&outer.settings()),
        address_(outer.address_),
        interception_(std::move(interception)),
        user_(std::move(user)) {}

  const config::Listen& settings() const { return *settings_.load(std::memory_order_acquire); }
  const net::Address& address() const { return address_; }  // with the port that the system assigned

  // Returns nullptr if none are required. Valid until this loop's turn ends.
  const ClientCredentials* credentials() const { return credentials_.load(std::memory_order_acquire); }
  // User of the CONNECT; empty if none, or if each request has its own.
  const std::string& user() const { return user_; }

  // Returns nullptr if requests select their origin as the settings allow.
  const Interception* interception() const { return interception_ ? &*interception_ : nullptr; }
  // Must be called before the first request.
  Interception* interception() { return interception_ ? &*interception_ : nullptr; }

  // Must be called with the host that the client's TLS names (SNI), before the first request.
  void note_server_name(const std::string& name);

  // `settings` must outlive this object. Release: pairs with settings().
  void set(const config::Listen& settings) { settings_.store(&settings, std::memory_order_release); }
  // The caller keeps the previous ones until each loop has ended its turn.
  void set(const ClientCredentials* credentials) { credentials_.store(credentials, std::memory_order_release); }
  void bind(const net::Address& address) { address_ = address; }  // must be called before the first client

 private:
  std::atomic<const config::Listen*> settings_{nullptr};
  std::atomic<const ClientCredentials*> credentials_{nullptr};
  net::Address address_;
  std::optional<Interception> interception_;
  std::string user_;
};

}  // namespace carpool::proxy
