// pool_curve: the cost of the pool's operations by pool size and number of pools: a table for docs/benchmarks.md.
// CPU-us of one operation, the least of several parts, to limit the influence of a busy machine.
//
//   pool_curve
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "pool/directory/directory.h"
#include "tests/sim/pool_world.h"

namespace carpool::test {
namespace {

using State = TestBorrower::State;
constexpr int kParts = 5;

double cpu_us() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e6 + static_cast<double>(at.tv_nsec) / 1e3;
}

// CPU-us of one of `events` in each part.
double cost_of(int events, const std::function<void(int part)>& part) {
  double least = 1e18;
  for (int n = 0; n < kParts; ++n) {
    const double begin = cpu_us();
    part(n);
    least = std::min(least, (cpu_us() - begin) / events);
  }
  return least;
}

pool::Origin origin(std::size_t number) {
  pool::Origin made;
  made.host = "origin-" + std::to_string(number);
  made.port = 80;
  return made;
}

// A row: events of one pool with the given number of entries.
class OfPlaces {
 public:
  explicit OfPlaces(std::uint32_t places) : places_(places), world_(2) {
    limits_.size = places;
    limits_.max_waiting = 1'000'000;
    destination_ = std::make_unique<Destination>(origin(0), limits_, world_, 2);
    for (std::uint32_t n = 0; n < places; ++n) busy_.emplace_back(world_, static_cast<LoopId>(n % 2));
    fill();
  }
  void print() {
    const double queued = join_and_cancel(), handed = hand_off();
    for (TestBorrower& one : busy_) one.release();
    const double hit = borrow_and_release();
    const double evicted = evict();
    const double looked = cost_of(1, [this](int) { static_cast<void>(destination_->snapshot(world_.now)); });
    const double swept = cost_of(1, [this](int) { destination_->sweep(world_.now); });
    const double replaced = reconnect(), shrunk = shrink();
    std::printf("| %u | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", places_, hit, queued, handed,
                evicted, looked / 1000, swept / 1000, replaced / 1000, shrunk / 1000);
    std::fflush(stdout);
    world_.on(0);
    destination_->stop(world_.now);
    world_.deliver_all();
  }

 private:
  void fill() {
    for (TestBorrower& one : busy_) one.borrow(*destination_);
    while (!world_.dials.empty()) world_.dialed();
    world_.deliver_all();
  }
  double borrow_and_release() {
    TestBorrower one(world_, 0);
    return cost_of(10'000, [&](int) {
      for (int n = 0; n < 10'000; ++n) {
        one.borrow(*destination_);
        one.release();
      }
    });
  }
  double join_and_cancel() {
    std::deque<TestBorrower> line;
    for (int n = 0; n < 2000; ++n) line.emplace_back(world_, LoopId{0});
    return cost_of(2000, [&](int) {
      for (TestBorrower& one : line) one.borrow(*destination_);
      for (TestBorrower& one : line) one.cancel();
    });
  }
  double hand_off() {
    TestBorrower other(world_, 0);
    other.borrow(*destination_);
    TestBorrower *from = &busy_.front(), *to = &other;
    const double cost = cost_of(10'000, [&](int) {
      for (int n = 0; n < 10'000; ++n) {
        from->release();
        from->borrow(*destination_);
        world_.deliver_all();
        std::swap(from, to);
      }
    });
    (from->state == State::waiting ? from : to)->cancel();
    if (other.state == State::leased) {
      other.release();
      busy_.front().borrow(*destination_);
    }
    return cost;
  }
  double evict() {
    world_.on(0);
    const int events = static_cast<int>(std::min<std::uint32_t>(places_ / 16, 100));
    const double cost = cost_of(events, [&](int) {
      for (int n = 0; n < events; ++n) destination_->evict(world_.now);
    });
    fill();
    for (TestBorrower& one : busy_) {
      if (one.state == State::leased) one.release();
    }
    return cost;
  }
  double reconnect() {
    world_.on(0);
    const double begin = cpu_us();
    destination_->reconnect(world_.now);
    return cpu_us() - begin;
  }
  double shrink() {
    while (!world_.dials.empty()) world_.dialed();
    world_.on(0);
    pool::Limits one = limits_;
    one.size = 1;
    const double begin = cpu_us();
    destination_->set_limits(one, world_.now);
    return cpu_us() - begin;
  }

  const std::uint32_t places_;
  FakeEnvironment world_;
  pool::Limits limits_;
  std::unique_ptr<Destination> destination_;
  std::deque<TestBorrower> busy_;
};

