// DestinationScenario: the base of the destination's scenarios: the simulation's world, in which each model thread is a
// loop. Mail is visible to its receiver at once, and with it all that its sender wrote, as in a mailbox with release
// and acquire.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "pool/directory/directory.h"
#include "tests/explorer/machine.h"
#include "tests/sim/pool_world.h"

namespace carpool::explore {

using test::FakeConnection;
using test::TestBorrower;
using State = TestBorrower::State;

class ScenarioEnvironment final : public test::FakeEnvironment {
 public:
  explicit ScenarioEnvironment(unsigned loops) : FakeEnvironment(loops), boxes_(loops) {}
  LoopId here() const override {
    const Machine& machine = Machine::the();
    return machine.running() ? static_cast<LoopId>(machine.thread()) : FakeEnvironment::here();
  }
  void dial(pool::Destination& destination, pool::Reservation reservation) override {
    on(here());
    FakeEnvironment::dial(destination, std::move(reservation));
  }
  void deliver(LoopId to, pool::Delivery& delivery) override {
    Machine::the().release(boxes_[to]);
    FakeEnvironment::deliver(to, delivery);
  }
  bool attach(pool::PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override {
    on(here());
    return FakeEnvironment::attach(pooled, index, generation);
  }
  // Delivers the next mail of the calling thread's loop. Returns false if there is none.
  bool receive() {
    Machine::the().acquire(boxes_[here()]);
    return deliver_one(here());
  }

 private:
  std::vector<Sync> boxes_;
};

class DestinationScenario : public Scenario {
 public:
  unsigned threads() const override { return loops_; }

 protected:
  DestinationScenario(unsigned loops, pool::Limits limits, std::uint32_t total = 1000)
      : world(loops), loops_(loops), limits_(limits), directory_({8, total}, world, loops) {}

  static pool::Limits cap(std::uint32_t size) {
    pool::Limits limits;
    limits.size = size;
    return limits;
  }
  pool::Destination& destination(unsigned n = 0) {
    while (destinations_.size() <= n) {
      pool::Origin origin;
      origin.host = "origin-" + std::to_string(destinations_.size());
      origin.port = 80;
      destinations_.push_back(*directory_.at(origin, limits_));
    }
    return *destinations_[n];
  }
  pool::Directory& directory() { return directory_; }

  // ---- before the run ----
  TestBorrower& borrower_on(LoopId loop) { return borrowers_.emplace_back(world, loop); }
  TestBorrower& leased(LoopId loop, unsigned of = 0) {
    TestBorrower& one = borrower_on(loop);
    if (one.borrow(destination(of)) == State::waiting) {
      world.dialed();
      world.deliver_all();
    }
    if (one.state != State::leased) world.wrong = "the stage was not set";
    return one;
  }
  TestBorrower& waiting(LoopId loop) {
    TestBorrower& one = borrower_on(loop);
    if (one.borrow(destination()) != State::waiting) world.wrong = "the stage was not set";
    return one;
  }
  FakeConnection& idle_connection(LoopId loop, unsigned of = 0) {
    TestBorrower& one = leased(loop, of);
    FakeConnection& wire = one.wire();
    one.release();
    return wire;
  }

  // ---- during the run ----
  // Delivers all mail of the calling thread's loop.
  void pump() {
    while (world.receive()) {
    }
  }
  // Handles an event that was dequeued earlier. It may affect only the connection it names.
  void handle(const test::Event& event, bool still_idle) {
    const LoopId here = world.here();
    const pool::EventClaim claim = pool::claim_event(event.index, event.generation, here);
    if (claim.kind == pool::EventClaim::Kind::stale) return;
    auto& wire = static_cast<FakeConnection&>(*claim.pooled);
    if (wire.generation != event.generation || wire.watched_on != here) world.wrong = "a stale event acted";
    if (claim.kind != pool::EventClaim::Kind::inspecting) return;
    if (wire.users != 0) world.wrong = "inspected while in use";
    wire.peer_closed = !still_idle;
    if (still_idle) return pool::keep_inspected(event.index, world.now);
    pool::close_inspected(event.index, pool::CloseCause::peer_closed, world.now);
  }

  // ---- after the run ----
  // Completes everything in progress and releases the leases; then no borrower may be left waiting.
  std::string run_to_completion() {
    for (bool more = true; more && world.wrong.empty();) {
      more = world.deliver_all();
      for (; !world.dials.empty(); more = true) world.dialed();
      for (TestBorrower& one : borrowers_) {
        if (one.state != State::leased) continue;
        one.release();
        more = true;
      }
    }
    if (!world.wrong.empty()) return world.wrong;
    std::uint64_t alive = 0;
    for (pool::Destination* one : destinations_) {
      const pool::Destination::Snapshot now = one->snapshot(world.now);
      if (now.opened_total() - now.closed_total() != now.alive()) return "the ledger does not balance";
      if (now.alive() > limits_.size || now.peak > limits_.size) return "the cap was passed";
      if (now.borrows != now.restores) return "a lease is missing";
      alive += now.alive();
    }
    if (alive != world.live.size()) return "the pool counts other connections than there are";
    if (alive != directory_.connections()) return "the total counts other connections than there are";
    for (const TestBorrower& one : borrowers_) {
      if (one.state == State::waiting) return "a waiter was forgotten";
    }
    return {};
  }
  std::string verdict() override { return run_to_completion(); }
  std::uint64_t opened() { return destination().snapshot(world.now).opened_total(); }

  ScenarioEnvironment world;

 private:
  const unsigned loops_;
  const pool::Limits limits_;
  pool::Directory directory_;
  std::vector<pool::Destination*> destinations_;
  std::deque<TestBorrower> borrowers_;
};

}  // namespace carpool::explore
