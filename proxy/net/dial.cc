// The functions are in the order of the phases: start, resolve, connect, TLS handshake, finish. The deadline may end
// any phase.
#include "proxy/net/dial.h"

#include <ctime>
#include <optional>
#include <utility>

#include "exec/submitter.h"
#include "proxy/net/address_set.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/happy_eyeballs.h"
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

}  // namespace

struct Dial::Impl final : exec::Deferred, exec::Watcher, dns::Question, RaceOwner {
  enum class Phase : std::uint8_t { resolving, connecting, greeting, done };

  Impl(exec::Loop& l, dns::Resolver& r, DialPlan p, DialOwner& o)
      : loop(l), resolver(r), plan(std::move(p)), owner(o), deadline(exec::Timer::bind<&Impl::on_deadline>(l, *this)) {}
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
  void greet(Fd socket) LOOP_ONLY;
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
  exec::Timer deadline;
  Phase phase = Phase::resolving;
  bool asked_dns = false;
  Instant lap_began{};
  std::unique_ptr<HappyEyeballs> race;
  std::optional<Address> counted;  // counted as being dialed in the AddressSet
  std::unique_ptr<tls::TlsTransport> stream;
  exec::WatchKey key;
  Dialed made;
  HandshakeTask greeting{*this};
};

void Dial::Impl::start() {
  lap_began = loop.now();
  deadline.arm(deadline_after(loop.now(), plan.timeout));
  // Resolution may take long, so start it at once; everything else continues from the loop, because the owner is not
  // called from inside start().
  if (!plan.pinned.empty() || Address::literal(plan.origin->host, 0)) return loop.defer(*this);
  asked_dns = true;
  resolver.ask(plan.origin->host, *this);
}

void Dial::Impl::run() {
  if (const auto literal = Address::literal(plan.origin->host, 0); plan.pinned.empty()) return connect({*literal});
  connect(plan.pinned);
}

void Dial::Impl::on_addresses(Result<std::vector<Address>> addresses) {
  if (!addresses) return finish(addresses.take_fault());
  connect(std::move(*addresses));
}

void Dial::Impl::connect(std::vector<Address> addresses) {
  made.dns = lap();
  phase = Phase::connecting;
  addresses = with_default_port(std::move(addresses), plan.origin->port);
  if (plan.address_set != nullptr && !addresses.empty()) {
    plan.address_set->learn(addresses, loop.now());
    addresses = plan.address_set->order(std::move(addresses), loop.now());
    counted = addresses.front();
  }
  race = std::make_unique<HappyEyeballs>(loop, *plan.origin, plan.policy, addresses, *this);
  race->start();
}

void Dial::Impl::on_race(Result<Winner> result) {
  made.tcp = lap();
  if (!result) {
    const auto kind = result.fault().kind;
    const bool silent = kind == FaultKind::connect_refused || kind == FaultKind::unroutable;
    if (asked_dns && silent) resolver.distrust(plan.origin->host);
    return finish(result.take_fault());
  }
  made.peer = result->peer;
  made.local = result->local;
  if (plan.tls != nullptr) return greet(std::move(result->socket));
  made.transport = make_plain(std::move(result->socket));
  made.proof = ProvenPeer::of(made.peer, nullptr);
  finish(std::move(made));
}

void Dial::Impl::greet(Fd socket) {
  phase = Phase::greeting;
  stream = tls::TlsTransport::client(*plan.tls, std::move(socket), plan.origin->host, plan.origin->port);
  if (!plan.alpn.empty()) stream->offer(plan.alpn);
  auto watched = loop.watch(stream->fd(), *this);
  if (!watched) return finish(watched.take_fault());
  key = *watched;
  judge(work_on_handshake(&tls::TlsTransport::hello));  // cheap
}

void Dial::Impl::on_ready(exec::Ready ready) {
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
    if (done.fault().side == Side::upstream) blame(made.peer);
    return finish(done.take_fault());
  }
  if (!*done) return;
  made.tls = lap();
  unwatch();
  made.transport = std::move(stream);
  made.proof = ProvenPeer::of(made.peer, plan.tls);
  finish(std::move(made));
}

void Dial::Impl::on_deadline() {
  exec::assume_on_loop();
  greeting.late = greeting.away;
  if (greeting.away) return;
  if (phase == Phase::greeting) blame(made.peer);
  if (phase == Phase::connecting) {
    for (const Address& address : race->waiting_for()) blame(address);
  }
  if (phase == Phase::connecting && asked_dns) resolver.distrust(plan.origin->host);
  finish(late());
}

Fault Dial::Impl::late() const {
  const std::string after = " timed out after " + spelled(plan.timeout);
  const std::string name = plan.origin->host + ":" + std::to_string(plan.origin->port);
  switch (phase) {
    case Phase::resolving:
      return {FaultKind::dns_timeout, Side::upstream, "resolving " + plan.origin->host + after};
    case Phase::connecting:
      return {FaultKind::connect_timeout, Side::upstream, "TCP connect to " + race->pending() + after};
    default:
      return {FaultKind::connect_timeout, Side::upstream,
              "TLS handshake with " + name + " (" + made.peer.text() + ")" + after};
  }
}

void Dial::Impl::unwatch() {
  if (key.generation != 0) loop.unwatch(stream->fd(), std::exchange(key, {}));
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
  return impl_->phase == Impl::Phase::greeting || impl_->phase == Impl::Phase::done;
}

std::string_view Dial::phase() const {
  switch (impl_->phase) {
    case Impl::Phase::resolving:
      return "resolving";
    case Impl::Phase::connecting:
      return "connecting";
    case Impl::Phase::greeting:
      return "in the TLS handshake";
    case Impl::Phase::done:
      return "connected";
  }
  return "";
}

}  // namespace carpool::proxy::net
