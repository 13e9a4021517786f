#include "proxy/server/admin/admin_listener.h"

#include <utility>

#include "proxy/config/token_file.h"
#include "proxy/net/peer_credentials.h"

namespace carpool::proxy {

namespace {
constexpr int kAdminBacklog = 128;
constexpr int kAdminAtOnce = 8;  // accepts per turn: their requests are read before a full session table ends them
// A handshake takes 0.3 to 0.5 ms of CPU time, for a client that is not authenticated yet. Others wait in the kernel's
// queue.
constexpr std::uint32_t kHandshakesPerSecond = 100;
}  // namespace

AdminListener::AdminListener(exec::Loop& loop, Owner& owner, bool metrics_only)
    : loop_(loop), owner_(owner), acceptor_(loop, *this, kAdminAtOnce) {
  rules_.change([metrics_only](admin::Rules& rules) { rules.metrics_only = metrics_only; });
}

AdminListener::~AdminListener() {
  exec::assume_on_loop();  // its loop has stopped
  acceptor_.close();
}

Status AdminListener::open(const std::string& address, std::optional<net::Bound> inherited) {
  rules_.change([&address](admin::Rules& rules) { rules.unix_socket = address.starts_with("unix:"); });
  predecessor_accepts_ = inherited.has_value();
  return acceptor_.open_for_owner(address, kAdminBacklog, std::move(inherited));
}

Result<bool> AdminListener::read_token(const std::string& path) {
  // Clients on loopback or with access to the socket file are already local. The metrics listener serves nothing that
  // needs a token.
  const admin::Rules before = rules_.get();
  if (before.metrics_only || before.unix_socket || address().loopback()) return false;
  if (path.empty()) {
    return Fault{FaultKind::internal, Side::self, "admin.token_file is not set, and " + address().text() + " needs it"};
  }
  Result<std::string> token = config::read_token_file(path);
  if (!token) {
    Fault fault = token.take_fault();
    fault.detail.insert(0, "admin.token_file ");
    return fault;
  }
  const bool replaced = !before.token.empty() && before.token != *token;
  rules_.change([&token](admin::Rules& rules) { rules.token = std::move(*token); });
  return replaced;
}

void AdminListener::set_identity(ListenerIdentity identity) {
  identity_ = std::move(identity);
  rules_.change([this](admin::Rules& rules) { rules.identity = identity_; });
}

void AdminListener::begin_accepting() {
  if (std::exchange(predecessor_accepts_, false)) acceptor_.resume();
}

net::Acceptor::Gate AdminListener::gate() {
  if (predecessor_accepts_) return net::Acceptor::Gate::closed;
  if (identity_ == nullptr || handshakes_.has(kHandshakesPerSecond, loop_.now())) return net::Acceptor::Gate::open;
  return net::Acceptor::Gate::pause;
}

void AdminListener::on_client(net::Acceptor&, Fd client, const net::Address&) {
  if (identity_ != nullptr) static_cast<void>(handshakes_.withdraw(kHandshakesPerSecond, loop_.now()));
  if (trusted(client.get())) owner_.on_accept(*this, std::move(client));  // otherwise closed at once
}

bool AdminListener::trusted(int fd) const {
  const admin::Rules rules = rules_.get();
  return !rules.unix_socket || rules.metrics_only || same_user(peer_of(fd));
}

}  // namespace carpool::proxy
