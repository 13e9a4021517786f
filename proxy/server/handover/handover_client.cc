#include "proxy/server/handover/handover_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proxy/net/egress_policy.h"
#include "proxy/net/peer_credentials.h"
#include "proxy/server/handover/fd_message.h"
#include "proxy/server/sd_notify.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
constexpr Duration kReceiveTimeout = std::chrono::seconds(5);  // timeout of the message
constexpr std::chrono::milliseconds kTick{50};                 // interval between batches of dials
// After this time the hand-over proceeds with fewer connections.
constexpr Duration kWarmFor = std::chrono::seconds(10);
constexpr Duration kConfirmTimeout = std::chrono::seconds(5);  // timeout for the old process to close its listeners

Fault no_handover(const net::Address& where, const std::string& why) {
  return {FaultKind::unroutable, Side::self, "hand-over: " + where.text() + ": " + why};
}

bool trusted(uid_t user) {
  return user == 0 || user == ::geteuid();
}

// The received listening sockets determine which process serves this process's clients. Therefore the old process and
// the socket file must belong to root or to this user, as the old process requires of its successor.
Status belongs_to_us(int socket, const net::Address& where) {
  const PeerCredentials peer = peer_of(socket);  // credentials of the process that called listen()
  if (!same_user(peer)) {
    const std::string user = peer.uid ? "user " + std::to_string(*peer.uid) : "an unknown user";
    return no_handover(where, user + " owns the listening process, expected root or the user of this process");
  }
  struct stat file {};
  const char* path = reinterpret_cast<const sockaddr_un*>(where.get())->sun_path;
  if (::lstat(path, &file) != 0 || !S_ISSOCK(file.st_mode) || !trusted(file.st_uid)) {
    return no_handover(where, "the socket file does not belong to root or the user of this process");
  }
  return Done{};
}

// A descriptor of another kind would never accept a client, and accept() on a blocking one would hold up its loop.
bool accepts_clients(int descriptor) {
  int listens = 0, type = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return false;
  size = sizeof type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return false;
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_NONBLOCK) != 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0);
}
}  // namespace

Result<std::unique_ptr<HandoverClient>> HandoverClient::ask(const std::string& address) {
  Result<net::Address> where = net::Address::parse(address);
  if (!where) return where.take_fault();
  // Does not wait for room in the accept queue of a process that hangs.
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), where->get(), where->length()) != 0) {
    if (errno == EAGAIN) return no_handover(*where, "the old process accepts no connections");
    return std::unique_ptr<HandoverClient>();
  }
  if (Status ours = belongs_to_us(socket.get(), *where); !ours) return ours.take_fault();
  Result<FdMessage> fd_message = receive_fds(socket.get(), kReceiveTimeout);
  if (!fd_message) {
    return no_handover(*where, "the old process sent no sockets: it may be draining, or another process takes over (" +
                                   fd_message.fault().detail + ")");
  }
  Result<HandoverState> state = decode_handover_state(fd_message->text);
  if (!state) return state.take_fault();
  if (state->sockets.size() != fd_message->descriptors.size()) {
    return Fault{FaultKind::internal, Side::self, "hand-over: the old process did not send all sockets"};
  }
  for (const Fd& socket_of_old : fd_message->descriptors) {
    if (!accepts_clients(socket_of_old.get()))
      return no_handover(*where, "the old process sent a descriptor that is no listening socket");
  }
  std::unique_ptr<HandoverClient> successor(new HandoverClient(std::move(socket)));
  successor->state_ = std::move(*state);
  successor->descriptors_ = std::move(fd_message->descriptors);
  log::info("handover", "sockets received from the old process",
            {{"sockets", successor->descriptors_.size()}, {"origins", successor->state_.origins.size()}});
  return successor;
}

HandoverClient::~HandoverClient() = default;

