#include "proxy/upstream/pending_dial.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "proxy/net/address_policy.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/fd_budget.h"
#include "proxy/upstream/origin/egress_log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/origin/received_via.h"
#include "proxy/upstream/origin/tls_identity.h"

namespace carpool::proxy {

namespace {
constexpr Duration kSettingsAckTimeout = std::chrono::milliseconds(250);
constexpr std::uint32_t kDialsAfterGoaway = 2;
constexpr Duration kMinTimeLeft = std::chrono::milliseconds(1);  // zero would be no limit
}  // namespace

PendingDial::PendingDial(PendingDialOwner& owner, const UpstreamContext& context, dns::Resolver& resolver,
                         net::HandshakeBudget& handshakes, pool::Destination& destination, OriginRuntime& origin,
                         pool::Reservation reservation)
    : owner_(owner),
      context_(context),
      resolver_(resolver),
      handshakes_(handshakes),
      destination_(destination),
      origin_(origin),
      reservation_(std::move(reservation)),
      index_(reservation_.index()),
      generation_(reservation_.generation()),
      turn_(exec::Timer::bind<&PendingDial::on_turn>(context_.loop, *this)),
      timeout_(exec::Timer::bind<&PendingDial::on_settings_timeout>(context_.loop, *this)) {
  origin_.dials.fetch_add(1, std::memory_order_relaxed);
  if (origin_.received_via) received_via_ = origin_.received_via->recent(context_.loop.now());
  note_dial(id_, destination_.label(), pool::name(reservation_.cause()));
}

std::string_view PendingDial::phase() const {
  switch (state_) {
    case DialState::rate_limited:
      return "rate limited (pool.connect_rate)";
    case DialState::dialing:
      return dial_->phase();
    case DialState::settings:
    case DialState::settings_ack:
    case DialState::no_stream:
      return "in the HTTP/2 handshake";
    default:
      return "loading certificates";
  }
}

void PendingDial::enter(DialState state) {
  CARPOOL_ASSERT(kDialTransitions.allows(state_, state));
  state_ = state;
}

void PendingDial::start() {
  if (warming()) warm_up_ = context_.warm_up.on_warm_dial_begun();
  await_turn();
}

void PendingDial::await_turn() {
  const Instant now = context_.loop.now();
  const std::optional<Duration> wait = origin_.connects.delay_until_allowed(now, origin_.pool.wait_timeout);
  if (wait && *wait == Duration::zero()) return load();
  enter(DialState::rate_limited);
  context_.stats.count(origin_.slot, metrics::Limit::connections);
  if (!wait) fault_at_turn_ = Fault{FaultKind::rate_limited, Side::self, "the origin's pool.connect_rate is exceeded"};
  turn_.arm(now + wait.value_or(Duration::zero()));
}

void PendingDial::fail_later(Fault fault) {
  enter(DialState::failing);
  dial_.reset();
  fault_at_turn_ = std::move(fault);
  turn_.arm(context_.loop.now());
}

void PendingDial::load() {
  if (origin_.tls != nullptr && !origin_.tls->ready_or_notify(context_.loop, context_.tasks, *this)) {
    return enter(DialState::loading);
  }
  dial_now();
}

void PendingDial::stop_waiting() {
  if (state_ == DialState::loading && origin_.tls->forget(*this)) enter(DialState::stopping);
}

// Must be called before the dial is reported to the pool.
void PendingDial::mark_over() {
  const bool posted = state_ == DialState::loading && !origin_.tls->forget(*this);
  enter(posted ? DialState::orphaned : DialState::over);
}

void PendingDial::destroy() {
  if (state_ == DialState::orphaned) return;
  const std::unique_ptr<PendingDial> dies(this);
}

void PendingDial::give_up() {
  if (session_ || (dial_ && dial_->past_tcp())) return;
  mark_over();
  dial_.reset();
  note_dial_ended(id_, destination_.label(), pool::name(pool::CloseCause::surplus));
  destination_.given_up(std::move(reservation_), context_.loop.now());
  owner_.finished(*this);
}

void PendingDial::fail(Fault fault) {
  mark_over();
  dial_.reset();
  const Fault copy = fault;
  const bool warmed = warming();
  if (session_ && fault.side == Side::upstream) origin_.address_set->failed(peer_, context_.loop.now());
  end_session();
  note_dial_ended(id_, destination_.label(), pool::name(pool::CloseCause::error));
  destination_.dial_failed(std::move(reservation_), std::move(fault), context_.loop.now());
  if (warmed) context_.warm_up.on_warm_dial_ended(warm_up_, &copy);
  owner_.finished(*this);
}

void PendingDial::on_turn() {
  exec::assume_on_loop();
  if (fault_at_turn_) return fail(std::move(*fault_at_turn_));
  load();
}

void PendingDial::arrive() {
  if (state_ != DialState::orphaned) return dial_now();
  enter(DialState::over);
  destroy();
}

void PendingDial::never_arrives() {
  if (state_ != DialState::orphaned) return enter(DialState::stopping);
  enter(DialState::over);
  destroy();
}

// All dials of a request that the origin refuses by GOAWAY have the time of one.
Duration PendingDial::time_left() const {
  const Duration whole = origin_.pool.connect_timeout;
  return goaways_ == 0 || whole == Duration::zero() ? whole
                                                    : std::max<Duration>(ends_ - context_.loop.now(), kMinTimeLeft);
}

// RFC 9110 §7.6.3: our pseudonym after those of the proxies before this one.
std::string PendingDial::via_of_connect() const {
  std::string via = received_via_;
  if (context_.pseudonym.empty()) return via;
  return via.append(via.empty() ? "1.1 " : ", 1.1 ").append(context_.pseudonym);
}

void PendingDial::dial_now() {
  if (goaways_ == 0) ends_ = deadline_after(context_.loop.now(), origin_.pool.connect_timeout);
  net::DialPlan plan;
  plan.origin = &destination_.origin();
  plan.pinned = origin_.pinned;
  plan.address_set = origin_.address_set;
  plan.policy = &context_.policy;
  plan.parent = origin_.parent;
  plan.through_connect = origin_.through_connect();
  if (plan.through_connect) plan.via = via_of_connect();
  plan.timeout = time_left();
  plan.dns_timeout = origin_.pool.dns_timeout;
  plan.tls_timeout = origin_.pool.tls_timeout;
  if (origin_.tls != nullptr) {
    if (reservation_.kind() == pool::ProtocolMask::h1_only) plan.alpn = {"http/1.1"};
    if (reservation_.kind() == pool::ProtocolMask::h2_only) plan.alpn = {"h2"};
    Result<std::shared_ptr<tls::ClientContext>> context = origin_.tls->get();
    if (!context) return fail_later(context.take_fault());
    tls_context_ = std::move(*context);
    plan.tls = tls_context_.get();
    plan.tasks = tasks_for_handshake();
  }
  enter(DialState::dialing);
  dial_.emplace(context_.loop, resolver_, std::move(plan), *this);
  dial_->start();
}

// Returns the executor of a handshake, or nullptr for the loop itself. A full handshake costs half a millisecond, more
// with an RSA signature. More of them per second than configured, or any that signs, would delay the other connections
// of this loop.
exec::Submitter* PendingDial::tasks_for_handshake() {
  const bool on_the_loop =
      !origin_.tls->signs() && handshakes_.withdraw(context_.inline_handshakes, context_.loop.now());
  return on_the_loop ? nullptr : &context_.tasks;
}

void PendingDial::on_dialed(Result<net::Dialed> result) {
  if (!result && free_descriptor_after(result.fault())) return dial_now();
  if (!result && (result.fault().kind == FaultKind::parent_refused || dial_->parent_status() >= 300)) {
    context_.stats.count_parent_refusal(dial_->parent_status());
  }
  if (!result) return fail(explained(result.take_fault()));
  const Instant now = context_.loop.now();
  origin_.connect_cost.add_sample(result->dns + result->tcp + result->tls, result->tls_cpu);
  if (origin_.tls != nullptr) context_.stats.observe_handshake(origin_.slot, result->tls);
  peer_ = result->peer;
  const Result<bool> h2 = chose_h2(*result);
  if (!h2) return fail(h2.fault());
  if (*h2) return start_h2(std::move(*result));
  auto made = std::make_unique<Connection>(id_, std::move(*result), now);
  dial_.reset();
  if (certificates_replaced()) {
    made.reset();
    return dial_now();
  }
  finish(std::move(made));
}

bool PendingDial::certificates_replaced() const {
  return origin_.tls != nullptr && origin_.tls->in_force() != tls_context_->fingerprint();
}

void PendingDial::finish(std::unique_ptr<Connection> made) {
  exec::Loop& loop = context_.loop;
  const int fd = made->transport().fd();
  if (Status watched = loop.watch_shared(fd, reservation_.index(), reservation_.generation()); !watched) {
    made.reset();  // its descriptor is closed before its slot is free
    return fail(watched.take_fault());
  }
  made->enter_pool(destination_.label());
  made->track_address(*origin_.address_set, peer_);
  note_egress();
  if (origin_.tls != nullptr) made->made_under(*origin_.tls, tls_context_->fingerprint());
  const bool warmed = warming();
  mark_over();
  destination_.dialed(std::move(reservation_), std::move(made), loop.now());
  if (warmed) context_.warm_up.on_warm_dial_ended(warm_up_, nullptr);
  owner_.finished(*this);
}

void PendingDial::note_egress() {
  if (origin_.parent != nullptr) return;
  const std::optional<Fault> reported = context_.policy.reported(destination_.origin(), peer_);
  if (reported && !origin_.reported.exchange(true, std::memory_order_relaxed))
    log_egress_reported(destination_.label(), *reported);
}

Fault PendingDial::explained(Fault fault) const {
  if (fault.side == Side::client) fault.detail += ": only HTTP/1.1 was offered, because the request needs it";
  return fault;
}

bool PendingDial::free_descriptor_after(const Fault& fault) {
  if (fault.kind != FaultKind::budget || fault.side != Side::self || std::exchange(descriptor_freed_, true))
    return false;
  return free_a_descriptor(context_.origins.directory(), context_.loop.now());
}

void PendingDial::start_h2(net::Dialed dialed) {
  exec::Loop& loop = context_.loop;
  session_ = std::make_unique<H2Connection>(context_.sessions, origin_, id_, std::move(dialed), loop.now());
  enter(DialState::settings);
  dial_.reset();
  Result<exec::WatchKey> watched = loop.watch(session_->transport().fd(), *this);
  if (!watched) return fail(watched.take_fault());
  key_ = *watched;
  timeout_.arm(ends_);
  on_ready({});
}

void PendingDial::on_ready(exec::Ready ready) {
  Result<bool> established = session_->handshake(ready);
  if (!established && dial_after_goaway()) return;
  if (!established) return fail(established.take_fault());
  *established || state_ == DialState::no_stream ? await_stream() : await_settings_ack();
}

void PendingDial::end_session() {
  if (session_) context_.loop.unwatch(session_->transport().fd(), key_);
  session_.reset();
  timeout_.disarm();
}

bool PendingDial::dial_after_goaway() {
  const Instant now = context_.loop.now();
  if (!session_->declined() || goaways_ == kDialsAfterGoaway || now >= ends_) return false;
  if (goaways_++ == 0) origin_.address_set->failed(peer_, now);
  log::debug("dial", "the origin serves no request on the dialed connection (GOAWAY): dialing again",
             {{"origin", destination_.label()}});
  end_session();
  await_turn();
  return true;
}

void PendingDial::await_settings_ack() {
  if (state_ != DialState::settings || !session_->has_settings()) return;
  enter(DialState::settings_ack);
  timeout_.arm(std::min(context_.loop.now() + kSettingsAckTimeout, ends_));
}

void PendingDial::await_stream() {
  if (session_->streams() != 0) return assign_slot();
  enter(DialState::no_stream);
  timeout_.arm(ends_);
}

void PendingDial::assign_slot() {
  if (certificates_replaced()) {
    end_session();
    return dial_now();
  }
  timeout_.disarm();
  context_.loop.unwatch(session_->transport().fd(), key_);
  if (const OriginRuntime* current = context_.origins.of(destination_)) {  // a reload may have changed it
    session_->limit_streams(current->pool.max_streams);
  }
  session_->assign_slot(reservation_.index(), reservation_.generation());
  finish(std::move(session_));
}

void PendingDial::on_settings_timeout() {
  exec::assume_on_loop();
  if (state_ == DialState::settings) {
    return fail(
        {FaultKind::connect_timeout, Side::upstream, "the origin sends no HTTP/2 SETTINGS after negotiating HTTP/2"});
  }
  if (session_->streams() != 0 || context_.loop.now() < ends_) return await_stream();
  fail({FaultKind::connection_terminated, Side::upstream, "the origin allows no HTTP/2 stream (SETTINGS)"});
}

Result<bool> PendingDial::chose_h2(const net::Dialed& dialed) const {
  const bool h2 = origin_.tls == nullptr ? origin_.protocols.h2 : dialed.transport->security().alpn == "h2";
  if (h2 && reservation_.kind() == pool::ProtocolMask::h1_only) {
    return Fault{FaultKind::tls_protocol, Side::client, "the origin selected HTTP/2, but the request needs HTTP/1.1"};
  }
  if (h2) return true;
  if (origin_.tls == nullptr) return false;
  if (origin_.protocols.h1 && reservation_.kind() != pool::ProtocolMask::h2_only) return false;
  return Fault{FaultKind::tls_protocol, Side::upstream, "the origin does not support HTTP/2"};
}

}  // namespace carpool::proxy
