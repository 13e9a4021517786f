#include "proxy/downstream/client_handshake.h"

#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "exec/read_buffer.h"
#include "pool/origin.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/client_hello.h"
#include "proxy/net/tls/handshake_task.h"
#include "proxy/net/tls/server_context.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

namespace {

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMaxRecord = 16'384;      // RFC 8446 §5.1: maximum size after the header
constexpr std::size_t kMaxHello = 17'408;       // a record of maximum size
constexpr unsigned char kHandshakeRecord = 22;  // RFC 8446 §5.1
constexpr unsigned char kFirstRecordType = 20, kLastRecordType = 23;
constexpr std::uint8_t kMaxHelloReads = 16;  // each of them reads all bytes that have arrived

// Returns true also if the number is unknown.
bool holds(int fd, std::size_t bytes) {
  int readable = 0;
  return ::ioctl(fd, FIONREAD, &readable) != 0 || static_cast<std::size_t>(readable) >= bytes;
}

// Returns true also if the bytes are not such a record, or no more will arrive.
bool first_record_arrived(int fd) {
  std::array<unsigned char, kRecordHeader> header{};
  const ssize_t received = net::peek(fd, header.data(), header.size());
  if (received < 0) return errno != EAGAIN;
  if (received == 0 || header[0] != kHandshakeRecord) return true;
  if (static_cast<std::size_t>(received) < header.size()) return false;
  const std::size_t size = (std::size_t{header[3]} << 8) + header[4];
  return size > kMaxRecord || holds(fd, kRecordHeader + size);
}

// Returns the bytes that OpenSSL reads before it finds an error; 0: it finds one in these. A record that is too long is
// read up to the maximum.
std::size_t first_record_bytes(const std::array<unsigned char, kRecordHeader>& header) {
  const auto number = [&](std::size_t at, unsigned mask) {
    return (std::size_t{header[at] & mask} << 8) + header[at + 1];
  };
  if ((header[0] & 0x80U) != 0) return std::min(2 + number(0, 0x7F), kMaxRecord);  // the form of SSL 2.0
  const bool record = header[0] >= kFirstRecordType && header[0] <= kLastRecordType;
  return record ? kRecordHeader + std::min(number(3, 0xFF), kMaxRecord) : 0;
}

// Returns true once OpenSSL can read the first record or finds an error, or if no more will arrive. Until then the
// client costs no TLS state.
bool first_bytes_arrived(int fd) {
  std::array<unsigned char, kRecordHeader> header{};
  const ssize_t received = net::peek(fd, header.data(), header.size());
  if (received <= 0) return received == 0 || errno != EAGAIN;
  if (static_cast<std::size_t>(received) < header.size()) return false;
  return holds(fd, first_record_bytes(header));
}

}  // namespace

// Step: the TLS connection and the computation of its handshake.
struct ClientHandshake::Step final : tls::HandshakeTask {
  Step(exec::Loop& loop, HandshakeTurns& t, ClientHandshake& c, ListenerIdentity i, Fd&& socket)
      : HandshakeTask(loop),
        turns(t),
        client(&c),
        identity(std::move(i)),
        transport(identity->accept(std::move(socket))) {}
  const char* name() const override { return "TLS handshake of a client"; }
  Result<bool> compute() override { return transport->handshake(); }
  void on_returned() override LOOP_ONLY {
    HandshakeTurns& own = turns;
    if (client != nullptr) {
      client->returned();
    } else {
      const std::unique_ptr<Step> ended(this);
    }
    own.give_back();
  }
  void never_arrives() override {
    if (client == nullptr) const std::unique_ptr<Step> ended(this);
  }

  HandshakeTurns& turns;
  ClientHandshake* client;  // nullptr: the client ended before the step returned
  const ListenerIdentity identity;
  std::unique_ptr<tls::TlsTransport> transport;
};

void ClientHandshake::FreeStep::operator()(Step* step) const {
  std::unique_ptr<Step> ended(step);
  if (!step->away()) return;
  step->client = nullptr;
  static_cast<void>(ended.release());
}

ClientHandshake::ClientHandshake(const ExchangeContext& context, HandshakeOwner& owner, Listener& listener,
                                 ListenerIdentity identity, Fd socket, std::string_view peer)
    : OpeningClient(context, listener),
      owner_(owner),
      identity_(std::move(identity)),
      socket_(std::move(socket)),
      peer_(peer) {}

ClientHandshake::ClientHandshake(const ExchangeContext& context, HandshakeOwner& owner, Listener& listener,
                                 std::unique_ptr<InterceptedConnect> connect, Fd socket, std::string_view peer)
    : ClientHandshake(context, owner, listener, std::move(connect->identity), std::move(socket), peer) {
  connect_ = std::move(connect);
}

ClientHandshake::~ClientHandshake() = default;

