// Unit tests with several loops on real threads that share one destination while origins close connections at random
// and events arrive late.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pool/destination/outstanding.h"
#include "pool/destination/snapshot.h"
#include "pool/directory/directory.h"
#include "tests/unit/pool_threads.h"

namespace carpool::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::Readiness;
using test::Socket;
using test::this_loop;
using test::Threads;

class User final : public Borrower {
 public:
  void on_lease(Lease granted) override {
    ++results;
    begin(std::move(granted));
  }
  void on_refused(Fault) override {
    ++results;
    waiting = false;
  }
  void begin(Lease granted) {
    lease = std::move(granted);
    waiting = false;
    static auto next = std::atomic<std::uint64_t>{1};
    token = next.fetch_add(1);
    static_cast<Socket&>(*lease).token = token;
  }
  bool still_alone() { return static_cast<Socket&>(*lease).token == token; }

  Lease lease;
  Destination* asked_of = nullptr;
  std::uint64_t token = 0;
  bool waiting = false;
  std::uint64_t asked = 0, results = 0, cancelled = 0;
};

struct Plan {
  unsigned loops = 2;
  std::uint32_t size = 4;
  unsigned users = 6;  // of each loop
  int turns = 20000;
  Limits limits{};
  std::uint32_t origins = 1;
  std::uint32_t total = 1000;  // connections of all loops together
  bool peers_close = true;
  bool wishes = true;  // cancels, retries, short idle limits, failing dials
};

// The thread of one loop.
class Runner {
 public:
  Runner(Threads& environment, std::vector<Destination*> destinations, const Plan& plan, LoopId loop)
      : house_(environment),
        destinations_(std::move(destinations)),
        plan_(plan),
        loop_(loop),
        random_(loop + 1U),
        users_(plan.users) {}

  void run(std::atomic<unsigned>& busy) {
    this_loop = loop_;
    for (int turn = 0; turn < plan_.turns; ++turn) {
      serve();
      act(users_[random_() % users_.size()]);
    }
    finish();
    busy.fetch_sub(1);
    // The others may still hand a connection to this loop, or wait for its mail.
    while (busy.load() != 0 || !house_.loops()[loop_].dials.empty()) serve();
  }
  std::uint64_t unanswered() const {
    std::uint64_t sum = 0;
    for (const User& user : users_) sum += user.asked - user.results - user.cancelled;
    return sum;
  }
  bool waiting() const {
    for (const User& user : users_) {
      if (user.waiting) return true;
    }
    return false;
  }

 private:
  void serve() {
    const Instant now = Clock::now();
    house_.loops()[loop_].mail.deliver_all(now);
    end_dials(now);
    // Events arrive late: the connection they name may be closed, moved, or replaced in the same slot.
    for (int n = static_cast<int>(random_() % 16) - 12; n > 0; --n) {
      if (std::optional<Readiness> event = house_.next_event(loop_)) on_event(*event, now);
    }
    if (plan_.peers_close && random_() % 64 == 0) house_.close_one(random_);
    if (random_() % 256 == 0) any().sweep(now);
  }
  void end_dials(Instant now) {
    auto& dials = house_.loops()[loop_].dials;
    for (std::size_t n = dials.size(); n != 0; --n) {
      auto [destination, reservation] = std::move(dials.front());
      dials.pop_front();
      if (random_() % 3 == 0) {
        dials.emplace_back(destination, std::move(reservation));  // not yet
      } else if (plan_.wishes && random_() % 10 == 0) {
        house_.alive.fetch_sub(1);
        destination->dial_failed(std::move(*reservation), Fault(FaultKind::connect_refused, Side::upstream, ""), now);
      } else {
        auto socket = std::make_unique<Socket>();
        house_.watch(*socket, reservation->index(), reservation->generation());
        destination->dialed(std::move(*reservation), std::move(socket), now);
      }
    }
  }
  void on_event(Readiness event, Instant now) {
    const EventClaim claim = claim_event(event.index, event.generation, loop_);
    if (claim.kind == EventClaim::Kind::stale) return;
    auto& socket = static_cast<Socket&>(*claim.pooled);
    ++socket.seen_events;
    // Handles the event as a hangup.
    if (claim.kind == EventClaim::Kind::inspecting) close_inspected(event.index, CloseCause::peer_closed, now);
  }
  Destination& any() { return *destinations_[random_() % destinations_.size()]; }
  void act(User& user) {
    const Instant now = Clock::now();
    if (user.lease) {
      if (!user.still_alone()) house_.fail("two users on one connection");
      return plan_.wishes && random_() % 8 == 0 ? user.lease.discard(CloseCause::error, now) : user.lease.release(now);
    }
    if (!user.waiting) return ask(user, now);
    if (!plan_.wishes || random_() % 16 != 0) return;
    user.asked_of->cancel(user, now);
    user.waiting = false;
    ++user.cancelled;
  }
  void ask(User& user, Instant now) {
    BorrowRequest want;
    if (plan_.wishes) {
      want.new_connection_only = random_() % 16 == 0;
      if (random_() % 8 == 0) want.max_idle = microseconds(random_() % 100);
    }
    ++user.asked;
    user.waiting = true;
    user.asked_of = &any();
    auto result = user.asked_of->borrow(user, want, now);
    if (std::holds_alternative<Waiting>(result)) return;
    ++user.results;
    user.waiting = false;
    if (auto* lease = std::get_if<Lease>(&result)) user.begin(std::move(*lease));
  }
  // Releases every lease; each waiter must get a result, or the test hangs, which is the failure.
  void finish() {
    for (bool open = true; open;) {
      serve();
      open = false;
      for (User& user : users_) {
        if (user.lease) user.lease.release(Clock::now());
        open |= user.waiting;
      }
      std::this_thread::yield();
    }
  }

