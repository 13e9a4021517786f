#include "proxy/upstream/connection.h"

#include <array>
#include <utility>

#include "proxy/net/address_set.h"
#include "proxy/telemetry/log_levels.h"
#include "proxy/upstream/live_connections.h"
#include "proxy/upstream/origin/tls_identity.h"

namespace carpool::proxy {

std::uint64_t next_connection_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: the value need only be unique and orders nothing
}

Connection::Connection(std::uint64_t id, net::Dialed dialed, Instant now)
    : transport_(std::move(dialed.transport)),
      id_(id),
      opened_at_(now),
      dialed_(dialed.dns + dialed.tcp + dialed.tls),
      proven_peer_(dialed.proven_peer),
      local_(dialed.local.text()),
      peer_(dialed.peer.text()),
      security_(transport_->security()) {}

Connection::~Connection() {
  if (address_set_ != nullptr) address_set_->closed(address_);
}

void Connection::enter_pool(std::string_view label) {
  origin = label;
  live_ = std::make_unique<LiveConnection>(LiveConnection::Info{id_, std::string(label), local_, peer_, opened_at_});
}

// ---- certificates and address ----

void Connection::made_under(const TlsIdentity& identity, std::uint64_t fingerprint) {
  identity_ = &identity;
  fingerprint_ = fingerprint;
}

bool Connection::certificates_replaced() const {
  return identity_ != nullptr && identity_->in_force() != fingerprint_;
}

void Connection::track_address(net::AddressSet& address_set, const net::Address& address) {
  address_set_ = &address_set;
  address_ = address;
  seen_ = address_set.version();
  endpoint_ = &address_set.opened(address);
}

Connection::Retirement Connection::retirement(Instant now) const {
  if (certificates_replaced()) return {pool::CloseCause::config_changed, false};
  if (address_set_ == nullptr) return {};
  switch (address_set_->verdict(address_, now)) {
    case net::AddressSet::Verdict::keep:
      break;
    case net::AddressSet::Verdict::keep_for_now:
      return {std::nullopt, true};
    case net::AddressSet::Verdict::gone:
      return {pool::CloseCause::dns_changed, false};
    case net::AddressSet::Verdict::ejected:
      return {pool::CloseCause::unhealthy, false};
    case net::AddressSet::Verdict::forbidden:
      return {pool::CloseCause::policy, false};
  }
  return {};
}

std::optional<pool::CloseCause> Connection::close_cause(Instant now) {
  if (certificates_replaced()) return pool::CloseCause::config_changed;
  if (address_set_ == nullptr) return std::nullopt;
  if (closes_for_rebalance(now)) return pool::CloseCause::rebalanced;
  if (address_set_->version() == seen_) return std::nullopt;
  const std::uint64_t version = address_set_->version();
  const Retirement due = retirement(now);
  if (!due.later) seen_ = version;
  return due.cause;
}

// Reports the response to the address. A gateway status that means an unavailable server behind it counts as a failure.
void Connection::note_response(std::uint16_t status, Duration took, Instant now) {
  if (address_set_ == nullptr) return;
  if (status >= 502 && status <= 504) return address_set_->failed(address_, now);
  if (status < 500) endpoint_->answered(took);  // a fast failure must not attract requests
  address_set_->answered(address_);
}

// Checks the socket, because a response and its FIN may arrive in one event. A connection that becomes idle without
// this check would never report that FIN.
bool Connection::clean_for_reuse() {
  events = nullptr;
  if (logged_state != ConnectionState::idle) log_state_change(*this, ConnectionState::idle, "released");
  if (transport_->hangup_seen()) return false;
  return transport_->nothing_pending() || transport_->no_data_pending();
}

// ---- the log ----

namespace {
constexpr std::string_view name(ConnectionState logged_state) {
  constexpr std::array<std::string_view, 4> kNames{"connecting", "idle", "borrowed", "closed"};
  return kNames[static_cast<std::size_t>(logged_state)];
}

void log_dial(std::uint64_t id, std::string_view origin, std::string_view from, ConnectionState to,
              std::string_view cause) {
  if (!log::enabled(log::Level::debug, "pool")) return;
  log::debug("pool", "connection",
             {{"connection", id}, {"origin", origin}, {"from", from}, {"to", name(to)}, {"cause", cause}});
}
}  // namespace

void log_state_change(Connection& connection, ConnectionState to, std::string_view cause) {
  const ConnectionState from = std::exchange(connection.logged_state, to);
  if (!log::enabled(log::Level::debug, "pool")) return;
  log::debug("pool", "connection",
             {{"connection", connection.id()},
              {"origin", connection.origin},
              {"local", connection.local()},
              {"from", name(from)},
              {"to", name(to)},
              {"cause", cause}});
}

void note_dial(std::uint64_t id, std::string_view origin, std::string_view cause) {
  log_dial(id, origin, "none", ConnectionState::connecting, cause);
}

void note_dial_ended(std::uint64_t id, std::string_view origin, std::string_view cause) {
  log_dial(id, origin, name(ConnectionState::connecting), ConnectionState::closed, cause);
}

bool Connection::closes_for_rebalance(Instant now) const {
  return address_set_ != nullptr && address_set_->needs_rebalance() &&
         address_set_->closes_for_rebalance(address_, now);
}

bool Connection::may_close_for_rebalance() const {
  return address_set_ != nullptr && address_set_->has_too_many(address_);
}

void Connection::note_failure(Instant now) {
  if (address_set_ != nullptr) address_set_->failed(address_, now);
}

}  // namespace carpool::proxy
