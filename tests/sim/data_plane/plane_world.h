// PlaneWorld: the loops of a data plane on one virtual clock, the pool that they share, and the connections to origins.
// A history causes every event; a loop's turn handles what happened to its connections since its last turn.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "pool/core/audit_report.h"
#include "pool/destination/snapshot.h"
#include "pool/directory/directory.h"
#include "proxy/net/egress_policy.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/connection_events.h"
#include "tests/sim/data_plane/loop_plane.h"
#include "tests/sim/data_plane/names.h"
#include "tests/sim/data_plane/plane_checks.h"
#include "tests/sim/data_plane/plane_parts.h"
#include "tests/sim/data_plane/pool_expiry.h"
#include "tests/sim/data_plane/reloaded.h"

namespace carpool::test {

class PlaneWorld final : public pool::Environment {
 public:
  explicit PlaneWorld(const Plan& plan)
      : plan_(plan),
        settings_(named(plane_config(plan))),
        random(plan.seed),
        registry_(loops_of(plan), 10),
        policy_(std::move(*proxy::net::EgressPolicy::make(settings_.egress))),
        origins_(std::move(*proxy::OriginRegistry::make(settings_, *this, registry_))) {
    exec::assume_on_loop();
    account.impatient = plan.timeout != 0;
    account.repeats = plan.repeats != 0;
    account.late = plan.tries != 0;
    account.streams = plan.streams != 0;
    account.bounded = plan.timeout != 0 && plan.timeout % 2 == 0;
    account.idle = std::chrono::milliseconds(plan.timeout);
    account.secure_from = plan.h2;
    account.secure_to = plan.h2 + plan.both;
    account.origins = plan.origins;
    account.routes = plan.routes != 0;
    account.now = now;
    account.longest_pause = plan.cools != 0 ? kMaxPause : Duration::zero();
    listen_.half_close = proxy::config::kUnlimited;
    const SharedPlane shared{now, registry_, *origins_, *policy_, listen_, hosts_};
    for (LoopId n = 0; n < loops_of(plan); ++n) planes.push_back(std::make_unique<LoopPlane>(n, shared));
    for (const ClientPlan& one : plan.clients) {
      const auto on = static_cast<LoopId>(one.loop % planes.size());
      ClientLink& client_link = client_links.emplace_back(one, account, plan.room, on);
      for (const NoisePlan& noise : plan.noise) {
        if (noise.of_origin == 0 && noise.connection + 1 == client_links.size())
          client_link.client.add_noise(noise_of(noise));
      }
    }
    join(0);
    if (!names_.many()) return;
    const HeldMemory::Proxy proxy;
    for (const auto& plane : planes) plane->watch_addresses();
  }
  PlaneWorld(const PlaneWorld&) = delete;
  PlaneWorld& operator=(const PlaneWorld&) = delete;
  ~PlaneWorld() {
    exec::assume_on_loop();
    stop();
  }