// A row: events under the connection budget, which the given number of origins use up with one connection each.
class OfOrigins {
 public:
  explicit OfOrigins(std::uint32_t origins) : origins_(origins), world_(2) {
    pool::DirectoryLimits limits;
    limits.max_connections = origins + 1;
    limits.max_origins = origins + 10;
    directory_ = std::make_unique<pool::Directory>(limits, world_, 2);
    for (std::uint32_t n = 0; n < origins; ++n) borrow(at(n));
    other_ = &at(origins);
    borrow(*other_);
  }
  void print() {
    const double calm = hand_off();
    TestBorrower& starved = busy_.emplace_back(world_, LoopId{0});
    starved.borrow(*other_);  // it holds as many connections as the others, so it waits and gets no slot
    const double wanted = hand_off();
    starved.cancel();
    for (TestBorrower& one : busy_) {
      if (one.state == State::leased) one.release();
    }
    const double evicted = take_turns();
    std::printf("| %u | %.2f | %.2f | %.2f |\n", origins_, calm, wanted, evicted);
    std::fflush(stdout);
    for (TestBorrower& one : busy_) {
      if (one.state == State::leased) one.release();
    }
    world_.on(0);
    directory_->stop(world_.now);
    world_.deliver_all();
  }

 private:
  Destination& at(std::size_t n) {
    pool::Limits own;
    own.size = n == origins_ ? 2 : 1;
    return **directory_->at(origin(n), own, world_.now);
  }
  void borrow(Destination& destination) {
    busy_.emplace_back(world_, LoopId{0}).borrow(destination);
    run_until_idle();
  }
  void run_until_idle() {
    while (!world_.dials.empty()) world_.dialed();
    world_.deliver_all();
  }
  // The first origin hands its connection from one borrower to the next.
  double hand_off() {
    Destination& first = at(0);
    TestBorrower other(world_, 0);
    other.borrow(first);
    run_until_idle();
    TestBorrower *from = &busy_.front(), *to = &other;
    const double cost = cost_of(10'000, [&](int) {
      for (int n = 0; n < 10'000; ++n) {
        from->release();
        from->borrow(first);
        world_.deliver_all();
        std::swap(from, to);
      }
    });
    (from->state == State::waiting ? from : to)->cancel();
    if (other.state == State::leased) {
      other.release();
      busy_.front().borrow(first);
    }
    return cost;
  }
  // One origin more than there are slots borrows in turn: each is given the slot of the least recently used.
  double take_turns() {
    TestBorrower one(world_, 0);
    std::size_t next = 0;
    return cost_of(200, [&](int) {
      for (int n = 0; n < 200; ++n) {
        Destination& destination = at(next++ % (origins_ + 2));
        world_.now += std::chrono::microseconds(1);
        one.borrow(destination);
        run_until_idle();
        one.release();
      }
    });
  }

  const std::uint32_t origins_;
  FakeEnvironment world_;
  std::unique_ptr<pool::Directory> directory_;
  Destination* other_ = nullptr;
  std::deque<TestBorrower> busy_;
};

}  // namespace
}  // namespace carpool::test

int main() {
  std::printf(
      "| places | borrow and release, us | join the line and give up, us | hand on, us | evict, us | snapshot, ms "
      "| sweep, ms | reconnect, ms | shrink to 1, ms |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const std::uint32_t places : {64U, 1024U, 10'000U, 65'535U}) carpool::test::OfPlaces(places).print();
  std::printf(
      "\n| origins | hand on, us | the same while another one lacks a slot, us | borrow where it takes another's "
      "slot, with its dial, us |\n|---|---|---|---|\n");
  for (const std::uint32_t origins : {1U, 100U, 1000U, 10'000U}) carpool::test::OfOrigins(origins).print();
  return 0;
}