std::optional<net::Bound> HandoverClient::take(std::string_view role, const std::string& address) {
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    const HandoverState::Socket& socket = state_.sockets[i];
    if (socket.role != role || socket.address != address || !descriptors_[i]) continue;
    net::Bound bound{std::move(descriptors_[i]), {}, true};
    bound.address = net::Address::local_of(bound.fd.get());
    return bound;
  }
  return std::nullopt;
}

// ---- learned state ----

void HandoverClient::restore_learned_state(OriginRegistry& origins, const net::EgressPolicy& policy) {
  origins_ = &origins;
  for (const Fd& unused : descriptors_) {
    if (!unused) continue;
    const net::Address address = net::Address::local_of(unused.get());
    if (address.family() == AF_UNIX) unused_.push_back(address);
  }
  descriptors_.clear();
  for (const HandoverState::Origin& one : state_.origins) restore_one(origins, policy, one);
  for (HandoverState::Origin& one : state_.origins) one.sessions.clear();
  for (const HandoverState::Paused& one : state_.paused) pause_one(origins, one);
}

// Applies the operator's pause even if egress rules now deny the name.
void HandoverClient::pause_one(OriginRegistry& origins, const HandoverState::Paused& one) {
  const Result<pool::Origin> origin = pool::parse_origin(one.label);
  if (!origin) return;
  const Result<OriginRuntime*> context = origins.at(*origin);
  if (!context) return log::warn("handover", "the pause of an origin is lost", {{"origin", one.label}});
  const Instant now = Clock::now();
  (*context)->destination->restore_pause({now - one.age, one.left ? now + *one.left : kNever, one.drains});
}

void HandoverClient::restore_one(OriginRegistry& origins, const net::EgressPolicy& policy,
                                 const HandoverState::Origin& one) {
  const Result<pool::Origin> origin = pool::parse_origin(one.label);
  if (!origin || !policy.may_ask(*origin, nullptr, !origins.through_parent(*origin))) return;
  Result<OriginRuntime*> context = origins.at(*origin);
  if (!context) return;
  if (one.learned_idle) (*context)->destination->restore_idle_limit(*one.learned_idle);
  if (one.size != 0) (*context)->destination->restore_size(one.size);
  if (one.open != 0) to_warm_.push_back({*origin, one.open, one.open});
  // A session was verified against its context's settings: resuming it under other settings would skip their
  // verification.
  TlsIdentity* tls = (*context)->tls;
  if (tls == nullptr || one.sessions.empty() || !tls->load()) return;
  const Result<std::shared_ptr<tls::ClientContext>> client = tls->get();
  if (!client || (*client)->fingerprint() != one.tls_fingerprint) return;
  const std::string peer = tls::peer_name(origin->host, origin->port);
  for (const std::string& session : one.sessions) static_cast<void>((*client)->remember(peer, session));
}

// ---- taking over ----

void HandoverClient::watch(exec::Loop& loop, const Calls& calls) {
  loop_ = &loop;
  calls_ = calls;
  static_cast<void>(watch_socket());  // send_go() tries again
}

bool HandoverClient::watch_socket() {
  if (watched_) return true;
  Result<exec::WatchKey> key = loop_->watch(socket_.get(), *this);
  if (!key) return false;
  key_ = *key;
  watched_ = true;
  return true;
}

void HandoverClient::begin(std::uint32_t rate) {
  if (!calls_.ready) return;  // another process takes over: this one is about to stop
  pace_ = DialPace(rate);
  give_up_ = loop_->now() + kWarmFor;
  timer_ = std::make_unique<exec::Timer>(*loop_, exec::Bound::to<&HandoverClient::tick>(*this));
  tick();
}

void HandoverClient::stop() {
  timer_.reset();
  calls_ = {};
  leave_socket();
}

void HandoverClient::leave_socket() {
  if (!socket_) return;
  if (watched_) loop_->unwatch(socket_.get(), key_);
  socket_.reset();
}

