#include "proxy/downstream/listener.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "exec/posted_function.h"
#include "proxy/config/group.h"
#include "proxy/downstream/client_acceptor.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

namespace {
constexpr int kAcceptsPerTurn = 64;
constexpr std::size_t kMaxVersions = 1000;  // maximum number of versions of the settings
}  // namespace

Listener::Listener(const config::Listen& settings, Parts parts)
    : parts_(std::move(parts)),
      resume_(loop(), exec::Bound::to<&Listener::resume_accept>(*this)),
      acceptor_(loop(), *this, kAcceptsPerTurn) {
  change(settings);
}

Listener::~Listener() = default;

exec::Loop& Listener::loop() const {
  return parts_.acceptors.front()->loop();
}

ClientAcceptor& Listener::least_busy() const {
  return **std::min_element(parts_.acceptors.begin(), parts_.acceptors.end(),
                            [](const auto* a, const auto* b) { return a->clients() < b->clients(); });
}

bool Listener::change(const config::Listen& settings) {
  auto known = std::find_if(versions_.begin(), versions_.end(), [&](const auto& v) { return *v == settings; });
  if (known == versions_.end()) {
    if (versions_.size() >= kMaxVersions) return false;
    known = versions_.insert(versions_.end(), std::make_unique<const config::Listen>(settings));
  }
  point_.set(**known);
  if (full_.exchange(false, std::memory_order_seq_cst)) resume_.post();  // max_connections may have been raised
  return true;
}

ListenerIdentity Listener::identity() const {
  const Held lock(identity_mutex_);
  return identity_;
}

void Listener::set_identity(ListenerIdentity identity) {
  const Held lock(identity_mutex_);
  identity_ = std::move(identity);
}

void Listener::swap_credentials(ListenerCredentials& credentials) {
  point_.set(credentials.get());
  credentials_.swap(credentials);
}

net::SocketAccess Listener::access_of(const config::Listen& settings) {
  constexpr mode_t kGroupToo = 0660;
  net::SocketAccess access;
  if (!settings.mode.empty()) access.mode = static_cast<mode_t>(std::stoul(settings.mode, nullptr, 8));
  if (settings.group.empty()) return access;
  access.group = config::find_group(settings.group);
  if (!access.mode) access.mode = kGroupToo;
  return access;
}

Status Listener::open() {
  Result<net::Bound> bound = net::bind_and_listen(settings().address, kListenBacklog, access_of(settings()));
  if (!bound) return bound.take_fault();
  adopt_socket(std::move(*bound));
  return Done{};
}

void Listener::adopt_socket(net::Bound bound) {
  point_.bind(bound.address);
  acceptor_.adopt(std::move(bound));
}

net::Acceptor::Gate Listener::gate() {
  if (clients_.load(std::memory_order_relaxed) >= settings().max_connections) {
    // Clients wait in the kernel's queue until another client closes. seq_cst pairs with on_client_closed(): either it
    // sees `full_`, or the second check sees its decrement.
    const bool was_full = full_.exchange(true, std::memory_order_seq_cst);
    const std::uint32_t most = settings().max_connections;
    if (clients_.load(std::memory_order_seq_cst) >= most) {
      if (!was_full) parts_.stats->note_full_listener(settings().address, most);
      return net::Acceptor::Gate::closed;
    }
    full_.store(false, std::memory_order_seq_cst);
  }
  if (parts_.overload->may_accept()) return net::Acceptor::Gate::open;
  parts_.stats->note_accept_pause();
  free_a_descriptor(*parts_.pools, loop().now());
  return net::Acceptor::Gate::pause;
}

// If the system has no descriptor left, an idle upstream connection is closed.
void Listener::on_accept_failed(int error) {
  parts_.stats->note_accept_failure(error);
  if (error == EMFILE || error == ENFILE) free_a_descriptor(*parts_.pools, loop().now());
}

void Listener::on_client(net::Acceptor&, Fd client, const net::Address& peer) {
  std::string name = parts_.stats->wants_peers() ? peer.text() : std::string();
  clients_.fetch_add(1, std::memory_order_relaxed);
  ClientAcceptor& to = least_busy();
  to.expect_client();
  if (&to == parts_.acceptors.front()) return to.accept(*this, std::move(client), std::move(name));
  exec::send(to.loop(), [this, &to, fd = std::move(client), peer_name = std::move(name)]()
                            LOOP_ONLY mutable { to.accept(*this, std::move(fd), std::move(peer_name)); });
}

void Listener::accept_waiting_and_close() {
  acceptor_.accept_waiting(kListenBacklog + 1);  // the kernel's queue holds one more than the backlog
  acceptor_.close();
}

void Listener::on_client_closed() {
  clients_.fetch_sub(1, std::memory_order_seq_cst);
  if (full_.exchange(false, std::memory_order_seq_cst)) resume_.post();
}

void Listener::resume_accept() {
  exec::assume_on_loop();
  acceptor_.resume();
}

}  // namespace carpool::proxy
