#include "proxy/upstream/connection.h"

#include <array>
#include <utility>

#include "proxy/log/levels.h"

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

}  // namespace carpool::proxy
