// SessionWorld: loops without threads on a virtual clock, the real pool, the real sessions of the proxy on wires in
// memory, and origins at their far ends. A history causes every event.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "exec/deferred_queue.h"
#include "exec/mailbox.h"
#include "exec/timer_heap.h"
#include "pool/directory/directory.h"
#include "pool/queue/delivery.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/h2/cross_loop_stream.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/loop_buffers.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "tests/sim/session_origin.h"

namespace carpool::test {

class SimLoop final : public exec::Loop {
 public:
  SimLoop(LoopId id, const Instant& now) : id_(id), now_(now), scratch_(64 * 1024) {}
  LoopId id() const override { return id_; }
  Instant now() const override { return now_; }
  void arm(exec::Timer& timer, Instant deadline) override { timers.arm(timer, deadline); }
  void disarm(exec::Timer& timer) override { timers.remove(timer); }
  void defer(exec::Deferred& work) override { deferred.push(work); }
  void post(exec::Mail& mail) override { static_cast<void>(mailbox.push(mail)); }
  Result<exec::WatchKey> watch(int fd, exec::Watcher& watcher) override {
    watchers[fd] = &watcher;
    watched.insert(fd);
    return exec::WatchKey{0, 1};
  }
  void unwatch(int fd, exec::WatchKey) override { watchers.erase(fd); }
  Status watch_shared(int, std::uint32_t, std::uint32_t) override { return Done{}; }
  void unwatch_shared(int) override {}
  void set_shared_watcher(exec::SharedWatcher*) override {}
  std::span<char> scratch() override { return scratch_; }

  exec::TimerHeap timers;
  exec::DeferredQueue deferred;
  exec::Mailbox mailbox;
  std::map<int, exec::Watcher*> watchers;  // by descriptor
  std::set<int> watched;                   // descriptors whose readiness at the registration is to be reported

 private:
  const LoopId id_;
  const Instant& now_;
  std::vector<char> scratch_;
};

class SimHost final : public proxy::H2LoopContext {
 public:
  SimHost(LoopId id, const Instant& now) : loop_(id, now) {}
  SimLoop& loop() override { return loop_; }
  proxy::LoopBuffers& buffers() override { return buffers_; }
  void count_reset(const proxy::OriginRuntime&, proxy::http::H2Error) override { ++resets; }
  void recycle(proxy::CrossLoopStream& stream, LoopId far) override { free_.at(far)->push_front(stream); }
  proxy::CrossLoopStream& acquire_remote(SimHost& far) {
    const LoopId id = far.loop().id();
    while (free_.size() <= id) free_.push_back(std::make_unique<Free>());
    if (!free_[id]->empty()) return free_[id]->pop_front();
    remotes_.push_back(std::make_unique<proxy::CrossLoopStream>(*this, far));
    return *remotes_.back();
  }
  std::size_t remotes_out() const {
    std::size_t out = remotes_.size();
    for (const auto& free : free_) {
      for (auto* one = free->next(nullptr); one != nullptr; one = free->next(one)) --out;
    }
    return out;
  }

  std::deque<pool::Delivery*> deliveries;
  std::uint64_t resets = 0;

 private:
  using Free = List<proxy::CrossLoopStream, proxy::CrossLoopStreamTag>;
  SimLoop loop_;
  proxy::LoopBuffers buffers_{loop_};
  std::vector<std::unique_ptr<proxy::CrossLoopStream>> remotes_;
  std::vector<std::unique_ptr<Free>> free_;  // by remote loop; destroyed after remotes_
};

// A connection, from its dial to its close.
struct Link {
  Link(Random& random, PlannedResponses& planned) : wire(random), origin(random, planned, wire) {}
  Wire wire;
  SimOrigin origin;
  LoopId loop = 0;
  std::unique_ptr<pool::Reservation> place;          // while it is dialed
  std::unique_ptr<proxy::H2Connection> handshaking;  // during the handshake
  proxy::H2Connection* connection = nullptr;         // afterwards; null: closed
  std::uint32_t index = 0, generation = 0;
};

class SessionWorld : public pool::Environment {
 public:
  SessionWorld(Random& random, unsigned loops) : random_(random) {
    for (unsigned n = 0; n < loops; ++n) {
      hosts.push_back(std::make_unique<SimHost>(static_cast<LoopId>(n), now));
    }
  }

  // ---- the pool's environment ----
  void dial(pool::Destination&, pool::Reservation reservation) override {
    Link& link = links.emplace_back(random_, planned);
    link.loop = here_;
    link.index = reservation.index();
    link.generation = reservation.generation();
    link.place = std::make_unique<pool::Reservation>(std::move(reservation));
  }
  void deliver(LoopId to, pool::Delivery& delivery) override { hosts[to]->deliveries.push_back(&delivery); }
  void wake_at(pool::Destination&, Instant when) override { wakes.push_back(when); }
  void detach(pool::PooledConnection&, LoopId) override { planned.complain("a session was moved"); }
  bool attach(pool::PooledConnection&, std::uint32_t, std::uint32_t) override {
    planned.complain("a session was moved");
    return false;
  }
  void dispose(pool::PooledConnection* pooled, pool::CloseCause) override {
    const std::unique_ptr<pool::PooledConnection> dies(pooled);
    for (Link& link : links) {
      if (link.connection != pooled) continue;
      if (link.loop != here_) planned.complain("a session was disposed of away from home");
      link.connection = nullptr;
    }
  }
  LoopId here() const override { return here_; }
  void on(LoopId loop) { here_ = loop; }

