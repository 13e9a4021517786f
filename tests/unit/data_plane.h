// data_plane.h: the data plane of one loop without a server, a worker or a socket: a loop on virtual time, connections
// in memory, the real pool, registry, router, exchanges and clients. A test plays the clients and the origins.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "exec/submitter.h"
#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/downstream/client_list.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/h1_client.h"
#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/exchange/router.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/egress_policy.h"
#include "proxy/telemetry/log_levels.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/connection_events.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/upstream_context.h"
#include "tests/sim/copied_splice.h"
#include "tests/sim/session_world.h"

namespace carpool::test {

// The wall clock of a data plane stands still at the date of the examples in RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT.
inline constexpr WallTime kWallTime{std::chrono::seconds(784111777)};

// Returns a number that is no descriptor of the process, a different one each time.
inline int next_memory_fd() {
  static int last = -1;
  return --last;
}

// One end of a connection in memory; the test is the other end.
struct MemoryWire {
  int fd = next_memory_fd();  // of this end; no descriptor of the process
  std::string incoming, outgoing;
  std::size_t room = SIZE_MAX;        // bytes that this end can still write
  bool partial = false;               // a part of a TLS record has arrived, of which no byte can be read
  bool ended = false;                 // the other end sent FIN
  std::size_t unacked = 0;            // bytes of `outgoing` that have not reached the other end
  std::size_t spliced = 0;            // bytes of `incoming` that went into a pipe
  int splice_error = 0;               // of each splice() from this end; 0: none
  std::size_t refusals = 0;           // by `splice_error`
  std::optional<std::size_t> urgent;  // bytes of `incoming` before urgent data, at which a splice stops
  bool broken = false;                // the other end reset the connection: nothing can be written
  bool shut = false;                  // this end sent FIN
  bool gone = false;                  // this end was destroyed
  bool cut = false;                   // by a reset
};

class MemoryTransport final : public proxy::net::Transport {
 public:
  explicit MemoryTransport(MemoryWire& wire) : Transport(Fd(wire.fd)), wire_(wire) {}
  ~MemoryTransport() override {
    wire_.gone = true;
    wire_.cut = cut_;
  }
  proxy::net::IoResult read(std::span<char> into) override {
    if (wire_.incoming.empty()) {
      readable_ = false;
      return {wire_.ended ? proxy::net::Io::eof : proxy::net::Io::would_block, 0, 0, {}};
    }
    const std::size_t size = std::min(into.size(), wire_.incoming.size());
    std::memcpy(into.data(), wire_.incoming.data(), size);
    wire_.incoming.erase(0, size);
    if (wire_.urgent) *wire_.urgent < size ? wire_.urgent.reset() : void(*wire_.urgent -= size);
    return {proxy::net::Io::ok, size, 0, {}};
  }
  proxy::net::IoResult write(std::span<const iovec> from) override {
    if (wire_.broken) return {proxy::net::Io::failed, 0, EPIPE, "broken"};
    std::size_t size = 0;
    for (const iovec& part : from) {
      const std::size_t taken = std::min(part.iov_len, wire_.room);
      wire_.outgoing.append(static_cast<const char*>(part.iov_base), taken);
      wire_.room -= taken;
      size += taken;
      writable_ = taken == part.iov_len;
      if (!writable_) break;
    }
    if (size == 0) return {};
    return {proxy::net::Io::ok, size, 0, {}};
  }

  bool splices() const override { return true; }
  proxy::net::IoResult splice_to(proxy::net::Pipe& pipe, std::size_t most) override {
    if (wire_.splice_error != 0) {
      ++wire_.refusals;
      return {proxy::net::Io::failed, 0, wire_.splice_error, "read failed"};
    }
    if (wire_.urgent == 0U) {  // as Linux: behind the mark FIN alone is seen
      readable_ = false;
      return {wire_.ended ? proxy::net::Io::eof : proxy::net::Io::would_block, 0, 0, {}};
    }
    const proxy::net::IoResult io = copied_splice_to(*this, pipe, std::min(most, wire_.urgent.value_or(most)));
    wire_.spliced += io.bytes;
    return io;
  }
  proxy::net::IoResult splice_from(proxy::net::Pipe& pipe) override { return copied_splice_from(*this, pipe); }
  void shut_write() override { wire_.shut = true; }
  bool no_data_pending() override { return wire_.incoming.empty() && !wire_.partial && !wire_.ended; }
  bool ended_in_order() override { return wire_.ended; }
  int take_error() override { return wire_.broken ? ECONNRESET : 0; }
  std::size_t unacknowledged() const override { return wire_.unacked; }

 private:
  MemoryWire& wire_;
};

// Establishes real connections over wires in memory when the test asks for one.
class MemoryEnvironment final : public pool::Environment {
 public:
  explicit MemoryEnvironment(SimLoop& loop) : loop_(loop) {}

