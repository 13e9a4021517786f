// Worker: one loop and everything that lives on it: its clients, its exchanges, its dials, its router and resolver.
// Owned and torn down by the House; everything here is the loop's own (LOOP_ONLY) but what says otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/intrusive.h"
#include "exec/uv/driver.h"
#include "exec/uv/loop.h"
#include "pool/delivery_queue.h"
#include "proxy/dns/resolver.h"
#include "proxy/exchange.h"
#include "proxy/leak_watch.h"
#include "proxy/loop_buffers.h"
#include "proxy/overload/stage.h"
#include "proxy/recorder.h"
#include "proxy/router.h"
#include "proxy/upstream/address_watch.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/health_check.h"
#include "proxy/upstream/remote_stream.h"
#include "proxy/upstream/session_host.h"

namespace carpool::proxy {

class Downstream;
struct ClientTag;
class Listener;
class House;

class Worker final : public SessionHost, private exec::SharedWatcher, private exec::TurnHost {
 public:
  static Result<std::unique_ptr<Worker>> make(House& house, exec::LoopId id);
  ~Worker();

  // The worker whose loop this thread turns; for the pool, which asks where it is. Follows the loop from thread to
  // thread.
  static Worker& current();

  template <class Work>
  void as_current(Work work) {  // the calling thread stands in for this worker's loop, which nobody runs
    enter();
    work();
    leave();
  }
  bool start();                     // on threads of the house's execution, until stop(). False: none is left
  void stop() { driver_->stop(); }  // any thread, once
  void wait_until_stopped() const { driver_->wait_until_stopped(); }
  // What may block, from this loop: runs after this turn, here or elsewhere, and posts its result back. False: too many
  // such tasks exist; it was closed.
  bool submit(exec::TaskPtr task) LOOP_ONLY { return driver_->submit(std::move(task)); }
  exec::Driver& driver() { return *driver_; }
  void tear_down();  // after it stopped: closes clients, gives leases back, delivers what is in the mail

  exec::UvLoop& loop() override { return *loop_; }
  House& house() { return house_; }
  const net::AddressPolicy& policy() const;
  std::string_view pseudonym() const;
  Router& router() LOOP_ONLY { return router_; }
  Dialer& dialer() LOOP_ONLY { return dialer_; }
  Recorder& recorder() LOOP_ONLY { return recorder_; }

  LoopBuffers& buffers() override LOOP_ONLY { return buffers_; }

  Exchange& take_exchange() LOOP_ONLY;
  // Every exchange of the slab, resting ones too.
  template <class Visit>
  void for_each_exchange(Visit visit) LOOP_ONLY {
    for (const std::unique_ptr<Exchange>& exchange : exchanges_) visit(*exchange);
  }
  void recycle(Exchange& exchange) LOOP_ONLY;
  void adopt(Listener& listener, int fd, std::string peer) LOOP_ONLY;
  // A client that turned out to speak HTTP/2: another object takes its connection over, and what was read of it. The
  // one that asks ends at once and counts no more.
  void promote(Listener& listener, std::unique_ptr<net::Transport> transport, std::string peer,
               std::string_view bytes) LOOP_ONLY;
  void bury(Downstream& client) LOOP_ONLY;  // destroyed at the end of the turn
  std::size_t clients() const LOOP_ONLY { return client_count_; }

  // Another configuration is in force: forgets the routes it knows, and ends the clients of listeners that are closed
  // as drain() does.
  void on_reload(const config::Dns& dns, const std::vector<const Listener*>& closed) LOOP_ONLY;

  // Ends what this loop has of connections that were made under certificates of these identities that were replaced:
  // those that rest now, the others with their requests.
  void retire_outdated_of(const std::vector<const TlsIdentity*>& renewed) LOOP_ONLY;

  // Forgets pools that are about to end. True: an exchange still goes by one of them.
  bool forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

  // A stream of a session of loop `far`, for an exchange of this one.
  RemoteStream& take_remote(exec::LoopId far) LOOP_ONLY;
  void recycle(RemoteStream& stream, exec::LoopId far) override LOOP_ONLY;

