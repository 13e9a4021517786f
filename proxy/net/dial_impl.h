// Dial::Impl: the state of a dial. Its phases are in dial_impl.cc (resolve, connect, ask a parent proxy),
// dial_handshake.cc (TLS) and dial_end.cc (deadline, result).
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "exec/loop.h"
#include "exec/submitter.h"
#include "exec/timer.h"
#include "proxy/net/address_policy.h"
#include "proxy/net/address_set.h"
#include "proxy/net/dial.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/happy_eyeballs.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/net/parent_tunnel.h"
#include "proxy/net/tls/handshake_task.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::net {

// The rules for the origin do not apply to the addresses of a parent proxy.
struct ParentPolicy final : AddressPolicy {
  explicit ParentPolicy(const AddressPolicy* p) : policy(p) {}
  Status may_dial(const pool::Origin& parent, const Address& address) const override {
    return policy == nullptr ? Status(Done{}) : policy->may_dial_parent(parent, address);
  }
  bool is_own(const Address& address) const override { return policy != nullptr && policy->is_own(address); }
  const AddressPolicy* policy;
};

struct Dial::Impl final : exec::Deferred, exec::Watcher, dns::Question, RaceOwner {
  enum class Phase : std::uint8_t { resolving, connecting, asking, handshaking, done };

  Impl(exec::Loop& l, dns::Resolver& r, DialPlan p, DialOwner& o)
      : loop(l),
        resolver(r),
        plan(std::move(p)),
        owner(o),
        place(plan.parent == nullptr ? *plan.origin : plan.parent->place),
        parent_policy(plan.policy),
        deadline(exec::Timer::bind<&Impl::on_deadline>(l, *this)),
        retry(exec::Timer::bind<&Impl::on_retry>(l, *this)) {}
  ~Impl() {
    exec::assume_on_loop();
    unwatch();
    stop_counting();
  }

  void start() LOOP_ONLY;
  void run() override LOOP_ONLY;
  void on_addresses(Result<std::vector<Address>> addresses) override LOOP_ONLY;
  void connect(std::vector<Address> addresses) LOOP_ONLY;
  void add_to_race(std::vector<Address> addresses) LOOP_ONLY;
  void on_race(Result<Winner> result) override LOOP_ONLY;
  bool await_rest(const Fault& fault) LOOP_ONLY;
  void on_attempt_failed(const Address& address) override LOOP_ONLY { record_failure(address); }
  void record_failure(const Address& address) LOOP_ONLY;
  // Ends the counting of the dial for the address that it tried first.
  void stop_counting(bool reached = true) {
    exec::assume_on_loop();
    if (counted) plan.address_set->dial_ended(*counted, reached, loop.now());
    counted.reset();
  }
  void ask_parent(Fd connected) LOOP_ONLY;
  void step_tunnel(bool hangup) LOOP_ONLY;
  void proceed(Fd connected) LOOP_ONLY;
  void begin_handshake(Fd connected) LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void step_handshake() LOOP_ONLY;
  void on_handshake_step(Result<bool> done) LOOP_ONLY;
  bool refuses_http1() const;
  // Runs on whichever thread owns the TlsTransport.
  Result<bool> work_on_handshake(Result<bool> (tls::TlsTransport::*step)() = &tls::TlsTransport::handshake);
  void handshake_returned() LOOP_ONLY;
  void on_retry();

  // The deadline and the end of the dial wait until a step on another thread has returned.
  struct HandshakeStep final : tls::HandshakeTask {
    explicit HandshakeStep(Impl& i) : HandshakeTask(i.loop), impl(i) {}
    const char* name() const override { return "TLS handshake"; }
    Result<bool> compute() override { return impl.work_on_handshake(); }
    void on_returned() override LOOP_ONLY { impl.handshake_returned(); }
    Impl& impl;
    bool deadline_passed = false, abandoned = false;
  };
  // Begins a phase, which ends at the dial's deadline, or after its own `limit`.
  void limit_phase(Duration limit) LOOP_ONLY;
  void on_deadline();
  Fault deadline_fault() const;
  void unwatch() LOOP_ONLY;
  void finish(Result<Dialed> result) LOOP_ONLY;
  // Returns the time since the last call: the duration of a phase.
  Duration end_phase();

  exec::Loop& loop;
  dns::Resolver& resolver;
  const DialPlan plan;
  DialOwner& owner;
  const pool::Origin& place;  // what is dialed: the origin or the parent proxy
  const ParentPolicy parent_policy;
  exec::Timer deadline;
  exec::Timer retry;      // of a step of the handshake that was rejected (threads.max_tasks)
  Instant ends = kNever;  // of the whole dial
  Duration allowed{};     // of the phase, or of the whole dial
  Phase phase = Phase::resolving;
  bool asked_dns = false;
  std::optional<Fault> part_failed;  // a part of the addresses did not connect; the rest is being resolved
  Instant phase_began{};
  std::unique_ptr<HappyEyeballs> race;
  std::vector<Address> failed;     // each is recorded once, although await_rest() may cause a second attempt
  std::optional<Address> counted;  // counted as being dialed in the AddressSet
  Fd socket;                       // during the CONNECT of a parent proxy
  std::optional<ParentTunnel> tunnel;
  std::unique_ptr<tls::TlsTransport> stream;
  exec::WatchKey key;
  Dialed made;
  HandshakeStep handshake{*this};
};

}  // namespace carpool::proxy::net