void HandoverClient::tick() {
  exec::assume_on_loop();
  const Instant now = loop_->now();
  if (ready_sent_) {
    log::warn("handover", "the old process did not confirm that it stopped accepting");
    if (!go_.empty()) leave_socket();  // it continues; otherwise its confirmation may still arrive
    return report_ready();
  }
  if (const std::uint32_t permitted = pace_.step(kTick); permitted != 0) dial_some(permitted, now);
  // Each dial is attempted once: an unreachable origin is not retried.
  std::erase_if(to_warm_, [&](const Warm& warm) {
    if (warm.to_dial != 0) return false;
    const Result<OriginRuntime*> origin = origins_->at(warm.origin);
    return !origin || !(*origin)->dialing();
  });
  if (to_warm_.empty() || now >= give_up_) return send_ready();
  timer_->arm(now + kTick);
}

void HandoverClient::dial_some(std::uint32_t most, Instant now) {
  for (Warm& warm : to_warm_) {
    if (warm.to_dial == 0) continue;
    const Result<OriginRuntime*> origin = origins_->at(warm.origin);
    const std::uint32_t begun = origin ? (*origin)->destination->warm_up(std::min(warm.open, (*origin)->pool.largest()),
                                                                         std::min(most, warm.to_dial), now)
                                       : 0;
    most -= begun;
    warm.to_dial = begun == 0 && most > 0 ? 0 : warm.to_dial - begun;  // 0: all are open, or no more may be opened
    if (most == 0) break;
  }
}

void HandoverClient::send_ready() {
  const Instant now = loop_->now();
  if (go_deadline_ == Instant{}) {
    if (socket_ && word_.receive(socket_.get()) == HandoverMessage::Received::late) return on_late();
    go_deadline_ = now + kConfirmTimeout;
    if (socket_) log::info("handover", "ready: the old process is asked to stop accepting");
    // Before the message, after which the old process may end at any moment: a service manager that still watches it
    // would then end this process.
    sd_notify("MAINPID=" + std::to_string(::getpid()));
  }
  if (!socket_) return report_ready();  // the old process ended before
  const bool left = !send_go() && (errno == EPIPE || errno == ECONNRESET);
  if (left && hear()) return;
  ready_sent_ = go_.empty() || now >= go_deadline_;
  timer_->arm(ready_sent_ ? now + kConfirmTimeout : now + kTick);
}

// Returns false if the message is not completely sent (errno).
bool HandoverClient::send_go() {
  if (!watch_socket()) {
    errno = ENOMEM;
    return false;
  }
  return send_word(socket_.get(), go_);
}

void HandoverClient::on_ready(exec::Ready) {
  static_cast<void>(hear());
}

// The old process sends "gone" and closes. If it crashes, the closed socket has the same meaning. Returns false if it
// has sent nothing.
bool HandoverClient::hear() {
  const HandoverMessage::Received message = word_.receive(socket_.get());
  if (message == HandoverMessage::Received::nothing) return false;
  if (message == HandoverMessage::Received::late) return on_late(), true;
  if (message == HandoverMessage::Received::other) {
    log::warn("handover", "the old process sent an unexpected message: it may still accept");
  } else {
    on_old_left();
  }
  announced() ? end() : leave_socket();  // this process may have connections to open yet
  return true;
}

// The old process has given the sockets to another process, because this one took too long.
void HandoverClient::on_late() {
  log::error("handover", "another process takes over: this one was too late and ends");
  if (timer_) timer_->disarm();
  leave_socket();
  const exec::Bound late = std::exchange(calls_, {}).late;
  late();
}

// The files of the sockets that neither process uses now would remain.
void HandoverClient::on_old_left() {
  log::info("handover", "the old process has stopped accepting");
  for (const net::Address& address : unused_) net::remove_socket_file(address);
  unused_.clear();
  if (const exec::Bound left = std::exchange(calls_.left, {})) left();
}

void HandoverClient::end() {
  leave_socket();
  report_ready();
}

void HandoverClient::report_ready() {
  timer_->disarm();
  if (const exec::Bound ready = std::exchange(calls_.ready, {})) ready();
}

}  // namespace carpool::proxy
