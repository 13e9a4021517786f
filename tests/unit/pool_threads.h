// pool_threads.h: real threads for the pool's tests, each a loop with its own mailbox, with sockets and registrations
// as a kernel provides them. Every connection has plain fields that only its user may access: under ThreadSanitizer a
// second user is a race, and without it the fields disagree.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "pool/destination/destination.h"
#include "pool/queue/delivery_queue.h"

namespace carpool::test {

using pool::CloseCause;
using pool::Delivery;
using pool::Destination;
using pool::Environment;
using pool::PooledConnection;
using pool::Reservation;

inline thread_local LoopId this_loop = 0;

struct Socket final : PooledConnection {
  bool clean_for_reuse() override { return !peer_closed.load(std::memory_order_acquire); }
  std::atomic<bool> peer_closed{false};
  std::uint64_t token = 0;  // plain: its user's
  std::uint64_t seen_events = 0;
};

struct Readiness {
  std::uint32_t index, generation;
};

// Sockets, their registrations and the mail, as a kernel and an environment provide them.
class Threads final : public Environment {
 public:
  explicit Threads(unsigned loops) : loops_(loops) {}

  struct Loop {
    pool::DeliveryQueue mail;
    std::mutex mutex;
    std::deque<Readiness> events;                                             // guarded by mutex
    std::deque<std::pair<Destination*, std::unique_ptr<Reservation>>> dials;  // accessed on the loop only
  };

  void dial(Destination& destination, Reservation reservation) override {
    const int now = alive.fetch_add(1) + 1;
    for (int most = peak.load(); now > most && !peak.compare_exchange_weak(most, now);) {
    }
    loops_[this_loop].dials.emplace_back(&destination, std::make_unique<Reservation>(std::move(reservation)));
  }
  void deliver(LoopId to, Delivery& delivery) override { loops_[to].mail.push(delivery); }
  void detach(PooledConnection& pooled, LoopId from) override {
    const std::scoped_lock lock(mutex_);
    const auto found = watched_.find(static_cast<Socket*>(&pooled));
    if (found == watched_.end() || found->second.loop != from) return fail("detached where it was not watched");
    watched_.erase(found);
  }
  bool attach(PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override {
    watch(static_cast<Socket&>(pooled), index, generation);
    return true;
  }
  void dispose(PooledConnection* pooled, CloseCause cause) override {
    const std::unique_ptr<Socket> dies(static_cast<Socket*>(pooled));
    if (cause == CloseCause::peer_closed && !dies->peer_closed.load()) ++healthy_killed;
    {
      const std::scoped_lock lock(mutex_);
      watched_.erase(dies.get());
    }
    alive.fetch_sub(1);
  }
  LoopId here() const override { return this_loop; }

  void watch(Socket& socket, std::uint32_t index, std::uint32_t generation) {
    const std::scoped_lock lock(mutex_);
    if (!watched_.emplace(&socket, Registration{this_loop, {index, generation}}).second) return fail("watched twice");
    if (socket.peer_closed.load()) send({index, generation}, this_loop);
  }
  // The origin closes a random connection.
  void close_one(std::mt19937_64& random) {
    const std::scoped_lock lock(mutex_);
    if (watched_.empty()) return;
    auto at = watched_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random() % watched_.size()));
    at->first->peer_closed.store(true, std::memory_order_release);
    send(at->second.name, at->second.loop);
  }
  std::optional<Readiness> next_event(LoopId loop) {
    const std::scoped_lock lock(loops_[loop].mutex);
    if (loops_[loop].events.empty()) return std::nullopt;
    const Readiness event = loops_[loop].events.front();
    loops_[loop].events.pop_front();
    return event;
  }
  void fail(const char* what) { wrong.store(what); }

  std::deque<Loop>& loops() { return loops_; }
  std::atomic<int> alive{0}, peak{0}, healthy_killed{0};
  std::atomic<const char*> wrong{nullptr};

 private:
  struct Registration {
    LoopId loop;
    Readiness name;
  };
  void send(Readiness event, LoopId loop) {
    const std::scoped_lock lock(loops_[loop].mutex);
    loops_[loop].events.push_back(event);
  }
  std::mutex mutex_;
  std::map<Socket*, Registration> watched_;  // guarded by mutex_
  std::deque<Loop> loops_;
};

}  // namespace carpool::test
