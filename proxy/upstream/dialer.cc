#include "proxy/upstream/dialer.h"

#include <optional>
#include <utility>

#include "proxy/net/address_policy.h"
#include "proxy/net/dial.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/fd_budget.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/origin/egress_log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/origin/tls_identity.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

namespace {
constexpr Duration kSettingsAckTimeout = std::chrono::milliseconds(250);
}  // namespace

// PendingDial: one dial and the pool entry that it fills.
class Dialer::PendingDial final : public ListHook<AttemptTag>,
                                  public net::DialOwner,
                                  public exec::Mail,
                                  private exec::Watcher {
 public:
  PendingDial(Dialer& dialer, pool::Destination& destination, OriginRuntime& origin, pool::Reservation reservation)
      : dialer_(dialer),
        destination_(destination),
        origin_(origin),
        reservation_(std::move(reservation)),
        turn_(exec::Timer::bind<&PendingDial::on_turn>(dialer.context_.loop, *this)),
        timeout_(exec::Timer::bind<&PendingDial::on_settings_timeout>(dialer.context_.loop, *this)) {
    origin_.dials.fetch_add(1, std::memory_order_relaxed);
    note_dial(id_, destination_.label(), pool::name(reservation_.cause()));
  }
  ~PendingDial() { origin_.dials.fetch_sub(1, std::memory_order_relaxed); }

  const OriginRuntime& origin() const { return origin_; }
  bool is(const pool::Destination& destination, std::uint32_t index, std::uint32_t generation) const {
    return &destination_ == &destination && reservation_.index() == index && reservation_.generation() == generation;
  }
  std::string_view phase() const {
    if (turn_.armed() && !certificates_failed_) return "rate limited (pool.connect_rate)";
    return dial_ ? dial_->phase() : session_ ? std::string_view("in the HTTP/2 handshake") : "loading certificates";
  }

  // At pool.connect_rate the dial keeps its entry in the pool while it waits, so that the limit is kept and the next
  // available connection serves the first waiter.
  void start() LOOP_ONLY {
    if (warming()) warm_up_ = dialer_.context_.warm_up.on_warm_dial_begun();
    const Instant now = dialer_.context_.loop.now();
    const std::optional<Duration> wait = origin_.connects.delay_until_allowed(now, origin_.pool.wait_timeout);
    if (wait && *wait == Duration::zero()) return load();
    dialer_.context_.stats.count(origin_.slot, metrics::Limit::connections);
    turn_.arm(now + wait.value_or(Duration::zero()));
    refused_ = !wait;
  }

  // Reports the fault later, because start() must not call the pool.
  void fail_later(Fault fault) LOOP_ONLY {
    dial_.reset();
    certificates_failed_ = std::move(fault);
    turn_.arm(dialer_.context_.loop.now());
  }

  void load() LOOP_ONLY {
    if (origin_.tls != nullptr) {
      expects_mail_ = !origin_.tls->ready_or_notify(dialer_.context_.loop, dialer_.context_.tasks, *this);
      if (expects_mail_) return;
    }
    dial_now();
  }

  // Returns false if the message about the TLS context is already posted. The mailbox then owns this object until
  // arrive().
  bool stop_waiting() {
    if (expects_mail_ && origin_.tls->forget(*this)) expects_mail_ = false;
    return !expects_mail_;
  }

  // Destroys the dial, which has ended and is not in attempts_, as soon as its message is not posted.
  void destroy() {
    ended_ = true;
    if (!stop_waiting()) return;
    const std::unique_ptr<PendingDial> dies(this);
  }

  void give_up() LOOP_ONLY {
    if (session_ || (dial_ && dial_->past_tcp())) return;
    dial_.reset();
    log_dial_cancelled(id_, destination_.label());
    destination_.given_up(std::move(reservation_), dialer_.context_.loop.now());
    dialer_.finished(*this);
  }

  void fail(Fault fault) LOOP_ONLY {
    dial_.reset();
    const Fault copy = fault;
    const bool warmed = warming();
    if (session_) {
      dialer_.context_.loop.unwatch(session_->transport().fd(), key_);
      if (fault.side == Side::upstream) origin_.address_set->failed(peer_, dialer_.context_.loop.now());
    }
    session_.reset();
    destination_.dial_failed(std::move(reservation_), std::move(fault), dialer_.context_.loop.now());
    if (warmed) dialer_.context_.warm_up.on_warm_dial_ended(warm_up_, &copy);
    dialer_.finished(*this);
  }

 private:
  void on_turn() {
    exec::assume_on_loop();
    if (certificates_failed_) return fail(std::move(*certificates_failed_));
    if (!refused_) return load();
    fail({FaultKind::rate_limited, Side::self, "the origin's pool.connect_rate is exceeded"});
  }

  // The TLS context is loaded or failed to load.
  void arrive() override LOOP_ONLY {
    expects_mail_ = false;
    if (ended_) return destroy();
    dial_now();
  }
  void never_arrives() override {
    expects_mail_ = false;
    if (ended_) destroy();
  }

  void dial_now() LOOP_ONLY {
    net::DialPlan plan;
    plan.origin = &destination_.origin();
    plan.pinned = origin_.pinned;
    plan.address_set = origin_.address_set;
    plan.policy = &dialer_.context_.policy;
    plan.parent = origin_.parent;
    plan.connect = origin_.through_connect();
    plan.pseudonym = dialer_.context_.pseudonym;
    plan.timeout = origin_.pool.connect_timeout;
    plan.dns_timeout = origin_.pool.dns_timeout;
    plan.tls_timeout = origin_.pool.tls_timeout;
    if (origin_.tls != nullptr) {
      if (reservation_.kind() == pool::ProtocolMask::h1_only) plan.alpn = {"http/1.1"};
      if (reservation_.kind() == pool::ProtocolMask::h2_only) plan.alpn = {"h2"};
      Result<std::shared_ptr<tls::ClientContext>> context = origin_.tls->get();
      if (!context) return fail_later(context.take_fault());
      context_ = std::move(*context);
      plan.tls = context_.get();
      plan.tasks = dialer_.tasks_for_handshake(origin_.tls->signs());
    }
    dial_.emplace(dialer_.context_.loop, dialer_.resolver_, std::move(plan), *this);
    dial_->start();
  }

  void on_dialed(Result<net::Dialed> result) override LOOP_ONLY {
    if (!result && may_try_again(result.fault())) return dial_now();
    if (!result && result.fault().kind == FaultKind::parent_refused) {
      dialer_.context_.stats.count_parent_refusal(dial_->parent_status());
    }
    if (!result) return fail(explained(result.take_fault()));
    const UpstreamContext& context = dialer_.context_;
    const Instant now = context.loop.now();
    origin_.connect_cost.add_sample(result->dns + result->tcp + result->tls, result->tls_cpu);
    if (origin_.tls != nullptr) context.stats.observe_handshake(origin_.slot, result->tls);
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

  bool warming() const { return reservation_.cause() == pool::OpenCause::warm_up; }

  // Returns true if the peer was verified by authorities, or was shown a certificate, that are no longer in force. The
  // dial then restarts, and its waiters keep waiting.
  bool certificates_replaced() const {
    return origin_.tls != nullptr && origin_.tls->in_force() != context_->fingerprint();
  }

  void finish(std::unique_ptr<Connection> made) LOOP_ONLY {
    exec::Loop& loop = dialer_.context_.loop;
    const int fd = made->transport().fd();
    if (Status watched = loop.watch_shared(fd, reservation_.index(), reservation_.generation()); !watched) {
      made.reset();  // its descriptor is closed before its slot is free
      return fail(watched.take_fault());
    }
    made->enter_pool(destination_.label());
    made->track_address(*origin_.address_set, peer_);
    note_egress();
    if (origin_.tls != nullptr) made->made_under(*origin_.tls, context_->fingerprint());
    const bool warmed = warming();
    destination_.dialed(std::move(reservation_), std::move(made), loop.now());
    if (warmed) dialer_.context_.warm_up.on_warm_dial_ended(warm_up_, nullptr);
    dialer_.finished(*this);
  }

  // Logs an address that only egress.report_only permits. If a parent proxy resolves the name, the rules have already
  // checked the name.
  void note_egress() LOOP_ONLY {
    if (origin_.parent != nullptr) return;
    const std::optional<Fault> reported = dialer_.context_.policy.reported(destination_.origin(), peer_);
    if (reported && !origin_.reported.exchange(true, std::memory_order_relaxed))
      log_egress_reported(destination_.label(), *reported);
  }

  // Adds the cause to the fault of an origin without HTTP/1.1. Such an origin may answer with a TLS alert, which tells
  // a client that requested an upgrade nothing about the versions.
  Fault explained(Fault fault) const {
    const bool refused = fault.kind == FaultKind::tls_protocol && fault.detail.ends_with("no application protocol");
    if (refused && reservation_.kind() == pool::ProtocolMask::h1_only) {
      fault.detail += ": only HTTP/1.1 was offered, because the request needs it";
    }
    return fault;
  }

  // Returns true if no descriptor was left and closing an idle connection elsewhere freed one. Allows one more dial.
  bool may_try_again(const Fault& fault) LOOP_ONLY {
    if (fault.kind != FaultKind::budget || std::exchange(relieved_, true)) return false;
    const UpstreamContext& context = dialer_.context_;
    return free_a_descriptor(context.origins.directory(), context.loop.now());
  }

  // ---- HTTP/2: the dial ends with the origin's SETTINGS ----

  void start_h2(net::Dialed dialed) LOOP_ONLY {
    exec::Loop& loop = dialer_.context_.loop;
    session_ = std::make_unique<H2Connection>(dialer_.context_.sessions, origin_, id_, std::move(dialed), loop.now());
    dial_.reset();
    Result<exec::WatchKey> watched = loop.watch(session_->transport().fd(), *this);
    if (!watched) return fail(watched.take_fault());
    key_ = *watched;
    streams_until_ = deadline_after(loop.now(), origin_.pool.connect_timeout);
    timeout_.arm(streams_until_);
    on_ready({});
  }

  void on_ready(exec::Ready ready) override LOOP_ONLY {
    Result<bool> established = session_->handshake(ready);
    if (!established) return fail(established.take_fault());
    *established || settings_known_ ? await_stream() : await_settings_ack();
  }

  // Waits for the acknowledgement of our SETTINGS, for a limited time. An origin may lower its stream limit right after
  // its first SETTINGS and refuse requests sent before the client knows the lower limit, which has arrived by the time
  // of the acknowledgement.
  void await_settings_ack() LOOP_ONLY {
    if (!session_->has_settings() || std::exchange(awaits_ack_, true)) return;
    timeout_.arm(dialer_.context_.loop.now() + kSettingsAckTimeout);
  }

  // Waits for a stream. A limit of zero is like any limit that is reached: the origin should raise it soon (RFC 9113
  // §6.5.2). In the pool a session without streams would serve no request and only trigger the next dial.
  void await_stream() LOOP_ONLY {
    settings_known_ = true;
    session_->streams() == 0 ? timeout_.arm(streams_until_) : assign_slot();
  }

  void assign_slot() LOOP_ONLY {
    timeout_.disarm();
    dialer_.context_.loop.unwatch(session_->transport().fd(), key_);
    if (certificates_replaced()) {
      session_.reset();
      awaits_ack_ = settings_known_ = false;
      return dial_now();
    }
    session_->assign_slot(reservation_.index(), reservation_.generation());
    finish(std::move(session_));
  }

  void on_settings_timeout() {
    exec::assume_on_loop();
    if (session_->has_settings()) {
      if (session_->streams() != 0 || dialer_.context_.loop.now() < streams_until_) return await_stream();
      return fail({FaultKind::connection_terminated, Side::upstream, "the origin allows no HTTP/2 stream (SETTINGS)"});
    }
    fail({FaultKind::connect_timeout, Side::upstream, "the origin sends no HTTP/2 SETTINGS after negotiating HTTP/2"});
  }

  // Returns true if ALPN selected HTTP/2, or without TLS if the settings do (prior knowledge).
  Result<bool> chose_h2(const net::Dialed& dialed) const {
    const bool h2 = origin_.tls == nullptr ? origin_.protocols.h2 : dialed.transport->security().alpn == "h2";
    if (h2 && reservation_.kind() == pool::ProtocolMask::h1_only) {
      return Fault{FaultKind::tls_protocol, Side::upstream,
                   "the origin selected HTTP/2, but the request needs HTTP/1.1"};
    }
    if (h2) return true;
    if (origin_.tls == nullptr) return false;
    if (origin_.protocols.h1 && reservation_.kind() != pool::ProtocolMask::h2_only) return false;
    return Fault{FaultKind::tls_protocol, Side::upstream, "the origin does not support HTTP/2"};
  }

  Dialer& dialer_;
  pool::Destination& destination_;
  OriginRuntime& origin_;
  pool::Reservation reservation_;
  std::shared_ptr<tls::ClientContext> context_;    // outlives the dial, even if a newer one is loaded
  const std::uint64_t id_ = next_connection_id();  // of the connection, assigned when the dial starts
  std::uint64_t warm_up_ = 0;                      // of on_warm_dial_begun()
  std::optional<net::Dial> dial_;
  net::Address peer_;
  bool expects_mail_ = false;  // waits for the TLS context
  bool ended_ = false;         // exists only because its message is posted
  bool relieved_ = false;
  bool refused_ = false;  // reported after start(), which must not call the pool
  std::optional<Fault> certificates_failed_;
  bool awaits_ack_ = false;
  bool settings_known_ = false;  // the origin's first SETTINGS, and changes that follow them at once, have arrived
  Instant streams_until_{};      // deadline for the origin to allow a stream
  std::unique_ptr<H2Connection> session_;  // waiting for SETTINGS
  exec::WatchKey key_;
  exec::Timer turn_;
  exec::Timer timeout_;
};

Dialer::Dialer(const UpstreamContext& context, dns::Resolver& resolver) : context_(context), resolver_(resolver) {}

Dialer::~Dialer() {
  CARPOOL_ASSERT(attempts_.empty());
}

void Dialer::dial(pool::Destination& destination, OriginRuntime& origin, pool::Reservation reservation) {
  PendingDial& attempt = *std::make_unique<PendingDial>(*this, destination, origin, std::move(reservation)).release();
  attempts_.push_back(attempt);  // owned by attempts_ until finished()
  attempt.start();
}

void Dialer::cancel_dial(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) {
  // Pools cancel their youngest dials first.
  for (PendingDial* attempt = attempts_.last(); attempt != nullptr; attempt = attempts_.previous(attempt)) {
    if (attempt->is(destination, index, generation)) return attempt->give_up();
  }
}

// Returns the executor of a handshake, or nullptr for the loop itself. A full handshake costs half a millisecond, more
// with an RSA signature. More of them per second than configured, or any that signs, would delay the other connections
// of this loop.
exec::Submitter* Dialer::tasks_for_handshake(bool signs) {
  const bool on_the_loop = !signs && handshakes_.take(context_.inline_handshakes, context_.loop.now());
  return on_the_loop ? nullptr : &context_.tasks;
}

std::string_view Dialer::phase_of(const OriginRuntime& origin) const {
  for (PendingDial* attempt = attempts_.next(nullptr); attempt != nullptr; attempt = attempts_.next(attempt)) {
    if (attempt->origin().destination == origin.destination) return attempt->phase();
  }
  return {};
}

void Dialer::stop_waiting() {
  for (PendingDial* attempt = attempts_.next(nullptr); attempt != nullptr; attempt = attempts_.next(attempt)) {
    attempt->stop_waiting();
  }
}

void Dialer::cancel_all() {
  while (!attempts_.empty()) attempts_.front().fail({FaultKind::draining, Side::self, "carpool is stopping"});
}

void Dialer::finished(PendingDial& attempt) {
  attempt.unlink();
  attempt.destroy();
}

}  // namespace carpool::proxy
