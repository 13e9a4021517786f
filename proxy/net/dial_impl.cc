// The functions are in the order of the phases: start, resolve, connect, CONNECT of a parent proxy.
#include "proxy/net/dial_impl.h"

#include <algorithm>
#include <utility>

#include "exec/read_buffer.h"
#include "proxy/net/plain_transport.h"

namespace carpool::proxy::net {

namespace {
constexpr Duration kRestTimeout = std::chrono::seconds(1);
}  // namespace

void Dial::Impl::start() {
  phase_began = loop.now();
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
  if (race) return addresses ? add_to_race(std::move(*addresses)) : void();
  if (!addresses) return finish(part_failed ? std::move(*part_failed) : addresses.take_fault());
  connect(std::move(*addresses));
}

void Dial::Impl::connect(std::vector<Address> addresses) {
  made.dns += end_phase();
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
  if (asked_dns) resolver.await_rest(place.host, *this);
  race->start();
}

// The name server was late with these, one family for example.
void Dial::Impl::add_to_race(std::vector<Address> addresses) {
  addresses = with_default_port(std::move(addresses), place.port);
  if (plan.address_set != nullptr) plan.address_set->learn(addresses, loop.now());
  race->add(addresses);
}

void Dial::Impl::on_race(Result<Winner> result) {
  made.tcp += end_phase();
  if (!result) {
    const auto kind = result.fault().kind;
    const bool unreachable = kind == FaultKind::connect_refused || kind == FaultKind::unroutable;
    if (asked_dns && unreachable) resolver.mark_stale(place.host);
    return await_rest(result.fault()) ? void() : finish(result.take_fault());
  }
  ListHook<dns::QuestionTag>::unlink();
  made.peer = result->peer;
  made.local = result->local;
  if (plan.through_connect) return ask_parent(std::move(result->socket));
  proceed(std::move(result->socket));
}

void Dial::Impl::record_failure(const Address& address) {
  if (plan.address_set == nullptr || std::find(failed.begin(), failed.end(), address) != failed.end()) return;
  failed.push_back(address);
  plan.address_set->failed(address, loop.now());
}

// Returns true if the rest of the addresses is still being resolved: a name server that is late with one family must
// not make a name fail whose other family does not connect. The dial continues once all are known, or fails soon.
bool Dial::Impl::await_rest(const Fault& fault) {
  if (!ListHook<dns::QuestionTag>::linked()) return false;
  part_failed = fault;
  stop_counting(false);
  race.reset();
  phase = Phase::resolving;
  limit_phase(kRestTimeout);
  return true;
}

void Dial::Impl::ask_parent(Fd connected) {
  phase = Phase::asking;
  socket = std::move(connected);
  tunnel.emplace(*plan.parent, *plan.origin, plan.via);
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
  if (!open) {
    const bool answered = tunnel->status() >= 200;  // an answer is about the origin
    if (!answered) record_failure(made.peer);
    return finish(open.take_fault());
  }
  if (!*open) return;
  made.tcp += end_phase();
  unwatch();
  proceed(std::move(socket));
}

// Continues on a socket that leads to the origin, or to the parent proxy that forwards its requests.
void Dial::Impl::proceed(Fd connected) {
  if (plan.tls != nullptr) return begin_handshake(std::move(connected));
  made.transport = make_plain(std::move(connected));
  // Beyond a parent proxy other parties can read plain text.
  if (plan.parent == nullptr) made.proven_peer = ProvenPeer::of(made.peer, nullptr);
  finish(std::move(made));
}

Duration Dial::Impl::end_phase() {
  const Instant before = std::exchange(phase_began, loop.now());
  return phase_began - before;
}

Dial::Dial(exec::Loop& loop, dns::Resolver& resolver, DialPlan plan, DialOwner& owner)
    : impl_(std::make_unique<Impl>(loop, resolver, std::move(plan), owner).release()) {}
Dial::~Dial() = default;

void Dial::DialDeleter::operator()(Impl* impl) const {
  exec::assume_on_loop();
  std::unique_ptr<Impl> ended(impl);
  if (!impl->handshake.away()) return;
  impl->handshake.abandoned = true;
  impl->stop_counting();  // the AddressSet may be gone when the handshake task returns
  impl->deadline.disarm();
  static_cast<void>(ended.release());  // handshake_returned() destroys it
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
    case Impl::Phase::handshaking:
      return "in the TLS handshake";
    case Impl::Phase::done:
      return "connected";
  }
  return "";
}

}  // namespace carpool::proxy::net
