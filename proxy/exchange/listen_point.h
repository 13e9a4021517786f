// ListenPoint: what a request's way depends on of the listener that accepted its client: the settings in force, the
// credentials that it asks for, and the address that it is bound to. Outlives every client.
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

// A client inside a CONNECT, as far as it can be distinguished from others.
struct InterceptedClient {
  std::string name;           // its address and User-Agent
  metrics::TlsOffer offer{};  // what its TLS offers
  std::uint64_t suites = 0;   // digest of its cipher suites
};

// A CONNECT whose tunnel ends here: its requests reach this origin only.
struct Interception {
  pool::Origin origin;          // https
  std::uint64_t authority = 0;  // the number of the authority whose certificate the client is shown
  InterceptedClient client{};
  Instant since{};          // its TLS is established
  bool other_name = false;  // the client's TLS named another host: nothing is reached
};

class ListenPoint {
 public:
  ListenPoint() = default;
  // The point of a CONNECT that `outer` has accepted from `user`, and of nothing else: it asks for no credentials.
  ListenPoint(const ListenPoint& outer, std::string user)
      : settings_(&outer.settings()), address_(outer.address_), user_(std::move(user)) {}
  // Likewise, of the requests inside.
  ListenPoint(const ListenPoint& outer, Interception interception, std::string user = {})
      : settings_(&outer.settings()),
        address_(outer.address_),
        interception_(std::move(interception)),
        user_(std::move(user)) {}

  const config::Listen& settings() const { return *settings_.load(std::memory_order_acquire); }
  const net::Address& address() const { return address_; }  // with the real port

  // nullptr: none are asked for. Valid until this loop's turn ends.
  const ClientCredentials* credentials() const { return credentials_.load(std::memory_order_acquire); }
  const std::string& user() const { return user_; }  // of the CONNECT; empty: none, or each request has its own

  // nullptr: requests choose their origin as the settings allow.
  const Interception* interception() const { return interception_ ? &*interception_ : nullptr; }
  Interception* interception() { return interception_ ? &*interception_ : nullptr; }  // before the first request

  // The client's TLS names this host (SNI); before the first request.
  void name_of_client(const std::string& name);

  // `settings` must outlive this object. Release: pairs with settings().
  void set(const config::Listen& settings) { settings_.store(&settings, std::memory_order_release); }
  // The caller keeps those before until each loop has ended its turn.
  void set(const ClientCredentials* credentials) { credentials_.store(credentials, std::memory_order_release); }
  void bind(const net::Address& address) { address_ = address; }  // before the first client

 private:
  std::atomic<const config::Listen*> settings_{nullptr};
  std::atomic<const ClientCredentials*> credentials_{nullptr};
  net::Address address_;
  std::optional<Interception> interception_;
  std::string user_;
};

}  // namespace carpool::proxy