  // ---- actions of a history ----

  // Delivers bytes of one link at either end.
  bool land(Link& link, std::size_t most) {
    bool moved = link.wire.deliver_down(most);
    const bool over = link.wire.broken || (link.wire.ended && link.wire.down.flying.empty());
    if (moved || (over && !std::exchange(link.wire.end_told, true))) link.wire.ready = true;
    moved |= link.origin.take(most, now);
    return moved;
  }
  // One iteration of a loop: events, mail, grants of the pool, deferred work, timers.
  bool turn(LoopId id, bool all) {
    exec::assume_on_loop();
    here_ = id;
    SimHost& host = *hosts[id];
    bool moved = false;
    for (Link& link : links) {
      if (link.loop == id && (all || chance(random_, 60))) moved |= event(link);
    }
    moved |= host.loop().mailbox.deliver(all ? SIZE_MAX : pick(random_, 4)) != 0;
    for (std::size_t most = all ? SIZE_MAX : pick(random_, 4); most > 0 && !host.deliveries.empty(); --most) {
      pool::Delivery& delivery = *host.deliveries.front();
      host.deliveries.pop_front();
      delivery.arrive(now);
      moved = true;
    }
    moved |= host.loop().deferred.run_turn(1000) != 0;
    host.loop().timers.run_due(now);
    moved |= host.loop().deferred.run_turn(1000) != 0;
    host.loop().leases().end_event();
    std::erase_if(links, [](const Link& link) { return link.wire.left && link.connection == nullptr && !link.place; });
    return moved;
  }
  bool wake() {
    const auto due = std::find_if(wakes.begin(), wakes.end(), [this](Instant when) { return when <= now; });
    if (due == wakes.end()) return false;
    wakes.erase(due);
    destination->wake(now);
    return true;
  }
  Instant next_timer() const {
    Instant next = kNever;
    for (const auto& host : hosts) next = std::min(next, host->loop().timers.next());
    for (const Instant when : wakes) next = std::min(next, when);
    return next;
  }
  bool mail_empty() const {
    for (const auto& host : hosts) {
      if (!host->deliveries.empty() || host->loop().mailbox.has_mail()) return false;
    }
    return true;
  }

  Instant now{std::chrono::hours(1)};
  PlannedResponses planned;
  proxy::OriginRuntime context;
  pool::Destination* destination = nullptr;
  std::vector<std::unique_ptr<SimHost>> hosts;
  std::list<Link> links;
  std::vector<Instant> wakes;
  std::uint32_t failing = 0;  // percent of dials

 private:
  bool event(Link& link) {
    exec::assume_on_loop();
    if (link.place) return dialing(link);
    const bool writable = link.wire.full && link.wire.up.flying.size() < link.wire.room;
    if (link.connection == nullptr || !(std::exchange(link.wire.ready, false) || writable)) return false;
    if (writable) link.wire.full = false;
    const bool over = link.wire.end_told;
    const bool news = !link.wire.here.empty() || over;
    const pool::EventClaim claim = pool::claim_event(link.index, link.generation, link.loop);
    if (claim.kind != pool::EventClaim::Kind::session) return false;
    link.connection->on_ready({news, writable, over});
    return news;
  }
  // As in the dialer.
  bool dialing(Link& link) {
    exec::assume_on_loop();
    if (link.handshaking == nullptr) {
      if (chance(random_, failing)) return fail(link, {FaultKind::connect_refused, Side::upstream, "refused"});
      proxy::net::Dialed dialed;
      dialed.transport = std::make_unique<WireTransport>(link.wire);
      link.handshaking =
          std::make_unique<proxy::H2Connection>(*hosts[link.loop], context, ++made_, std::move(dialed), now);
    }
    const bool news = std::exchange(link.wire.ready, false);
    Result<bool> established = link.handshaking->handshake({news, !link.wire.full, link.wire.end_told});
    if (!established) return fail(link, established.take_fault());
    if (!*established) return news;
    link.connection = link.handshaking.get();
    const auto place = std::move(link.place);
    link.connection->assign_slot(link.index, link.generation);
    destination->dialed(std::move(*place), std::move(link.handshaking), now);
    return true;
  }
  bool fail(Link& link, Fault fault) {
    link.handshaking.reset();
    link.wire.left = true;
    const auto place = std::move(link.place);
    destination->dial_failed(std::move(*place), std::move(fault), now);
    return true;
  }

  Random& random_;
  LoopId here_ = 0;
  std::uint64_t made_ = 0;
};

}  // namespace carpool::test
