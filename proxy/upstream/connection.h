// Connection: the pooled connection to an origin, over HTTP/1.1 or as the base of an HTTP/2 one. An idle connection
// owns a transport and its own statistics, but no buffer and no parser: those belong to the exchange that borrows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "pool/destination/environment.h"
#include "proxy/net/address.h"
#include "proxy/net/dialed.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

namespace net {
class AddressSet;
}
class ConnectionEvents;
class LiveConnection;
class TlsIdentity;

// ConnectionState: logged at debug level on each change.
enum class ConnectionState : std::uint8_t { connecting, idle, borrowed, closed };

// Returns the next number. Numbers are process-wide and assigned in opening order.
std::uint64_t next_connection_id();

class Connection : public pool::PooledConnection {
 public:
  Connection(std::uint64_t id, net::Dialed dialed, Instant now);

  ~Connection() override;
  bool clean_for_reuse() override;
  pool::Endpoint* endpoint() const override { return endpoint_; }

  // Must be called when the connection enters a pool with this label. Adds it to LiveConnections.
  void enter_pool(std::string_view label);
  const LiveConnection* live() const { return live_.get(); }  // null before it enters a pool
  // Counts the connection in `address_set` until it ends. Must be called before it enters the pool; `address_set` must
  // outlive it.
  void track_address(net::AddressSet& address_set, const net::Address& address);
  // Records the TLS identity and the fingerprint of the context in use. `identity` must outlive the connection. Must be
  // called before it enters the pool.
  void made_under(const TlsIdentity& identity, std::uint64_t fingerprint);
  // Proof that the connection leads to the origin; empty if it must carry no credentials.
  const std::optional<net::ProvenPeer>& proven_peer() const { return proven_peer_; }
  // Retirement: why the connection must serve no further request (certificates replaced, address removed from
  // DNS, failing or forbidden), or that it is to be closed a little later.
  struct Retirement {
    std::optional<pool::CloseCause> cause;
    bool later = false;
  };
  Retirement retirement(Instant now) const;
  // Returns true if its certificates are no longer in force, so that no request may be sent on it.
  bool certificates_replaced() const;
  // Returns true if it must close because its address has more connections than others, to make room for a connection
  // to another address.
  bool closes_for_rebalance(Instant now) const;
  bool may_close_for_rebalance() const;
  // Like retirement(), for a connection that is returned. Checks the address only if something changed since the last
  // check.
  std::optional<pool::CloseCause> close_cause(Instant now);
  // Reports the result of an exchange to the address.
  void note_response(std::uint16_t status, Duration took, Instant now);
  void note_failure(Instant now);

  // Notes that a response on it was complete at `now`, and returns that time; the zero Instant before the first one.
  void note_returned(Instant now) { returned_at_ = now; }
  Instant returned_at() const { return returned_at_; }

  net::Transport& transport() { return *transport_; }
  std::uint64_t id() const { return id_; }
  Instant opened_at() const { return opened_at_; }
  Duration dialed() const { return dialed_; }  // duration of the dial: DNS, TCP and TLS
  const std::string& local() const { return local_; }
  const std::string& peer() const { return peer_; }
  const net::Address& address() const { return address_; }  // as passed to track_address()
  net::SecurityInfo security() const { return security_; }

  // Receives the events of the connection. Set while leased, cleared before release.
  ConnectionEvents* events = nullptr;
  ConnectionState logged_state = ConnectionState::connecting;  // owned by the holder of the connection, like `events`
  std::string_view origin;  // label of the origin; the text outlives every connection

 private:
  std::unique_ptr<net::Transport> transport_;
  const std::uint64_t id_;
  const Instant opened_at_;
  Instant returned_at_{};
  const Duration dialed_;
  net::AddressSet* address_set_ = nullptr;
  pool::Endpoint* endpoint_ = nullptr;     // entry of its address
  const TlsIdentity* identity_ = nullptr;  // nullptr for plain text
  std::uint64_t fingerprint_ = 0;
  const std::optional<net::ProvenPeer> proven_peer_;
  std::uint64_t seen_ = 0;  // version of the AddressSet at the last check
  net::Address address_;
  const std::string local_, peer_;
  std::unique_ptr<LiveConnection> live_;
  const net::SecurityInfo security_;  // static texts, readable from any thread
};

// Logs a state change, so that one connection can be followed through its life.
void log_state_change(Connection& connection, ConnectionState to, std::string_view cause);
void note_dial(std::uint64_t id, std::string_view origin, std::string_view cause);
// Logs the end of a dial that made no connection.
void note_dial_ended(std::uint64_t id, std::string_view origin, std::string_view cause);

}  // namespace carpool::proxy