  struct Dial {
    pool::Destination* destination;
    std::unique_ptr<pool::Reservation> reservation;
    std::uint64_t warm_up = 0;  // of on_warm_dial_begun()
  };
  void dial(pool::Destination& destination, pool::Reservation reservation) override {
    exec::assume_on_loop();
    const bool warms = warm_up != nullptr && reservation.cause() == pool::OpenCause::warm_up;
    const std::uint64_t number = warms ? warm_up->on_warm_dial_begun() : 0;
    dials.push_back({&destination, std::make_unique<pool::Reservation>(std::move(reservation)), number});
  }
  void deliver(LoopId, pool::Delivery& delivery) override { deliveries.push_back(&delivery); }
  void wake_at(pool::Destination&, Instant) override {}
  void detach(pool::PooledConnection&, LoopId) override {}
  bool attach(pool::PooledConnection&, std::uint32_t, std::uint32_t) override { return true; }
  void dispose(pool::PooledConnection* pooled, pool::CloseCause) override {
    const std::unique_ptr<pool::PooledConnection> closed(pooled);
  }
  LoopId here() const override { return loop_.id(); }

  // The oldest dial succeeds. Returns the origin's end.
  MemoryWire& connect() {
    Dial dial = std::move(dials.front());
    dials.pop_front();
    MemoryWire& wire = wires.emplace_back();
    proxy::net::Dialed dialed;
    dialed.transport = std::make_unique<MemoryTransport>(wire);
    auto made = std::make_unique<proxy::Connection>(proxy::next_connection_id(), std::move(dialed), loop_.now());
    connections.push_back(made.get());
    made->enter_pool(dial.destination->label());
    dial.destination->dialed(std::move(*dial.reservation), std::move(made), loop_.now());
    return wire;
  }

  proxy::WarmUpListener* warm_up = nullptr;  // optional; the test reports the ends of the dials
  std::deque<Dial> dials;
  std::deque<pool::Delivery*> deliveries;
  std::list<MemoryWire> wires;
  std::vector<proxy::Connection*> connections;  // in the order of wires

 private:
  SimLoop& loop_;
};

// Owns clients that a test constructs, as a ClientList owns those that it accepts.
class OwnedClients final : public proxy::ClientOwner {
 public:
  explicit OwnedClients(const proxy::ExchangeContext& context) : context_(context), pacer_(context.loop) {}

  // Returns the client's end.
  MemoryWire& add(proxy::Listener& listener) LOOP_ONLY {
    MemoryWire& wire = wires_.emplace_back();
    auto transport = std::make_unique<MemoryTransport>(wire);
    auto client =
        std::make_unique<proxy::H1Client>(context_, *this, listener, listener.point(), std::move(transport), "test");
    EXPECT_TRUE(client->start());
    all_.push_back(std::move(client));
    return wire;
  }
  // Delivers bytes of this client.
  void send(MemoryWire& wire, std::string_view bytes, bool end = false) LOOP_ONLY {
    wire.incoming.append(bytes);
    wire.ended = end;
    tell(wire, {true, wire.room != 0, end});
  }
  // The client reads again.
  void make_room(MemoryWire& wire, std::size_t bytes) LOOP_ONLY {
    wire.room = bytes;
    tell(wire, {false, true, false});
  }
  void destroy_later(proxy::ClientConnection& client) override LOOP_ONLY { closed.push_back(&client); }
  void upgrade_to_h2(proxy::Listener& listener, std::unique_ptr<const proxy::ListenPoint>,
                     std::unique_ptr<proxy::net::Transport> transport, std::string peer, std::string_view bytes,
                     bool /*drains*/) override LOOP_ONLY {
    auto client = std::make_unique<proxy::H2Client>(context_, *this, listener, listener.point(), std::move(transport),
                                                    std::move(peer));
    EXPECT_TRUE(client->start(proxy::http::kH2Preface, bytes));
    h2.push_back(client.get());
    all_.push_back(std::move(client));
  }
  proxy::RequestPacer& pacer() override LOOP_ONLY { return pacer_; }
  void drain_all() LOOP_ONLY {
    for (auto& client : all_) client->drain();
  }
  // Returns true if a client was idle.
  bool end_idle() LOOP_ONLY {
    bool any = false;
    for (auto& client : all_) any = client->end_if_idle() || any;
    return any;
  }
  void intercept(proxy::Listener&, std::unique_ptr<proxy::InterceptedConnect>, Fd, std::string,
                 bool) override LOOP_ONLY {}
  proxy::ConnectInterceptor& interceptor() override LOOP_ONLY { return interceptor_; }
  void end_all() LOOP_ONLY {
    for (auto& client : all_) client->end();
    all_.clear();
  }
  std::vector<proxy::ClientConnection*> closed;
  std::vector<proxy::H2Client*> h2;