  // From the next answer on every client's connection ends; idle ones end now. `empty()` turns true when none is left.
  void drain() LOOP_ONLY;
  // As drain(), but clients who rest are left until they ask once more.
  void part() LOOP_ONLY;
  bool draining() const LOOP_ONLY { return draining_; }
  // What is shed now (proxy/overload): whoever asks for it sees for itself.
  bool sheds(Shedding what) const;
  bool keeps_clients() const LOOP_ONLY { return !draining_ && !sheds(Shedding::keep_alive); }
  void shed_idle() LOOP_ONLY;                                            // ends clients that rest
  bool empty() const { return empty_.load(std::memory_order_acquire); }  // any thread

  // Grants and refusals of the pool for borrowers of this loop; any thread.
  void deliver(pool::Delivery& delivery);
  // destination.wake() on this loop at `when`.
  void wake_at(pool::Destination& destination, Instant when) LOOP_ONLY;

  void record(const Exchange& exchange, const Requester& client) LOOP_ONLY { recorder_.record(exchange, client); }
  void record_refused(const Requester& client, const Fault& fault, std::uint16_t status) LOOP_ONLY {
    recorder_.record_refused(client, fault, status);
  }
  void count_retry(const OriginContext& origin, Proof proof) LOOP_ONLY { recorder_.count_retry(origin, proof); }
  void count_reset(const OriginContext& origin, http::H2Error error) override LOOP_ONLY {
    recorder_.count_reset(origin, error);
  }
  bool dialing(const OriginContext& origin) const { return origin.dials.load(std::memory_order_relaxed) != 0; }
  std::string_view dial_phase(const OriginContext& origin) const LOOP_ONLY { return dialer_.phase_of(origin); }

 private:
  Worker(House& house, std::unique_ptr<exec::UvLoop> loop);
  void on_shared_ready(std::uint32_t index, std::uint32_t generation, exec::Ready ready) override LOOP_ONLY;
  void enter() override LOOP_ENTER;
  void leave() override;
  void run_deferred() LOOP_ONLY;  // ends what was buried in this turn
  void note_if_empty() LOOP_ONLY;
  // exec::Deferred, under a name that does not collide with run().
  struct Gravedigger final : exec::Deferred {
    explicit Gravedigger(Worker& worker) : worker_(worker) {}
    void run() override LOOP_ONLY { worker_.run_deferred(); }
    Worker& worker_;
  };

  struct Postman final : exec::Mail {
    explicit Postman(Worker& worker) : worker_(worker) {}
    void arrive() override LOOP_ONLY { worker_.deliveries_.deliver_all(worker_.loop_->now()); }
    Worker& worker_;
  };
  void wake_due();

  House& house_;
  std::unique_ptr<exec::UvLoop> loop_;
  LoopBuffers buffers_ LOOP_LOCAL{loop_->leases()};
  pool::DeliveryQueue deliveries_;
  Postman postman_{*this};
  std::vector<std::pair<Instant, pool::Destination*>> to_wake_ LOOP_LOCAL;
  exec::Timer wake_timer_;
  dns::Resolver resolver_;
  Router router_ LOOP_LOCAL;
  Recorder recorder_ LOOP_LOCAL;
  Dialer dialer_ LOOP_LOCAL;
  HealthCheck health_check_ LOOP_LOCAL;
  AddressWatch address_watch_ LOOP_LOCAL;
  LeakWatch leak_watch_ LOOP_LOCAL;
  std::vector<std::unique_ptr<Exchange>> exchanges_ LOOP_LOCAL;  // the slab: never shrinks
  List<Exchange, ExchangeTag> free_exchanges_ LOOP_LOCAL;
  std::vector<std::unique_ptr<RemoteStream>> remotes_ LOOP_LOCAL;                              // as exchanges_
  std::vector<std::unique_ptr<List<RemoteStream, RemoteStreamTag>>> free_remotes_ LOOP_LOCAL;  // by far loop
  List<Downstream, ClientTag> clients_ LOOP_LOCAL;                                             // owned: made by adopt()
  List<Downstream, ClientTag> graves_ LOOP_LOCAL;  // owned: destroyed by run_deferred()
  Gravedigger gravedigger_{*this};
  std::size_t client_count_ LOOP_LOCAL = 0;
  bool draining_ LOOP_LOCAL = false;
  std::atomic<bool> empty_{false};
  std::unique_ptr<exec::Driver> driver_;
};

}  // namespace carpool::proxy
