#include "proxy/server/handover/handover_listener.h"

#include <utility>

#include "exec/fan_out.h"
#include "exec/posted_function.h"
#include "pool/destination/snapshot.h"
#include "pool/directory/directory.h"
#include "proxy/config/in_force.h"
#include "proxy/net/peer_credentials.h"
#include "proxy/server/admin/admin_server.h"
#include "proxy/server/drain.h"
#include "proxy/server/handover/fd_message.h"
#include "proxy/server/handover/handover_state.h"
#include "proxy/server/listener_set.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
constexpr int kHandoverBacklog = 4, kHandoversAtOnce = 4;
constexpr Duration kLoopTimeout = std::chrono::seconds(1);
constexpr std::size_t kMaxSessions = 4;  // TLS sessions per origin
constexpr std::size_t kMaxSecrets = std::size_t{2} << 20;

struct Copy {
  std::string address;
  Fd fd;
};

void append_learned_state(const OriginRuntime& context, HandoverState& state, std::size_t& secrets, Instant now) {
  const pool::Destination::Snapshot snapshot = context.destination->snapshot(now);
  HandoverState::Origin one;
  one.label = context.destination->label();
  one.open = static_cast<std::uint32_t>(snapshot.of(pool::ConnectionStatus::idle) +
                                        snapshot.of(pool::ConnectionStatus::borrowed));
  one.learned_idle = snapshot.learned_idle;
  if (snapshot.auto_size) one.size = snapshot.size;
  if (context.tls != nullptr) {
    if (const auto client = context.tls->loaded()) {
      one.tls_fingerprint = client->fingerprint();
      const pool::Origin& origin = context.destination->origin();
      one.sessions = client->hand_out(tls::peer_name(origin.host, origin.port), kMaxSessions);
    }
  }
  for (const std::string& session : one.sessions) secrets += session.size();
  if (secrets > kMaxSecrets) one.sessions.clear();
  if (snapshot.paused)
    state.paused.push_back({one.label, snapshot.paused->drains, snapshot.paused->age, snapshot.paused->left});
  state.origins.push_back(std::move(one));
}
}  // namespace

HandoverListener::HandoverListener(const Parts& parts)
    : parts_(parts), acceptor_(parts.admin.loop(), *this, kHandoversAtOnce) {}

HandoverListener::~HandoverListener() {
  exec::assume_on_loop();  // its loop has stopped
  acceptor_.close();
}

Status HandoverListener::open(const std::string& address, std::optional<net::Bound> inherited) {
  configured_ = address;
  taking_over_ = inherited.has_value();
  return acceptor_.open_for_owner(address, kHandoverBacklog, std::move(inherited));
}

void HandoverListener::on_client(net::Acceptor&, Fd socket, const net::Address&) {
  if (may_inherit(socket.get())) give(std::move(socket));
}

bool HandoverListener::may_inherit(int socket) {
  const PeerCredentials peer = peer_of(socket);
  if (!same_user(peer)) return false;
  if (successor_.socket) drop_late_successor();
  if (successor_.socket || taking_over_ || !parts_.drain.serving()) return false;
  successor_.pid = static_cast<int>(peer.pid.value_or(0));
  return true;
}

void HandoverListener::give(Fd socket) {
  // The socket is watched before anything is sent: if the reply of a successor that has the sockets were missed, both
  // processes would serve.
  Result<exec::WatchKey> key = parts_.admin.loop().watch(socket.get(), successor_);
  if (!key) return log::warn("handover", key.fault().detail, {{"pid", successor_.pid}});
  successor_.key = *key;
  successor_.socket = std::move(socket);
  successor_.since = parts_.admin.loop().now();
  successor_.word = HandoverMessage(HandoverMessage::kGo);
  Result<FdMessage> fd_message = build_message();
  const Status sent =
      fd_message ? send_fds(successor_.socket.get(), *fd_message, kLoopTimeout) : Status(fd_message.take_fault());
  if (!sent) {
    log::warn("handover", sent.fault().detail, {{"pid", successor_.pid}});
    keep_sockets();
    return drop_successor();
  }
  log::info("handover", "sockets sent to the new process", {{"pid", successor_.pid}});
}

