// The functions are in the order of the phases: start, resolve, connect, CONNECT of a parent proxy, TLS handshake,
// finish. The deadline may end any phase.
#include "proxy/net/dial.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "exec/read_buffer.h"
#include "exec/submitter.h"
#include "proxy/net/address_set.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/happy_eyeballs.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/net/parent_tunnel.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::net {
namespace {

// Formats a duration like the setting: "2s", "250ms".
std::string spelled(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

Duration thread_cpu() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

// The addresses of a parent proxy are not judged by the rules for the origin.
struct ParentPolicy final : AddressPolicy {
  explicit ParentPolicy(const AddressPolicy* p) : policy(p) {}
  Status may_dial(const pool::Origin& parent, const Address& address) const override {
    return policy == nullptr ? Status(Done{}) : policy->may_dial_parent(parent, address);
  }
  const AddressPolicy* policy;
};

}  // namespace

struct Dial::Impl final : exec::Deferred, exec::Watcher, dns::Question, RaceOwner {
  enum class Phase : std::uint8_t { resolving, connecting, asking, greeting, done };

  Impl(exec::Loop& l, dns::Resolver& r, DialPlan p, DialOwner& o)
      : loop(l),
        resolver(r),
        plan(std::move(p)),
        owner(o),
        place(plan.parent == nullptr ? *plan.origin : plan.parent->place),
        parent_policy(plan.policy),
        deadline(exec::Timer::bind<&Impl::on_deadline>(l, *this)) {}
  ~Impl() {
    exec::assume_on_loop();
    unwatch();
    settle();
  }

  void start() LOOP_ONLY;
  void run() override LOOP_ONLY;
  void on_addresses(Result<std::vector<Address>> addresses) override LOOP_ONLY;
  void connect(std::vector<Address> addresses) LOOP_ONLY;
  void on_race(Result<Winner> result) override LOOP_ONLY;
  void on_attempt_failed(const Address& address) override LOOP_ONLY { blame(address); }
  void blame(const Address& address) LOOP_ONLY {
    if (plan.address_set != nullptr) plan.address_set->failed(address, loop.now());
  }
  // The dial no longer counts for the address that it tried first.
  void settle(bool reached = true) {
    exec::assume_on_loop();
    if (counted) plan.address_set->dial_ended(*counted, reached, loop.now());
    counted.reset();
  }
  void ask_parent(Fd connected) LOOP_ONLY;
  void step_tunnel(bool hangup) LOOP_ONLY;
  void proceed(Fd connected) LOOP_ONLY;
  void greet(Fd connected) LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void step_handshake() LOOP_ONLY;
  void judge(Result<bool> done) LOOP_ONLY;
  // Runs on whichever thread owns the TlsTransport.
  Result<bool> work_on_handshake(Result<bool> (tls::TlsTransport::*step)() = &tls::TlsTransport::handshake);
  void came_home() LOOP_ONLY;

  // One handshake step on another thread, which owns the TlsTransport meanwhile: readiness is recorded and applied
  // afterwards; the deadline and the end of the dial wait.
  struct HandshakeTask final : exec::Task, exec::Mail {
    explicit HandshakeTask(Impl& i) : impl(i) {}
    const char* name() const override { return "TLS handshake"; }
    void run() override {
      result = impl.work_on_handshake();
      impl.loop.post(*this);
    }
    void close() override {
      result = tls::rejected_handshake();
      impl.loop.post(*this);
    }
    void arrive() override LOOP_ONLY { impl.came_home(); }
    Impl& impl;
    Result<bool> result = false;
    exec::Ready ready{};
    bool away = false, again = false, late = false, abandoned = false;
  };
  // The phase that begins ends at the dial's deadline, or after `limit` of its own.
  void limit_phase(Duration limit) LOOP_ONLY;
  void on_deadline();
  Fault late() const;
  void unwatch() LOOP_ONLY;
  void finish(Result<Dialed> result) LOOP_ONLY;
  // Returns the time since the last call: the duration of a phase.
  Duration lap();

