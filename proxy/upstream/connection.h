// Connection: what the pool holds, an HTTP/1.1 connection to an origin, or the base of an HTTP/2 one. At rest it owns a
// transport and facts about itself, no buffer and no parser: those belong to the exchange that borrows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "pool/destination/environment.h"
#include "proxy/net/address_set.h"
#include "proxy/net/dial.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class TlsIdentity;

// Who uses a connection right now, on its home loop.
class ConnectionEvents {
 public:
  virtual void on_upstream_ready() LOOP_ONLY = 0;

 protected:
  ~ConnectionEvents() = default;
};

// Where a connection stands, for the log: each change is a debug line.
enum class ConnectionState : std::uint8_t { connecting, idle, borrowed, closed };

// Numbers are given in the order of opening, process-wide.
std::uint64_t next_connection_id();

class Connection : public pool::PooledConnection {
 public:
  Connection(std::uint64_t id, net::Dialed dialed, Instant now);

  ~Connection() override;
  bool clean_for_reuse() override;

  // Counted there until it ends. Before it is in the pool; the book outlives it.
  void track_address(net::AddressSet& book, const net::Address& address);
  // By a context of this fingerprint of this identity, which outlives it. Before it is in the pool.
  void made_under(const TlsIdentity& identity, std::uint64_t fingerprint);
  // Why it must serve no further request (its certificates were replaced, its address is gone or only fails), or that
  // it is to end a little later.
  struct AddressVerdict {
    std::optional<pool::CloseCause> cause;
    bool later = false;
  };
  AddressVerdict judge(Instant now) const;
  // It was made under certificates that are no longer in force: no request may be sent on it.
  bool certificates_replaced() const;
  // As judge(), when it is given back: looks at its address only where something changed since the last time.
  std::optional<pool::CloseCause> close_cause(Instant now);
  // How an exchange on it went, for its address.
  void note_answer(std::uint16_t status, Instant now);
  void note_failure(Instant now) {
    if (book_ != nullptr) book_->failed(address_, now);
  }

  net::Transport& transport() { return *transport_; }
  std::uint64_t id() const { return id_; }
  Instant opened_at() const { return opened_at_; }
  const std::string& local() const { return local_; }
  const std::string& peer() const { return peer_; }
  net::SecurityInfo security() const { return security_; }

  // Set while leased, cleared before release; events of the connection go there.
  ConnectionEvents* user = nullptr;
  ConnectionState standing = ConnectionState::connecting;  // with `user`: whoever holds the connection
  std::string_view origin;                                 // its label, which outlives every connection

 private:
  std::unique_ptr<net::Transport> transport_;
  const std::uint64_t id_;
  const Instant opened_at_;
  const std::string local_, peer_;
  net::AddressSet* book_ = nullptr;
  net::Address address_;
  const TlsIdentity* identity_ = nullptr;  // null: plain text
  std::uint64_t likeness_ = 0;
  std::uint64_t seen_ = 0;            // the book's version when it was looked at
  const net::SecurityInfo security_;  // static texts: safe to read from any thread
};

// Its owner moves it: a line for whoever wants to follow one connection through its life.
void note_standing(Connection& connection, ConnectionState to, std::string_view cause);
void note_dial(std::uint64_t id, std::string_view origin, std::string_view cause);
void log_dial_cancelled(std::uint64_t id, std::string_view origin);

}  // namespace carpool::proxy