 private:
  void tell(const MemoryWire& wire, exec::Ready ready) LOOP_ONLY {
    auto& watchers = static_cast<SimLoop&>(context_.loop).watchers;
    if (const auto client = watchers.find(wire.fd); client != watchers.end()) client->second->on_ready(ready);
  }
  const proxy::ExchangeContext& context_;
  proxy::RequestPacer pacer_;
  proxy::ConnectInterceptor interceptor_{context_, nullptr};
  std::list<MemoryWire> wires_;
  std::list<std::unique_ptr<proxy::ClientConnection>> all_;
};

class NoTasks final : public exec::Submitter {
 public:
  bool submit(exec::TaskPtr) override { return false; }
};

class DataPlane : private proxy::ClientList::Owner, private proxy::WarmUpListener {
 public:
  explicit DataPlane(proxy::config::Config wanted = {})
      : settings(std::move(wanted)),
        loop(0, now),
        environment(loop),
        registry(1, 10),
        policy(std::move(*proxy::net::EgressPolicy::make(settings.egress))),
        origins(std::move(*proxy::OriginRegistry::make(settings, environment, registry))),
        stats(registry, proxy::log::Format::json, loop),
        resolver(loop, {}),
        router(*origins, *policy),
        streams(loop, stats, hosts),
        upstream{.loop = loop,
                 .tasks = tasks,
                 .sessions = streams,
                 .stats = stats,
                 .origins = *origins,
                 .policy = *policy,
                 .warm_up = *this,
                 .inline_handshakes = 100,
                 .pseudonym = "carpool-test",
                 .first = true},
        dialer(upstream, resolver),
        exchanges(context),
        context{.loop = loop,
                .buffers = streams.buffers(),
                .cross_loop_streams = streams,
                .exchanges = exchanges,
                .router = router,
                .origins = *origins,
                .dialer = dialer,
                .stats = stats,
                .leaks = leaks,
                .overload = overload,
                .wall_clock = []() noexcept { return kWallTime; },
                .pseudonym = "carpool-test"},
        clients(context, *this),
        listener(listen, proxy::Listener::Parts{{&clients}, &stats, &overload, &origins->directory()}) {
    hosts.push_back(&streams);
    proxy::log::set_access(false, 1);
  }
  ~DataPlane() {
    exec::assume_on_loop();
    clients.close_all();
    dialer.cancel_all();
    turn();
    for (auto& dial : environment.dials) {
      dial.destination->dial_failed(std::move(*dial.reservation), {FaultKind::draining, Side::self, "the test ends"},
                                    now);
    }
    environment.dials.clear();
    turn();
    origins->directory().stop(now);
    turn();
  }

  // Runs until nothing more happens, without advancing time.
  void turn() {
    exec::assume_on_loop();
    bool moved = true;
    for (int rounds = 0; moved && rounds < 1000; ++rounds) {
      moved = loop.mailbox.deliver(SIZE_MAX) != 0;
      for (; !environment.deliveries.empty(); moved = true) {
        pool::Delivery& delivery = *environment.deliveries.front();
        environment.deliveries.pop_front();
        delivery.arrive(now);
      }
      moved |= loop.deferred.run_turn(1000) != 0;
      loop.timers.run_due(now);
      loop.leases().end_event();
    }
  }
  void pass(Duration time) {
    now += time;
    turn();
  }
  // Delivers bytes of the origin at the other end of the n-th wire.
  void from_origin(std::size_t n, std::string_view bytes, bool end = false) {
    exec::assume_on_loop();
    auto wire = environment.wires.begin();
    std::advance(wire, n);
    if (wire->gone) return;
    wire->incoming.append(bytes);
    wire->ended = end;
    proxy::Connection& connection = *environment.connections.at(n);
    connection.transport().on_readiness({true, true, end});
    if (connection.events != nullptr) connection.events->on_upstream_ready();
    turn();
  }

  Instant now{std::chrono::hours(1)};
  proxy::config::Config settings;
  proxy::config::Listen listen;
  SimLoop loop;
  MemoryEnvironment environment;
  NoTasks tasks;
  metrics::Registry registry;
  std::unique_ptr<proxy::net::EgressPolicy> policy;
  std::unique_ptr<proxy::OriginRegistry> origins;
  proxy::LoopStats stats;
  proxy::dns::Resolver resolver;
  proxy::Router router;
  std::vector<proxy::H2LoopContext*> hosts;
  proxy::CrossLoopStreams streams;
  const proxy::UpstreamContext upstream;
  proxy::Dialer dialer;
  proxy::LeakLog leaks;
  proxy::OverloadState overload;
  proxy::ExchangePool exchanges;
  proxy::ExchangeContext context;
  proxy::ClientList clients;
  proxy::Listener listener;

 private:
  void on_clients_gone() override {}
  std::uint64_t on_warm_dial_begun() override { return 0; }
  void on_warm_dial_ended(std::uint64_t, const Fault*) override {}
};

}  // namespace carpool::test