  exec::Loop& loop;
  dns::Resolver& resolver;
  const DialPlan plan;
  DialOwner& owner;
  const pool::Origin& place;  // what is dialed: the origin or the parent proxy
  const ParentPolicy parent_policy;
  exec::Timer deadline;
  Instant ends = kNever;  // of the whole dial
  Duration allowed{};     // of the phase, or of the whole dial
  Phase phase = Phase::resolving;
  bool asked_dns = false;
  Instant lap_began{};
  std::unique_ptr<HappyEyeballs> race;
  std::optional<Address> counted;  // counted as being dialed in the AddressSet
  Fd socket;                       // while the parent proxy is asked
  std::optional<ParentTunnel> tunnel;
  std::unique_ptr<tls::TlsTransport> stream;
  exec::WatchKey key;
  Dialed made;
  HandshakeTask greeting{*this};
};

void Dial::Impl::start() {
  lap_began = loop.now();
  ends = deadline_after(loop.now(), plan.timeout);
  limit_phase(plan.dns_timeout);
  // Resolution may take long, so start it at once; everything else continues from the loop, because the owner is not
  // called from inside start().
  if (!plan.pinned.empty() || Address::literal(place.host, 0)) return loop.defer(*this);
  asked_dns = true;
  resolver.ask(place.host, *this);
}

void Dial::Impl::limit_phase(Duration limit) {
  const Instant own = deadline_after(loop.now(), limit);
  allowed = own < ends ? limit : plan.timeout;
  deadline.arm(std::min(own, ends));
}

void Dial::Impl::run() {
  if (const auto literal = Address::literal(place.host, 0); plan.pinned.empty()) return connect({*literal});
  connect(plan.pinned);
}

void Dial::Impl::on_addresses(Result<std::vector<Address>> addresses) {
  if (!addresses) return finish(addresses.take_fault());
  connect(std::move(*addresses));
}

void Dial::Impl::connect(std::vector<Address> addresses) {
  made.dns = lap();
  phase = Phase::connecting;
  limit_phase({});
  addresses = with_default_port(std::move(addresses), place.port);
  if (plan.address_set != nullptr && !addresses.empty()) {
    plan.address_set->learn(addresses, loop.now());
    addresses = plan.address_set->order(std::move(addresses), loop.now());
    counted = addresses.front();
  }
  const AddressPolicy* const policy = plan.parent != nullptr ? &parent_policy : plan.policy;
  race = std::make_unique<HappyEyeballs>(loop, place, policy, addresses, *this);
  race->start();
}

void Dial::Impl::on_race(Result<Winner> result) {
  made.tcp = lap();
  if (!result) {
    const auto kind = result.fault().kind;
    const bool silent = kind == FaultKind::connect_refused || kind == FaultKind::unroutable;
    if (asked_dns && silent) resolver.distrust(place.host);
    return finish(result.take_fault());
  }
  made.peer = result->peer;
  made.local = result->local;
  if (plan.connect) return ask_parent(std::move(result->socket));
  proceed(std::move(result->socket));
}

void Dial::Impl::ask_parent(Fd connected) {
  phase = Phase::asking;
  socket = std::move(connected);
  tunnel.emplace(*plan.parent, *plan.origin, plan.pseudonym);
  auto watched = loop.watch(socket.get(), *this);
  if (!watched) return finish(watched.take_fault());
  key = *watched;
  step_tunnel(false);
}

void Dial::Impl::step_tunnel(bool hangup) {
  Result<bool> open = false;
  {
    const exec::ReadBuffer buffer(loop);
    open = tunnel->step(socket.get(), buffer.span(), hangup);
  }
  if (!open) return finish(open.take_fault());
  if (!*open) return;
  made.tcp += lap();
  unwatch();
  proceed(std::move(socket));
}

// The socket leads to the origin, or to the parent proxy that forwards its requests.
void Dial::Impl::proceed(Fd connected) {
  if (plan.tls != nullptr) return greet(std::move(connected));
  made.transport = make_plain(std::move(connected));
  // Beyond a parent proxy other parties can read plain text.
  if (plan.parent == nullptr) made.proven_peer = ProvenPeer::of(made.peer, nullptr);
  finish(std::move(made));
}

void Dial::Impl::greet(Fd connected) {
  phase = Phase::greeting;
  limit_phase(plan.tls_timeout);
  stream = tls::TlsTransport::client(*plan.tls, std::move(connected), plan.origin->host, plan.origin->port);
  if (!plan.alpn.empty()) stream->offer(plan.alpn);
  auto watched = loop.watch(stream->fd(), *this);
  if (!watched) return finish(watched.take_fault());
  key = *watched;
  judge(work_on_handshake(&tls::TlsTransport::hello));  // cheap
}

void Dial::Impl::on_ready(exec::Ready ready) {
  if (phase == Phase::asking) return step_tunnel(ready.hangup);
  if (!greeting.away) {
    stream->on_readiness(ready);
    return step_handshake();
  }
  greeting.again = true;
  greeting.ready.readable |= ready.readable;
  greeting.ready.writable |= ready.writable;
  greeting.ready.hangup |= ready.hangup;
}

Result<bool> Dial::Impl::work_on_handshake(Result<bool> (tls::TlsTransport::*step)()) {
  const Duration before = thread_cpu();
  Result<bool> done = (*stream.*step)();
  made.tls_cpu += thread_cpu() - before;
  return done;
}

void Dial::Impl::step_handshake() {
  if (plan.tasks == nullptr) return judge(work_on_handshake());
  greeting.away = true;
  plan.tasks->submit(exec::lend(greeting));
}

void Dial::Impl::came_home() {
  greeting.away = false;
  if (greeting.abandoned) {
    const std::unique_ptr<Impl> dies(this);
    return;
  }
  if (greeting.late) return finish(late());
  const bool again = std::exchange(greeting.again, false);
  if (again) stream->on_readiness(std::exchange(greeting.ready, {}));
  const bool over = !greeting.result || *greeting.result;
  if (over || !again) return judge(std::exchange(greeting.result, false));
  step_handshake();
}

void Dial::Impl::judge(Result<bool> done) {
  if (!done) {
    if (done.fault().side == Side::upstream && plan.parent == nullptr) blame(made.peer);
    return finish(done.take_fault());
  }
  if (!*done) return;
  made.tls = lap();
  unwatch();
  made.transport = std::move(stream);
  made.proven_peer = ProvenPeer::of(made.peer, plan.tls);
  finish(std::move(made));
}

void Dial::Impl::on_deadline() {
  exec::assume_on_loop();
  greeting.late = greeting.away;
  if (greeting.away) return;
  if (phase == Phase::asking || (phase == Phase::greeting && plan.parent == nullptr)) blame(made.peer);
  if (phase == Phase::connecting) {
    for (const Address& address : race->waiting_for()) blame(address);
  }
  if (phase == Phase::connecting && asked_dns) resolver.distrust(place.host);
  finish(late());
}

Fault Dial::Impl::late() const {
  const std::string after = " timed out after " + spelled(allowed);
  const std::string name = plan.origin->host + ":" + std::to_string(plan.origin->port);
  switch (phase) {
    case Phase::resolving:
      return {FaultKind::dns_timeout, Side::upstream, "resolving " + place.host + after};
    case Phase::connecting:
      return {FaultKind::connect_timeout, Side::upstream, race->pending() + after};
    case Phase::asking:
      return {FaultKind::connect_timeout, Side::upstream, "CONNECT " + name + " through " + place.label() + after};
    default:
      return {FaultKind::connect_timeout, Side::upstream,
              "TLS handshake with " + name + " (" + made.peer.text() + ")" + after};
  }
}

void Dial::Impl::unwatch() {
  const int fd = stream ? stream->fd() : socket.get();
  if (key.generation != 0) loop.unwatch(fd, std::exchange(key, {}));
}

// The owner may destroy the dial inside the callback, so no member is accessed afterwards.
void Dial::Impl::finish(Result<Dialed> result) {
  CARPOOL_ASSERT(phase != Phase::done);
  phase = Phase::done;
  settle(counted && result && result->peer == *counted);
  deadline.disarm();
  ListHook<exec::DeferredTag>::unlink();
  ListHook<dns::QuestionTag>::unlink();
  unwatch();
  stream.reset();
  socket.reset();
  race.reset();
  owner.on_dialed(std::move(result));
}

Duration Dial::Impl::lap() {
  const Instant before = std::exchange(lap_began, loop.now());
  return lap_began - before;
}

Dial::Dial(exec::Loop& loop, dns::Resolver& resolver, DialPlan plan, DialOwner& owner)
    : impl_(std::make_unique<Impl>(loop, resolver, std::move(plan), owner).release()) {}
Dial::~Dial() = default;

void Dial::DialDeleter::operator()(Impl* impl) const {
  exec::assume_on_loop();
  std::unique_ptr<Impl> ended(impl);
  if (!impl->greeting.away) return;
  impl->greeting.abandoned = true;
  impl->settle();  // the AddressSet may be gone when the handshake task returns
  impl->deadline.disarm();
  static_cast<void>(ended.release());  // came_home() destroys it
}

void Dial::start() {
  impl_->start();
}
bool Dial::past_tcp() const {
  return impl_->phase >= Impl::Phase::asking;
}

std::uint16_t Dial::parent_status() const {
  return impl_->tunnel ? impl_->tunnel->status() : 0;
}

std::string_view Dial::phase() const {
  switch (impl_->phase) {
    case Impl::Phase::resolving:
      return "resolving";
    case Impl::Phase::connecting:
      return "connecting";
    case Impl::Phase::asking:
      return "asking the parent proxy";
    case Impl::Phase::greeting:
      return "in the TLS handshake";
    case Impl::Phase::done:
      return "connected";
  }
  return "";
}

}  // namespace carpool::proxy::net