  Threads& house_;
  const std::vector<Destination*> destinations_;
  const Plan& plan_;
  const LoopId loop_;
  std::mt19937_64 random_;
  std::deque<User> users_;
};

Origin origin_number(std::uint32_t n) {
  Origin origin;
  origin.host = "origin-" + std::to_string(n);
  origin.port = 80;
  return origin;
}

// Checks the invariants of one destination after all threads have finished.
std::uint64_t expect_idle(const Destination& destination, const Plan& plan) {
  const Destination::Snapshot end = destination.snapshot(Clock::now());
  EXPECT_EQ(end.borrows, end.restores);
  EXPECT_EQ(end.leaks, 0U);
  EXPECT_EQ(end.waiting, 0U);
  EXPECT_EQ(end.opened_total() - end.closed_total(), end.alive());
  const Outstanding nothing;
  EXPECT_EQ(destination.audit(&nothing).text(), "");
  if (!plan.peers_close && !plan.wishes) {
    EXPECT_LE(end.opened_total(), plan.size) << "contention opened a connection";
  }
  return end.alive();
}

void run(const Plan& plan) {
  Threads environment(plan.loops);
  Limits limits = plan.limits;
  limits.size = plan.size;
  DirectoryLimits over_all;
  over_all.max_connections = plan.total;
  Directory directory(over_all, environment, plan.loops);
  for (std::uint32_t n = 0; n < plan.origins; ++n) ASSERT_TRUE(directory.at(origin_number(n), limits));
  std::deque<Runner> runners;
  for (unsigned n = 0; n < plan.loops; ++n) {
    runners.emplace_back(environment, directory.all(), plan, static_cast<LoopId>(n));
  }
  std::atomic<unsigned> busy{plan.loops};
  std::vector<std::thread> threads;
  for (Runner& runner : runners) threads.emplace_back([&] { runner.run(busy); });
  int unbalanced = 0, scrapes = 0;
  while (busy.load() != 0) {
    for (Destination* destination : directory.all()) {
      const Destination::Snapshot now = destination->snapshot(Clock::now());
      if (now.opened_total() - now.closed_total() != now.alive()) ++unbalanced;
      if (now.alive() > plan.size) environment.fail("the cap was passed");
    }
    ++scrapes;
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(environment.wrong.load(), nullptr) << environment.wrong.load();
  EXPECT_EQ(unbalanced, 0) << "of " << scrapes;
  EXPECT_LE(environment.peak.load(), static_cast<int>(std::min(plan.size * plan.origins, plan.total)));
  EXPECT_EQ(environment.healthy_killed.load(), 0);
  for (Runner& runner : runners) EXPECT_EQ(runner.unanswered(), 0U);
  std::uint64_t alive = 0;
  for (Destination* destination : directory.all()) alive += expect_idle(*destination, plan);
  EXPECT_EQ(alive, static_cast<std::uint64_t>(environment.alive.load()));
  EXPECT_EQ(alive, directory.connections());
  EXPECT_EQ(directory.audit().text(), "");
}

TEST(Loops, ShareOneConnectionAndForgetNoWaiter) {
  Plan plan;
  plan.size = 1;
  plan.users = 2;
  plan.turns = 50000;
  plan.peers_close = plan.wishes = false;
  run(plan);
}

// The lost wake-up: in each round one thread releases the only connection while the other asks for it. If both read
// before they publish, the borrower waits forever: no other thread wakes it.
class Round {
 public:
  void meet() {
    const unsigned turn = turn_.load();
    if (arrived_.fetch_add(1) == 1) {
      arrived_.store(0);
      turn_.fetch_add(1);
    } else {
      for (unsigned spins = 1; turn_.load() == turn; ++spins) {
        if (spins % 256 == 0) std::this_thread::yield();
      }
    }
  }

 private:
  std::atomic<unsigned> arrived_{0}, turn_{0};
};

// A publication by a plain store survives 100,000 rounds two times in three; the long form runs ten million. TSan's own
// barriers prevent what such a store permits; it looks for unordered accesses, and each way in which two threads can
// meet occurs in a few rounds.
int rounds_of_meetings(const char* asked) {
  if (asked != nullptr) return std::atoi(asked);
#ifdef __SANITIZE_THREAD__
  return 10'000;
#else
  return 100'000;
#endif
}

TEST(Loops, NeverBothMissAReleaseAndABorrower) {
  const char* asked = std::getenv("CARPOOL_LITMUS_ROUNDS");
  const int rounds = rounds_of_meetings(asked);
  // On a busy machine two threads rarely run at once, and a round takes milliseconds.
  const Instant end = asked != nullptr ? Instant::max() : Clock::now() + std::chrono::seconds(20);
  Threads environment(2);
  Limits limits;
  limits.size = 1;
  Destination destination(origin_number(0), limits, environment, 2);
  std::array<User, 2> users;
  std::atomic<bool> lost{false}, over{false};
  Round round;
  // The connection is established before the race begins.
  this_loop = 0;
  ASSERT_TRUE(std::holds_alternative<Waiting>(destination.borrow(users[0], {}, Clock::now())));
  {
    auto [at, reservation] = std::move(environment.loops()[0].dials.front());
    environment.loops()[0].dials.pop_front();
    auto socket = std::make_unique<Socket>();
    environment.watch(*socket, reservation->index(), reservation->generation());
    at->dialed(std::move(*reservation), std::move(socket), Clock::now());
    environment.loops()[0].mail.deliver_all(Clock::now());
  }
  const auto play = [&](LoopId loop) {
    this_loop = loop;
    User& user = users[loop];
    for (int n = 0; n < rounds && !lost && !over; ++n) {
      const Instant now = Clock::now();
      round.meet();
      if (loop == 0 && now >= end) over = true;  // both see it after the next meeting
      if (user.lease) {
        user.lease.release(now);
      } else {
        auto result = destination.borrow(user, {}, now);
        if (auto* lease = std::get_if<Lease>(&result)) user.begin(std::move(*lease));
        for (int spins = 0; !user.lease && !lost; ++spins) {
          environment.loops()[loop].mail.deliver_all(now);
          if (spins % 256 == 255) std::this_thread::yield();
          if (spins % 1024 == 1023 && Clock::now() - now > std::chrono::seconds(10)) lost = true;
        }
      }
      round.meet();
    }
  };
  std::thread other(play, LoopId{1});
  play(0);
  other.join();
  EXPECT_FALSE(lost) << "a release and a wish missed each other";
  EXPECT_EQ(destination.snapshot(Clock::now()).opened_total(), 1U) << "contention opened a connection";
  this_loop = users[0].lease ? 0 : 1;
  users[this_loop].lease.release(Clock::now());
}

TEST(Loops, TakeConnectionsFromEachOtherWhileOriginsClose) {
  Plan plan;
  plan.wishes = false;
  run(plan);
}

TEST(Loops, KeepEveryPromiseUnderEveryRequest) {
  Plan plan;
  plan.loops = 3;
  run(plan);
}

TEST(Loops, KeepEveryPromiseWhileConnectionsExpire) {
  Plan plan;
  plan.loops = 3;
  plan.limits.expire_time = milliseconds(2);
  plan.limits.idle_timeout = milliseconds(1);
  plan.limits.max_usage = 7;
  run(plan);
}

TEST(Loops, RefuseBeyondTheBoundAndStillServeTheRest) {
  Plan plan;
  plan.loops = 3;
  plan.size = 2;
  plan.limits.max_waiting = 2;
  run(plan);
}

TEST(Loops, ShareATotalThatIsTooSmallForAllOrigins) {
  Plan plan;
  plan.loops = 3;
  plan.origins = 3;
  plan.total = 4;
  run(plan);
}

}  // namespace
}  // namespace carpool::pool
