#include "proxy/upstream/connection.h"

#include <array>
#include <utility>

#include "proxy/telemetry/log_levels.h"
#include "proxy/upstream/origin/tls_identity.h"

namespace carpool::proxy {

std::uint64_t next_connection_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: only unique, orders nothing
}

Connection::Connection(std::uint64_t id, net::Dialed dialed, Instant now)
    : transport_(std::move(dialed.transport)),
      id_(id),
      opened_at_(now),
      local_(dialed.local.text()),
      peer_(dialed.peer.text()),
      security_(transport_->security()) {}

Connection::~Connection() {
  if (book_ != nullptr) book_->closed(address_);
}

// ---- its certificates and its address ----

void Connection::made_under(const TlsIdentity& identity, std::uint64_t likeness) {
  identity_ = &identity;
  likeness_ = likeness;
}

bool Connection::certificates_replaced() const {
  return identity_ != nullptr && identity_->in_force() != likeness_;
}

void Connection::belong_to(net::AddressBook& book, const net::Address& address) {
  book_ = &book;
  address_ = address;
  seen_ = book.version();
  book.opened(address);
}

Connection::Standstill Connection::judge(Instant now) const {
  if (certificates_replaced()) return {pool::Closed::config_changed, false};
  if (book_ == nullptr) return {};
  switch (book_->judge(address_, now)) {
    case net::AddressBook::Verdict::keep:
      break;
    case net::AddressBook::Verdict::keep_for_now:
      return {std::nullopt, true};
    case net::AddressBook::Verdict::gone:
      return {pool::Closed::dns_changed, false};
    case net::AddressBook::Verdict::ejected:
      return {pool::Closed::unhealthy, false};
  }
  return {};
}

std::optional<pool::Closed> Connection::outdated(Instant now) {
  if (certificates_replaced()) return pool::Closed::config_changed;
  if (book_ == nullptr || book_->version() == seen_) return std::nullopt;
  const std::uint64_t version = book_->version();
  const Standstill judged = judge(now);
  if (!judged.later) seen_ = version;
  return judged.cause;
}

// A gateway's word that the server behind this address is not there counts as a failure.
void Connection::note_answer(std::uint16_t status, Instant now) {
  if (book_ == nullptr) return;
  if (status >= 502 && status <= 504) return book_->failed(address_, now);
  book_->answered(address_);
}

// A response and its FIN may have come in one event: whoever rests without a look at the wire never sees that FIN
// again.
bool Connection::settle() {
  user = nullptr;
  if (standing != Standing::idle) note_standing(*this, Standing::idle, "released");
  if (transport_->hangup_seen()) return false;
  return transport_->settled() || transport_->quiet();
}

// ---- the log ----

namespace {
constexpr std::string_view name(Standing standing) {
  constexpr std::array<std::string_view, 4> kNames{"connecting", "idle", "borrowed", "closed"};
  return kNames[static_cast<std::size_t>(standing)];
}
}  // namespace

void note_standing(Connection& connection, Standing to, std::string_view cause) {
  const Standing from = std::exchange(connection.standing, to);
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
  if (!log::enabled(log::Level::debug, "pool")) return;
  log::debug(
      "pool", "connection",
      {{"connection", id}, {"origin", origin}, {"from", "none"}, {"to", name(Standing::connecting)}, {"cause", cause}});
}

void note_given_up(std::uint64_t id, std::string_view origin) {
  if (!log::enabled(log::Level::debug, "pool")) return;
  log::debug("pool", "connection",
             {{"connection", id},
              {"origin", origin},
              {"from", name(Standing::connecting)},
              {"to", name(Standing::closed)},
              {"cause", pool::name(pool::Closed::surplus)}});
}

}  // namespace carpool::proxy