Status ClientHandshake::start() {
  Result<exec::WatchKey> key = context_.loop.watch(fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  deadline_.arm(deadline_after(context_.loop.now(), listener_.settings().header_timeout));
  return Done{};
}

void ClientHandshake::on_ready(exec::Ready ready) {
  if (over_) return;
  if (step_ == nullptr && !try_to_begin(ready)) return;
  if (step_->on_readiness(*step_->transport, ready)) proceed();
}

// Like begin(). A failed allocation ends only this client.
bool ClientHandshake::try_to_begin(exec::Ready ready) {
  bool begun = false;
  try {
    begun = begin(ready);
  } catch (const std::bad_alloc&) {
    fail(metrics::ClientHandshake::rejected, "out of memory");
  }
  if (tunnel_) become_tunnel(*tunnel_);
  return begun;
}

// Returns true once the client's first record has arrived or no further bytes can arrive.
bool ClientHandshake::begin(exec::Ready ready) {
  if (connect_ != nullptr) {
    if (!admit_hello(ready.hangup)) return false;
  } else if (!ready.hangup && !first_bytes_arrived(socket_.get())) {
    return false;
  }
  tasks_ = owner_.tasks_for_handshake();
  step_.reset(
      std::make_unique<Step>(context_.loop, owner_.handshake_turns(), *this, std::move(identity_), std::move(socket_))
          .release());
  return true;
}

// Inspects the first message of a client inside a CONNECT. Returns true if its TLS is intercepted; false if the message
// is incomplete, the client has gone, or the connection becomes a tunnel. The bytes stay in the socket, because they
// are read by OpenSSL or forwarded to the tunnel's origin. `ended`: no further bytes will arrive.
bool ClientHandshake::admit_hello(bool ended) {
  using What = metrics::Intercept;
  if (!ended && !first_record_arrived(socket_.get())) return false;
  const exec::ReadBuffer buffer(context_.loop);
  const auto bytes = buffer.span().first(std::min(buffer.span().size(), kMaxHello));
  const ssize_t received = net::peek(socket_.get(), bytes.data(), bytes.size());
  if (received < 0 && errno == EAGAIN) return false;
  if (received <= 0) {
    fail(metrics::ClientHandshake::failed, "the client left after CONNECT");
    return false;
  }
  tls::ClientHello hello;
  switch (tls::read_hello(bytes.first(static_cast<std::size_t>(received)), hello)) {
    case tls::HelloState::incomplete:
      ended = ended || static_cast<std::size_t>(received) == bytes.size() || ++hello_reads_ == kMaxHelloReads;
      return ended && tunnel(What::not_tls);
    case tls::HelloState::not_tls:
      return tunnel(What::not_tls);
    case tls::HelloState::complete:
      break;
  }
  if (hello.offers_protocols && !hello.offers_h1 && !hello.offers_h2) {
    return tunnel(What::alpn);
  }
  if (!hello.suits_p256) return tunnel(What::no_common_tls);
  if (owner_.interceptor().distrusts(*connect_, hello)) return tunnel(What::distrusted);
  if (!hello.server_name.empty()) connect_->point->note_server_name(hello.server_name);
  return true;
}

// Returns false, because the TLS connection does not end here.
bool ClientHandshake::tunnel(metrics::Intercept why) {
  tunnel_ = why;
  return false;
}

void ClientHandshake::become_tunnel(metrics::Intercept why) {
  owner_.interceptor().count(*connect_, why);
  established_ = true;
  context_.loop.unwatch(fd(), std::exchange(key_, {}));
  owner_.tunnel(listener_, *connect_, why, std::move(socket_), std::string(peer_.known()), draining_);
  close();
}

int ClientHandshake::fd() const {
  return step_ != nullptr ? step_->transport->fd() : socket_.get();
}

// Processes the client's Finished on the loop, because it costs less than a switch to another thread and back.
void ClientHandshake::proceed() {
  if (tasks_ == nullptr || step_->transport->lacks_finished_only()) return on_result(step_->transport->handshake());
  if (owner_.handshake_turns().acquire(*this)) on_turn();
}

void ClientHandshake::on_turn() {
  step_->submit(*tasks_);
}

void ClientHandshake::returned() {
  if (over_) return;  // the client ended meanwhile and is destroyed at the end of the turn
  if (auto result = step_->take_result(*step_->transport)) return on_result(std::move(*result));
  proceed();
}

void ClientHandshake::on_result(Result<bool> done) {
  using End = metrics::ClientHandshake;
  if (!done) {
    const FaultKind kind = done.fault().kind;
    const bool rejected = kind == FaultKind::overloaded || kind == FaultKind::budget;
    return fail(rejected ? End::rejected : End::failed, done.fault().detail);
  }
  if (!*done) return;
  context_.stats.count(step_->transport->security().resumed ? End::resumed : End::full);
  established_ = true;
  context_.loop.unwatch(fd(), std::exchange(key_, {}));
  std::unique_ptr<const ListenPoint> point;
  if (connect_ != nullptr) {
    owner_.interceptor().count(*connect_, metrics::Intercept::intercepted);
    connect_->point->interception()->since = context_.loop.now();
    point = std::move(connect_->point);
  }
  owner_.established(listener_, std::move(point), std::move(step_->transport), std::string(peer_.known()), draining_);
  close();
}

void ClientHandshake::count_failure(metrics::ClientHandshake end) {
  context_.stats.count(end);
  if (connect_ == nullptr) return;
  const bool returned = step_ != nullptr && !step_->away();
  const std::uint8_t alert = returned ? step_->transport->refusal_alert() : 0;
  if (alert != 0 || (returned && step_->transport->peer_left())) {
    return owner_.interceptor().on_refusal(*connect_, alert);
  }
  owner_.interceptor().count(*connect_, metrics::Intercept::failed);
}

void ClientHandshake::fail(metrics::ClientHandshake end, const std::string& why) {
  count_failure(end);
  log::debug("tls", "TLS handshake of a client failed", {{"client", peer_.name(fd())}, {"error", why}});
  close();
}

void ClientHandshake::on_deadline() {
  exec::assume_on_loop();
  if (draining_) return end();
  fail(metrics::ClientHandshake::timeout, "header_timeout has passed");
}

void ClientHandshake::end() {
  if (!over_) fail(metrics::ClientHandshake::failed, "carpool is stopping or sheds idle clients");
}

void ClientHandshake::close() {
  over_ = true;
  HandshakeTurns::Hook::unlink();
  deadline_.disarm();
  if (key_.generation != 0) context_.loop.unwatch(fd(), std::exchange(key_, {}));
  owner_.destroy_later(*this);
}

}  // namespace carpool::proxy
