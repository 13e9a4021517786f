// Connection: the pooled connection to an origin; HTTP/1.1, or the base of an HTTP/2 one. An idle one owns a transport
// and its own statistics, but no buffer and no parser: those belong to the exchange that borrows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "pool/destination/environment.h"
#include "proxy/net/address_set.h"
#include "proxy/net/dialed.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class ConnectionEvents;
class LiveConnection;
class TlsIdentity;

// ConnectionState: logged at debug level on each change.
enum class ConnectionState : std::uint8_t { connecting, idle, borrowed, closed };

// Numbers are assigned in opening order, process-wide.
std::uint64_t next_connection_id();

class Connection : public pool::PooledConnection {
 public:
  Connection(std::uint64_t id, net::Dialed dialed, Instant now);

  ~Connection() override;
  bool clean_for_reuse() override;
  pool::Endpoint* endpoint() const override { return endpoint_; }

  // The connection belongs to a pool from now on, whose label is `label`: it is one of LiveConnections.
  void enter_pool(std::string_view label);
  const LiveConnection* live() const { return live_.get(); }  // null: it has not entered
  // Counts the connection in `address_set` until it ends. Must be called before it enters the pool; `address_set` must
  // outlive it.
  void track_address(net::AddressSet& address_set, const net::Address& address);
  // Records the fingerprint of the context in use and its identity, which must outlive it. Must be called before it
  // enters the pool.
  void made_under(const TlsIdentity& identity, std::uint64_t fingerprint);
  // Empty: it carries no credentials.
  const std::optional<net::ProvenPeer>& proven_peer() const { return proven_peer_; }
  // AddressVerdict: why the connection must serve no further request (certificates replaced, address gone or only
  // failing), or that it is to be closed a little later.
  struct AddressVerdict {
    std::optional<pool::CloseCause> cause;
    bool later = false;
  };
  AddressVerdict judge(Instant now) const;
  // Returns true if its certificates are no longer in force: no request may be sent on it.
  bool certificates_replaced() const;
  // Returns true if its address has more connections than others and it must close, to make room for one to them.
  bool gives_place(Instant now) const {
    return address_set_ != nullptr && address_set_->wants_place() && address_set_->gives_place(address_, now);
  }
  bool may_give_place() const { return address_set_ != nullptr && address_set_->has_too_many(address_); }
  // Like judge(), when the connection is returned: checks the address only if something changed since the last time.
  std::optional<pool::CloseCause> close_cause(Instant now);
  // Reports to its address how an exchange went.
  void note_response(std::uint16_t status, Duration took, Instant now);
  void note_failure(Instant now) {
    if (address_set_ != nullptr) address_set_->failed(address_, now);
  }

  net::Transport& transport() { return *transport_; }
  std::uint64_t id() const { return id_; }
  Instant opened_at() const { return opened_at_; }
  Duration dialed() const { return dialed_; }  // how long its dial took: DNS, TCP, TLS
  const std::string& local() const { return local_; }
  const std::string& peer() const { return peer_; }
  const net::Address& address() const { return address_; }  // as tracked
  net::SecurityInfo security() const { return security_; }

  // Set while leased, cleared before release; receives the events of the connection.
  ConnectionEvents* user = nullptr;
  ConnectionState logged_state = ConnectionState::connecting;  // guarded like `user`: only the holder of the connection
  std::string_view origin;                                     // label of the origin, which outlives every connection

 private:
  std::unique_ptr<net::Transport> transport_;
  const std::uint64_t id_;
  const Instant opened_at_;
  const Duration dialed_;
  net::AddressSet* address_set_ = nullptr;
  pool::Endpoint* endpoint_ = nullptr;     // of its address
  const TlsIdentity* identity_ = nullptr;  // nullptr: plain text
  std::uint64_t fingerprint_ = 0;
  const std::optional<net::ProvenPeer> proven_peer_;
  std::uint64_t seen_ = 0;  // version of the AddressSet at the last check
  net::Address address_;
  const std::string local_, peer_;
  std::unique_ptr<LiveConnection> live_;
  const net::SecurityInfo security_;  // static texts: safe to read from any thread
};

// Logs a state change, so that one connection can be followed through its life.
void log_state_change(Connection& connection, ConnectionState to, std::string_view cause);
void note_dial(std::uint64_t id, std::string_view origin, std::string_view cause);
void log_dial_cancelled(std::uint64_t id, std::string_view origin);

}  // namespace carpool::proxy