  // ---- the pool's environment ----
  void dial(pool::Destination& destination, pool::Reservation reservation) override {
    const HeldMemory::Peer peer;
    OriginLink& link = links.emplace_back(account, plan_.room);
    const proxy::OriginRuntime* const origin = origins_->of(destination);
    const bool ahead = reservation.cause() == pool::OpenCause::spread;
    account.dials += ahead ? 0 : 1;
    if (ahead && origin != nullptr) names_.check_spread(*origin, links, now);
    if (origin != nullptr && !origin->protocols.h1 && reservation.kind() == pool::ProtocolMask::h1_only)
      account.complain("an origin that speaks HTTP/2 alone is dialed for HTTP/1.1");
    link.destination = &destination;
    for (const NoisePlan& one : plan_.noise) {
      if (one.of_origin != 0 && one.connection + 1 == links.size()) link.wire.noise.push_back(noise_of(one));
    }
    link.wire.host = destination.origin().host;
    link.loop = here_;
    link.index = reservation.index();
    link.generation = reservation.generation();
    link.place = std::make_unique<pool::Reservation>(std::move(reservation));
  }
  void deliver(LoopId to, pool::Delivery& delivery) override {
    const HeldMemory::Peer peer;
    planes[to]->deliveries.push_back(&delivery);
  }
  void wake_at(pool::Destination& destination, Instant when) override {
    const HeldMemory::Peer peer;
    wakes_.emplace_back(when, &destination);
  }
  void detach(pool::PooledConnection&, LoopId) override {}
  bool attach(pool::PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override {
    for (OriginLink& link : links) {
      if (link.connection != &pooled) continue;
      link.connection->transport().forget_readiness();
      link.loop = here_;
      link.index = index;
      link.generation = generation;
      link.wire.event = true;
    }
    return true;
  }
  void dispose(pool::PooledConnection* pooled, pool::CloseCause) override {
    const std::unique_ptr<pool::PooledConnection> dies(pooled);
    for (OriginLink& link : links) {
      if (link.connection == pooled) link.connection = nullptr;
    }
  }
  LoopId here() const override { return here_; }

  // ---- events ----

  // The clients connect whose time has come.
  void join(std::uint32_t step) {
    exec::assume_on_loop();
    std::size_t n = 0;
    for (ClientLink& client_link : client_links) {
      if (plan_.clients[n++].joins > step || std::exchange(client_link.joined, true)) continue;
      here_ = client_link.loop;
      const HeldMemory::Proxy proxy;
      planes[here_]->accept(client_link.client.wire);
    }
  }

  // One iteration of a loop. `all`: handles everything pending; otherwise a random part.
  bool turn(LoopId id, bool all) {
    exec::assume_on_loop();
    here_ = id;
    LoopPlane& plane = *planes[id];
    const bool moved = proxy_turn(plane, id, all);
    checks_.look(origins_->all(), planes, links, client_links, now);
    return moved;
  }
  bool proxy_turn(LoopPlane& plane, LoopId id, bool all) LOOP_ONLY {
    const HeldMemory::Proxy proxy;
    bool moved = false;
    for (ClientLink& client_link : client_links) {
      if (plane.loop.watched.erase(client_link.client.wire.fd) != 0) client_link.client.wire.report_readiness();
      if (client_link.loop == id && client_link.client.wire.event && (all || chance(random, 70)))
        moved |= signal_client(plane, client_link);
    }
    for (OriginLink& link : links) {
      if (link.loop == id && (link.place || link.wire.event) && (all || may_act(link))) moved |= signal_link(link);
      plane.loop.leases().end_event();
    }
    moved |= plane.loop.mailbox.deliver(all ? SIZE_MAX : 1 + pick(random, 4)) != 0;
    for (; !plane.deliveries.empty(); moved = true) {
      pool::Delivery& delivery = *plane.deliveries.front();
      plane.deliveries.pop_front();
      delivery.arrive(now);
      plane.loop.leases().end_event();
    }
    moved |= plane.loop.deferred.run_turn(1000) != 0;
    plane.loop.timers.run_due(now);
    plane.loop.leases().end_event();
    plane.destroy_ended();
    if (all || plan_.expires == 0 || chance(random, 40))
      expiry_.turn(plane, [this](const std::vector<pool::Destination*>& leaving) { forget_wakes(leaving); });
    if (id == 0) destroy(expiry_.take_forgotten());
    return moved;
  }
  void pass(Duration time) {
    account.now = now += time;
    exec::assume_on_loop();
    here_ = 0;
    const HeldMemory::Proxy proxy;
    const auto due = std::partition(wakes_.begin(), wakes_.end(), [this](const auto& one) { return one.first > now; });
    const std::vector<std::pair<Instant, pool::Destination*>> woken(due, wakes_.end());
    wakes_.erase(due, wakes_.end());
    for (const auto& [when, destination] : woken) destination->wake(now);
  }
  // ---- the operator ----
  std::uint32_t commands() const { return plan_.commands; }
  void command() {
    const std::vector<proxy::OriginRuntime*> all = origins_->all();
    const std::uint32_t kind = pick(random, 6 + plan_.expires + 2 * plan_.moves + 3 * (plan_.routes | plan_.lists));
    account.log("order", kind);
    exec::assume_on_loop();
    here_ = static_cast<LoopId>(pick(random, static_cast<std::uint32_t>(planes.size())));
    LoopPlane& plane = *planes[here_];
    const HeldMemory::Proxy proxy;
    if (kind == 5) return plane.let_clients_go(pick(random, 100));
    if (all.empty()) return;
    if (plan_.expires != 0 && kind == 6) return begin_expiry();
    if (plan_.moves != 0 && kind - plan_.expires == 6) return move_clients();
    const pool::Destination& chosen = *all[pick(random, static_cast<std::uint32_t>(all.size()))]->destination;
    const std::string label = chosen.label();
    command_all(origins_->directory().all(), label, [this, kind](pool::Destination& destination) {
      if (kind == 0) destination.pause(now);
      if (kind == 1) destination.drain(now);
      if (kind == 2) resume(destination);
      if (kind == 3) destination.reconnect(now);
    });
    if (kind == 4 || kind >= 6) {
      names_.rename(random);
      reload();
    }
    plane.loop.leases().end_event();
  }
  // In force at once.
  void reload() LOOP_ONLY {
    const HeldMemory::Peer peer;  // the loops keep no copy of it
    proxy::config::Config& fresh = reloaded_.next(named(plane_config(plan_)), random);
    longest_ = std::max(longest_, fresh.request.timeout);
    cap_ = std::max(cap_, fresh.pool.size);
    const PausesKept pauses(*origins_, now);
    auto prepared = origins_->prepare(fresh);
    if (!prepared || !origins_->apply(fresh, std::move(*prepared)).empty()) account.complain("a reload failed");
    origins_->apply_limits(now);
    if (!pauses.still()) account.complain("a reload changes the pause that an origin requested");
    for (const auto& one : planes) one->on_reload();
  }
  void move_clients() LOOP_ONLY {
    const bool all = chance(random, 30);
    for (const auto& plane : planes) {
      here_ = plane->loop.id();
      all ? plane->hand_over() : plane->move_listener();
      plane->loop.leases().end_event();
    }
  }
  void begin_expiry() LOOP_ONLY {
    here_ = 0;
    expiry_.begin(now);
    planes[0]->loop.leases().end_event();
  }
  void forget_wakes(const std::vector<pool::Destination*>& leaving) {
    std::erase_if(wakes_, [&leaving](const auto& one) {
      return std::find(leaving.begin(), leaving.end(), one.second) != leaving.end();
    });
  }
  void destroy(const std::vector<pool::Destination*>& forgotten) {
    if (forgotten.empty()) return;
    account.log("pools end", forgotten.size());
    for (OriginLink& link : links) {
      if (std::find(forgotten.begin(), forgotten.end(), link.destination) != forgotten.end())
        link.destination = nullptr;
    }
    if (!origins_->destroy(forgotten)) account.complain("pools that nothing uses are not destroyed");
  }
  void resume(pool::Destination& destination) {
    ++account.resumed;
    destination.resume(now);
  }
  void resume_all() {
    exec::assume_on_loop();
    here_ = 0;
    names_.raise_all();
    for (pool::Destination* const one : origins_->directory().all()) resume(*one);
  }
  // Addresses of origins begin or end to refuse connections.
  bool many_addresses() const { return names_.many(); }
  void toggle_address() { names_.toggle(random); }

  // Delivers everything in flight and runs every loop until nothing more happens, without advancing time.
  bool become_idle() {
    for (int rounds = 0; rounds < 5000; ++rounds) {
      bool moved = false;
      for (ClientLink& client_link : client_links) {
        if (!client_link.joined) continue;
        moved |= client_link.client.land(SIZE_MAX);
        moved |= client_link.client.read(SIZE_MAX);
      }
      for (OriginLink& link : links) moved |= play(link, SIZE_MAX);
      for (LoopId n = 0; n < planes.size(); ++n) moved |= turn(n, true);
      if (!moved) return true;
    }
    return false;
  }
  // Acts at the origin's end of a connection.
  static bool play(OriginLink& link, std::size_t most) {
    if (!link.h2 && link.place) return false;
    bool moved = link.read(most);
    moved |= link.wire.land(most);
    moved |= link.reset_when_sent();
    return moved;
  }
  std::string audit() {
    for (const pool::Destination* const one : destinations()) {
      const auto seen = one->snapshot(now);
      if (seen.opened_total() - seen.closed_total() != seen.alive()) return "the ledger does not balance";
      if (seen.alive() > cap_) return "the cap of connections is exceeded";
      if (one->reclaimed() && seen.alive() != 0) return "a pool ended while it had connections or dials";
      if (std::string wrong = one->audit().text(); !wrong.empty()) return wrong;
    }
    return origins_->directory().audit().text();
  }
  // Every loop had a turn. Returns a complaint if an exchange lives longer than its deadlines allow.
  std::string overdue() {
    if (longest_ == Duration::zero()) return "";
    exec::assume_on_loop();
    for (const auto& plane : planes) {
      if (plane->oldest(now) > longest_) return "an exchange outlives request.timeout";
    }
    return "";
  }
  bool any_drained() const {
    return std::any_of(planes.begin(), planes.end(), [](const auto& plane) { return plane->any_drained(); });
  }
  // Clients that read nothing more keep their connections for as long as the proxy waits for them.
  bool all_read() const {
    return std::all_of(plan_.clients.begin(), plan_.clients.end(),
                       [](const ClientPlan& one) { return one.stops_reading == 0; });
  }
  std::uint64_t lent() {
    std::uint64_t lent = 0;
    for (const pool::Destination* const one : destinations()) lent += one->snapshot(now).leases();
    for (const proxy::OriginRuntime* origin : origins_->all()) names_.check_end(*origin, now);
    return lent;
  }
  // Closes all clients and connections.
  void stop() {
    if (std::exchange(stopped_, true)) return;
    exec::assume_on_loop();
    for (LoopId n = 0; n < planes.size(); ++n) {
      here_ = n;
      planes[n]->stop_watching();
      planes[n]->close_all();
      planes[n]->cancel_dials();
    }
    drain();
    here_ = 0;
    origins_->directory().stop(now);
    drain();
  }

  Instant now{std::chrono::hours(1)};
  Account account;

 private:
  static LoopId loops_of(const Plan& plan) { return static_cast<LoopId>(std::clamp(plan.loops, 1U, 4U)); }
  proxy::config::Config named(proxy::config::Config config) const {
    names_.name(config);
    return config;
  }
  // All that ever had a connection.
  std::vector<pool::Destination*> destinations() const {
    std::vector<pool::Destination*> all;
    for (const OriginLink& link : links) {
      if (link.destination != nullptr && std::find(all.begin(), all.end(), link.destination) == all.end())
        all.push_back(link.destination);
    }
    return all;
  }
  static Noise noise_of(const NoisePlan& plan) { return {plan.at, plan.drop, plan.byte, plan.repeat}; }
  bool signal_client(LoopPlane& plane, ClientLink& client_link) LOOP_ONLY {
    VirtualWire& wire = client_link.client.wire;
    wire.event = false;
    const auto watcher = plane.loop.watchers.find(wire.fd);
    if (watcher == plane.loop.watchers.end()) return false;
    watcher->second->on_ready({true, !wire.full, wire.end_told});
    plane.loop.leases().end_event();
    return true;
  }
  // As Worker::on_shared_ready() does it.
  bool signal_link(OriginLink& link) LOOP_ONLY {
    if (link.place) return end_dial(link);
    link.wire.event = false;
    if (link.connection == nullptr) return false;
    const pool::EventClaim claim = pool::claim_event(link.index, link.generation, link.loop);
    if (claim.kind == pool::EventClaim::Kind::stale) return false;
    if (claim.kind == pool::EventClaim::Kind::session) {
      static_cast<proxy::H2Connection&>(*claim.pooled).on_ready({true, !link.wire.full, link.wire.end_told});
      return true;
    }
    proxy::Connection& connection = *link.connection;
    connection.transport().on_readiness({true, !link.wire.full, link.wire.end_told});
    if (claim.kind == pool::EventClaim::Kind::in_use) {
      if (connection.events != nullptr) connection.events->on_upstream_ready();
      return true;
    }
    proxy::net::Transport& transport = connection.transport();
    if (!transport.hangup_seen() && transport.no_data_pending()) return pool::keep_inspected(link.index, now), true;
    const auto how = transport.ended_in_order() ? pool::OriginClose::in_order : pool::OriginClose::abrupt;
    pool::close_inspected(link.index, pool::CloseCause::peer_closed, now, how);
    return true;
  }
  bool may_act(const OriginLink& link) {
    if (link.place && plan_.slow != 0 && chance(random, plan_.slow)) return false;
    return chance(random, 70);
  }
  bool fail_dial(OriginLink& link, Fault fault) {
    const auto place = std::move(link.place);
    link.handshaking.reset();
    link.wire.gone = true;
    link.destination->dial_failed(std::move(*place), std::move(fault), now);
    return true;
  }
  // As the dialer does it: a session enters the pool once the origin's SETTINGS have arrived.
  bool handshake_h2(OriginLink& link, proxy::OriginRuntime& origin) LOOP_ONLY {
    const bool first = link.handshaking == nullptr;
    if (first) {
      proxy::net::Dialed dialed;
      dialed.transport = std::make_unique<VirtualTransport>(link.wire);
      {
        const HeldMemory::Peer peer;
        link.h2 = std::make_unique<ScriptedH2Origin>(account, link.wire, plan_.window, plan_.wide, plan_.pieces);
      }
      link.handshaking = std::make_unique<proxy::H2Connection>(*hosts_[link.loop], origin, proxy::next_connection_id(),
                                                               std::move(dialed), now);
    } else if (!link.wire.event) {
      return false;
    }
    link.wire.event = false;
    Result<bool> established = link.handshaking->handshake({!first, !link.wire.full, link.wire.end_told});
    if (!established) return fail_dial(link, established.take_fault());
    if (!*established) return true;
    const auto place = std::move(link.place);
    link.connection = link.handshaking.get();
    if (link.peer) {
      link.handshaking->track_address(*origin.address_set, *link.peer);
      names_.opened(origin, *link.peer);
    }
    link.handshaking->assign_slot(link.index, link.generation);
    link.destination->dialed(std::move(*place), std::move(link.handshaking), now);
    return true;
  }
  // A dial has two steps if the origin has several addresses: the first one orders them.
  bool end_dial(OriginLink& link) LOOP_ONLY {
    proxy::OriginRuntime* const origin = origins_->of(*link.destination);
    if (names_.many() && link.tries.empty() && !stopped_ && !origin->pinned.empty()) {
      link.tries = names_.order(*origin, links, now);
      return true;
    }
    const bool refused = stopped_ || (!link.handshaking && chance(random, plan_.failing));
    if (!link.tries.empty() && !link.peer) link.peer = names_.reach(*origin, link.tries, refused, now);
    if (refused || (!link.tries.empty() && !link.peer))
      return fail_dial(link, {FaultKind::connect_refused, Side::upstream, "refused"});
    if (origin->protocols.h2) {
      if (!link.chose_h2) link.chose_h2 = choose_h2(link, *origin);
      if (*link.chose_h2) return handshake_h2(link, *origin);
      if (link.place->kind() == pool::ProtocolMask::h2_only)
        return fail_dial(link, {FaultKind::tls_protocol, Side::upstream, "the origin does not support HTTP/2"});
    }
    if (link.destination->origin().scheme == pool::Scheme::tcp) {
      link.tunnel = std::make_unique<ScriptedTunnel>(account, link.wire);
    }
    const auto place = std::move(link.place);
    proxy::net::Dialed dialed;
    dialed.transport = std::make_unique<VirtualTransport>(link.wire);
    auto made = std::make_unique<proxy::Connection>(proxy::next_connection_id(), std::move(dialed), now);
    link.connection = made.get();
    if (link.peer) made->track_address(*origin->address_set, *link.peer);
    if (link.peer) names_.opened(*origin, *link.peer);
    link.destination->dialed(std::move(*place), std::move(made), now);
    return true;
  }
  // The protocol that ALPN selects, which differs from dial to dial.
  bool choose_h2(const OriginLink& link, const proxy::OriginRuntime& origin) {
    if (!origin.protocols.h1) return true;
    if (link.place->kind() == pool::ProtocolMask::any) return chance(random, plan_.alpn);
    return link.place->kind() == pool::ProtocolMask::h2_only && chance(random, 90);
  }
  void drain() {
    for (bool moved = true; moved;) {
      moved = false;
      for (LoopId n = 0; n < planes.size(); ++n) moved |= turn(n, true);
    }
  }

  const Plan& plan_;
  Names names_{account, plan_};
  proxy::config::Config settings_;
  proxy::config::Listen listen_;
  Reloaded reloaded_{account, plan_};
  PlaneChecks checks_{account, plan_, names_, reloaded_};
  Duration longest_ = settings_.request.timeout;  // the longest request.timeout so far; zero: none
  std::uint32_t cap_ = settings_.pool.size;       // the highest connection id so far

 public:
  Random random;

 private:
  metrics::Registry registry_;
  std::unique_ptr<proxy::net::EgressPolicy> policy_;

 public:
  std::list<OriginLink> links;  // outlive the pool
  std::list<ClientLink> client_links;

 private:
  std::unique_ptr<proxy::OriginRegistry> origins_;
  std::vector<proxy::H2LoopContext*> hosts_;
  PoolExpiry expiry_{account, *origins_, loops_of(plan_)};
  std::vector<std::pair<Instant, pool::Destination*>> wakes_;
  LoopId here_ = 0;
  bool stopped_ = false;

 public:
  std::vector<std::unique_ptr<LoopPlane>> planes;
};

}  // namespace carpool::test