Result<FdMessage> HandoverListener::build_message() {
  // A question that a loop answers too late may outlive this object.
  const auto copy_all = [&listeners = parts_.listeners] {
    exec::assume_on_loop();
    std::vector<Copy> copies;
    for (const auto& listener : listeners.open_ones())
      copies.push_back({listener->settings().name(), listener->copy()});
    return copies;
  };
  auto listeners = exec::query_loop<std::vector<Copy>>(parts_.first_loop, kLoopTimeout, copy_all);
  if (!listeners) return Fault{FaultKind::internal, Side::self, "hand-over: a loop does not respond"};
  FdMessage fd_message;
  HandoverState state;
  const auto add = [&](const char* role, std::string address, Fd fd) {
    if (!fd) return;
    state.sockets.push_back({role, std::move(address)});
    fd_message.descriptors.push_back(std::move(fd));
  };
  for (Copy& copy : *listeners) add("listen", std::move(copy.address), std::move(copy.fd));
  const auto addresses = parts_.config.with(
      [](const config::Config& config) { return std::pair(config.admin.address, config.metrics.address); });
  if (parts_.admin.address() != nullptr) add("admin", addresses.first, parts_.admin.copy_of_listener());
  if (parts_.admin.metrics_address() != nullptr)
    add("metrics", addresses.second, parts_.admin.copy_of_metrics_socket());
  add("handover", configured_, acceptor_.copy());
  std::size_t secrets = 0;
  const auto held = parts_.origins.directory().hold();  // destroying a pool does not wait for this loop
  for (const OriginRuntime* context : parts_.origins.all())
    append_learned_state(*context, state, secrets, Clock::now());
  fd_message.text = encode(state);
  return fd_message;
}

// Another process asks for the sockets. A successor that hangs must not keep it from taking over; one that has just
// become ready takes over itself.
void HandoverListener::drop_late_successor() {
  if (parts_.admin.loop().now() - successor_.since < parts_.takeover_timeout) return;
  on_message();
  if (!successor_.socket || !parts_.drain.serving()) return;
  log::warn("handover", "the new process did not take over in time: another one may", {{"pid", successor_.pid}});
  std::string_view word = HandoverMessage::kLate;
  static_cast<void>(send_word(successor_.socket.get(), word));
  keep_sockets();
  drop_successor();
}

void HandoverListener::on_message() {
  const HandoverMessage::Received message = successor_.word.receive(successor_.socket.get());
  if (message == HandoverMessage::Received::nothing) return;
  // While this process drains, a successor that is ready needs no confirmation: the closed socket has the same meaning.
  if (message == HandoverMessage::Received::word) {
    if (parts_.drain.serving()) return leave();
    parts_.admin.leave_clients();
    return drop_successor();
  }
  const bool unexpected = message == HandoverMessage::Received::other;
  log::warn("handover",
            unexpected ? "the new process sent an unexpected message; carpool continues"
                       : "the new process disconnected; carpool continues",
            {{"pid", successor_.pid}});
  keep_sockets();
  drop_successor();
}

void HandoverListener::leave() {
  parts_.admin.leave_clients();
  const auto hand_over = [&drain = parts_.drain] {  // as in build_message()
    exec::assume_on_loop();
    drain.hand_over();
    return true;
  };
  const auto closed = exec::query_loop<bool>(parts_.first_loop, kLoopTimeout, hand_over);
  if (!closed) log::warn("handover", "a loop does not respond: it stops accepting later");
  log::info("handover", "the new process took over; completing running requests", {{"pid", successor_.pid}});
  std::string_view word = HandoverMessage::kGone;
  static_cast<void>(send_word(successor_.socket.get(), word));
  acceptor_.stop();
  drop_successor();
}

// The successor has not taken over: the files of Unix sockets are this process's again.
void HandoverListener::keep_sockets() {
  constexpr auto kSuccessor = net::SocketUser::successor;
  acceptor_.on_left(kSuccessor);
  parts_.admin.on_left(kSuccessor);
  exec::send(parts_.first_loop, [&listeners = parts_.listeners]() LOOP_ONLY { listeners.on_left(kSuccessor); });
}

void HandoverListener::drop_successor() {
  parts_.admin.loop().unwatch(successor_.socket.get(), successor_.key);
  successor_.socket.reset();
}

}  // namespace carpool::proxy
