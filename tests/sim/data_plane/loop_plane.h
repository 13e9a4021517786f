// LoopPlane: a worker's objects on one loop, over virtual time and wires: router, streams, exchanges and clients.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/submitter.h"
#include "metrics/registry.h"
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
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/health/address_monitor.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/upstream_context.h"
#include "tests/sim/data_plane/virtual_wire.h"
#include "tests/sim/session_world.h"

namespace carpool::test {

// SharedPlane: parts of the world that every loop uses.
struct SharedPlane {
  const Instant& now;
  metrics::Registry& registry;
  proxy::OriginRegistry& origins;
  const proxy::net::EgressPolicy& policy;
  const proxy::config::Listen& listen;
  std::vector<proxy::H2LoopContext*>& hosts;
};

class LoopPlane final : public proxy::ClientOwner,
                        private proxy::ClientList::Owner,
                        private proxy::WarmUpListener,
                        private exec::Submitter {
 public:
  LoopPlane(LoopId id, const SharedPlane& all)
      : loop(id, all.now),
        stats_(all.registry, proxy::log::Format::json, loop),
        resolver_(loop, {}),
        router_(all.origins, all.policy),
        streams_(loop, stats_, all.hosts),
        upstream_{.loop = loop,
                  .tasks = *this,
                  .sessions = streams_,
                  .stats = stats_,
                  .origins = all.origins,
                  .policy = all.policy,
                  .warm_up = *this,
                  .inline_handshakes = 100,
                  .pseudonym = "carpool-test",
                  .first = id == 0},
        dialer_(upstream_, resolver_),
        exchanges_(context_),
        context_{.loop = loop,
                 .buffers = streams_.buffers(),
                 .cross_loop_streams = streams_,
                 .exchanges = exchanges_,
                 .router = router_,
                 .origins = all.origins,
                 .dialer = dialer_,
                 .stats = stats_,
                 .leaks = leaks_,
                 .overload = overload_,
                 .wall_clock = []() noexcept { return WallTime(); },
                 .pseudonym = "carpool-test"},
        clients_(context_, *this),
        first_(all.listen, proxy::Listener::Parts{{&clients_}, &stats_, &overload_, &all.origins.directory()}),
        second_(all.listen, proxy::Listener::Parts{{&clients_}, &stats_, &overload_, &all.origins.directory()}),
        pacer_(loop) {
    all.hosts.push_back(&streams_);
  }
  void accept(VirtualWire& wire) LOOP_ONLY {
    auto transport = std::make_unique<VirtualTransport>(wire);
    auto client =
        std::make_unique<proxy::H1Client>(context_, *this, *open_, open_->point(), std::move(transport), "test");
    CARPOOL_ASSERT(client->start());
    {
      const HeldMemory::Peer peer;
      wires_[client.get()] = &wire;
    }
    wire.drained = context_.draining;
    live_.push_back(*client.release());
  }
  void close_all() LOOP_ONLY {
    while (!live_.empty()) live_.front().end();
  }
  // `percent`, by chance: each client closes after its response, or, under pressure, each idle one at once, as
  // ClientList::shed_idle() does it.
  void let_clients_go(std::uint32_t percent) LOOP_ONLY {
    if (percent < 20) each_client([this](proxy::ClientConnection& client) LOOP_ONLY { drain(client); });
    if (percent >= 85)
      each_client([](proxy::ClientConnection& client) LOOP_ONLY { static_cast<void>(client.end_if_idle()); });
  }
  // A reload closes the listener and opens another one; as ClientList::drain_those_of().
  void move_listener() LOOP_ONLY {
    const proxy::Listener* const closed = std::exchange(open_, open_ == &first_ ? &second_ : &first_);
    each_client([this, closed](proxy::ClientConnection& client) LOOP_ONLY {
      if (client.listener() == closed) drain(client);
    });
  }
  // The successor has the listener; as ClientList::start_graceful_close().
  void hand_over() LOOP_ONLY {
    context_.draining = true;
    each_client([this](proxy::ClientConnection& client) LOOP_ONLY {
      note_drain(client);
      client.start_graceful_close();
    });
  }
  // Clients that were drained and have not closed.
  bool any_drained() const { return !drained_.empty(); }
  void watch_addresses() LOOP_ONLY { addresses_.start(); }
  void stop_watching() LOOP_ONLY { addresses_.stop(); }
  void on_reload() LOOP_ONLY { router_.forget(); }
  void forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY {
    router_.forget();
    addresses_.forget(leaving);
  }
  void cancel_dials() LOOP_ONLY { dialer_.cancel_all(); }
  // Closed clients are destroyed when none of their code runs any more.
  void destroy_ended() LOOP_ONLY {
    while (!closed_.empty()) const std::unique_ptr<proxy::ClientConnection> dies(&closed_.pop_front());
  }
  bool idle() const LOOP_ONLY {
    bool idle = true;
    exchanges_.for_each([&idle](const proxy::Exchange& one)
                            LOOP_ONLY { idle &= one.state() == proxy::ExchangeState::idle; });
    return idle;
  }

  template <class Visit>
  void each_exchange(const Visit& visit) const LOOP_ONLY {
    exchanges_.for_each(visit);
  }
  std::int64_t clients() LOOP_ONLY {
    std::int64_t count = 0;
    for (auto* one = live_.next(nullptr); one != nullptr; one = live_.next(one)) ++count;
    return count;
  }
  // Returns the age of the oldest exchange.
  Duration oldest(Instant now) const LOOP_ONLY {
    Duration oldest{};
    exchanges_.for_each([&](const proxy::Exchange& one) LOOP_ONLY {
      const bool begun = one.state() != proxy::ExchangeState::idle && one.info().began != Instant{};
      if (begun) oldest = std::max(oldest, now - one.info().began);
    });
    return oldest;
  }

  SimLoop loop;
  std::deque<pool::Delivery*> deliveries;

 private:
  template <class Visit>
  void each_client(const Visit& visit) LOOP_ONLY {
    for (proxy::ClientConnection* client = live_.next(nullptr); client != nullptr;) {
      proxy::ClientConnection* const after = live_.next(client);
      visit(*client);
      client = after;
    }
    destroy_ended();
  }
  void drain(proxy::ClientConnection& client) LOOP_ONLY {
    {
      const HeldMemory::Peer peer;
      drained_.insert(&client);
    }
    note_drain(client);
    client.drain();
  }
  void note_drain(const proxy::ClientConnection& client) {
    if (const auto found = wires_.find(&client); found != wires_.end()) found->second->drained = true;
  }
  void destroy_later(proxy::ClientConnection& client) override LOOP_ONLY {
    {
      const HeldMemory::Peer peer;
      drained_.erase(&client);
      wires_.erase(&client);
    }
    client.ListHook<proxy::ClientTag>::unlink();
    closed_.push_back(client);
  }
  void upgrade_to_h2(proxy::Listener& listener, std::unique_ptr<const proxy::ListenPoint>,
                     std::unique_ptr<proxy::net::Transport> transport, std::string peer, std::string_view bytes,
                     bool drains) override LOOP_ONLY {
    auto client = std::make_unique<proxy::H2Client>(context_, *this, listener, listener.point(), std::move(transport),
                                                    std::move(peer));
    proxy::H2Client& started = *client;
    live_.push_back(*client.release());
    if (!started.start(proxy::http::kH2Preface, bytes)) return started.end();
    if (context_.draining || drains) drain(started);
  }
  proxy::RequestPacer& pacer() override LOOP_ONLY { return pacer_; }
  void intercept(proxy::Listener&, std::unique_ptr<proxy::InterceptedConnect>, Fd, std::string,
                 bool) override LOOP_ONLY {}
  proxy::ConnectInterceptor& interceptor() override LOOP_ONLY { return interceptor_; }
  void on_clients_gone() override {}
  std::uint64_t on_warm_dial_begun() override { return 0; }
  void on_warm_dial_ended(std::uint64_t, const Fault*) override {}
  bool submit(exec::TaskPtr) override { return false; }

  proxy::LoopStats stats_;
  proxy::dns::Resolver resolver_;
  proxy::Router router_;
  proxy::CrossLoopStreams streams_;
  const proxy::UpstreamContext upstream_;
  proxy::AddressMonitor addresses_{upstream_, resolver_};
  proxy::Dialer dialer_;
  proxy::LeakLog leaks_;
  proxy::OverloadState overload_;
  proxy::ExchangePool exchanges_;
  proxy::ExchangeContext context_;
  proxy::ClientList clients_;
  proxy::Listener first_, second_;
  proxy::Listener* open_ = &first_;
  std::set<const proxy::ClientConnection*> drained_;
  std::map<const proxy::ClientConnection*, VirtualWire*> wires_;  // of those that speak HTTP/1
  proxy::RequestPacer pacer_;
  proxy::ConnectInterceptor interceptor_{context_, nullptr};
  List<proxy::ClientConnection, proxy::ClientTag> live_, closed_;  // owned
};

}  // namespace carpool::test
