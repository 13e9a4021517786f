// pool_sim: the real pool on a virtual clock, driven by a seed: loops, borrowers, dials, closing origins, cancels,
// deadlines, expiry, late mail and stale events in any order. One seed is one history. After every step the oracles
// check the cap, one borrower per connection, the ledger and one result per borrow; at the end no borrower may wait.
//
//   pool_sim [--seconds N] [--seed S] [--histories N]
#include <algorithm>
#include <cstdio>
#include <random>

#include "pool/directory/directory.h"
#include "tests/sim/fair_turns.h"
#include "tests/sim/histories.h"
#include "tests/sim/pool_world.h"
#include "tests/sim/starvation.h"

namespace carpool::test {
namespace {

using std::chrono::milliseconds;
using State = TestBorrower::State;

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed), world_(1 + pick(4)) {
    const auto loops = static_cast<unsigned>(world_.mail.size());
    plain_ = chance(30);
    sessions_ = !plain_ && chance(50);
    commanded_ = !plain_ && chance(40);
    cooled_ = !plain_ && chance(25);
    world_.one_kind = !sessions_;
    pool::DirectoryLimits limits;
    crowd_ = plain_ && chance(40);
    const bool tight = crowd_ || (!plain_ && chance(30));
    limits.max_connections = tight ? 1 + pick(5) : 1000;
    total_ = limits.max_connections;
    directory_ = std::make_unique<pool::Directory>(limits, world_, loops);
    const std::uint32_t destinations = crowd_ ? 2 + pick(5) : tight ? 2 + pick(2) : 1;
    for (std::uint32_t n = 0; n < destinations; ++n) {
      pool::Limits own;
      own.size = 1 + pick(6);
      own.max_waiting = chance(20) ? 0 : pick(12);
      own.max_usage = !plain_ && chance(30) ? 1 + pick(3) : 0;
      own.max_tunnels = 1 + pick(own.size);
      own.expire_time = !plain_ && chance(50) ? milliseconds(5 + pick(200)) : Duration::zero();
      own.idle_timeout = !plain_ && chance(50) ? milliseconds(5 + pick(100)) : Duration::zero();
      own.expected_streams = sessions_ ? pick(4) : 1;
      own.surplus_dial_age = milliseconds(pick(40));
      own.max_cool_down = cooled_ ? milliseconds(1 + pick(40)) : Duration::zero();
      own.min_idle = !plain_ && chance(20) ? pick(3) : 0;
      if (!plain_) {
        own.strategy = static_cast<pool::Strategy>(pick(4));
        own.maximize = chance(15);
        own.quarantine = chance(15) ? milliseconds(pick(20)) : Duration::zero();
        own.evict = static_cast<pool::Evict>(pick(2));
        own.classes = static_cast<std::uint8_t>(chance(30) ? 2 + pick(3) : 0);
      }
      limits_.push_back(own);
      sizes_.push_back(own.size);
      pool::Origin origin;
      origin.host = "origin-" + std::to_string(n);
      origin.port = 80;
      destinations_.push_back(*directory_->at(origin, own));
    }
    const std::uint32_t askers = 2 + pick(14) + (crowd_ ? 10 : 0);
    for (std::uint32_t n = 0; n < askers; ++n) {
      borrowers_.push_back(std::make_unique<TestBorrower>(world_, static_cast<LoopId>(pick(loops))));
    }
    failing_ = plain_ ? 0 : pick(40);
    spread_ = !plain_ && !tight && limits_[0].idle_timeout == Duration::zero() && chance(60);
    if (spread_) world_.addresses.have(*destinations_[0], 1 + pick(4));
  }

  std::string run() {
    for (std::uint32_t n = 0, steps = (crowd_ ? 3000 : 200) + pick(800); n < steps; ++n) {
      step();
      std::string wrong = check();
      // An incorrect counter stays incorrect, so not every step pays for a recount.
      if (wrong.empty() && n % 4 == 0) wrong = audit_all();
      if (!wrong.empty()) return wrong + " at step " + std::to_string(n);
    }
    return run_to_completion();
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t percent) { return pick(100) < percent; }
  LoopId any_loop() { return static_cast<LoopId>(pick(static_cast<std::uint32_t>(world_.mail.size()))); }
  FakeConnection& any_wire() {
    auto at = world_.live.begin();
    std::advance(at, pick(static_cast<std::uint32_t>(world_.live.size())));
    return **at;
  }
  TestBorrower& any_borrower() { return *borrowers_[pick(static_cast<std::uint32_t>(borrowers_.size()))]; }

  void step() {
    if (sessions_ && chance(15)) return change_session();
    if (spread_ && chance(8)) return change_addresses();
    world_.dials_are_past_tcp = chance(30);
    if (commanded_ && chance(8)) return command(pick(static_cast<std::uint32_t>(destinations_.size())));
    const std::uint32_t k = pick(16);
    if (k < 5) return act(any_borrower());
    switch (k) {
      case 5:
      case 6:
      case 7:
        return static_cast<void>(world_.deliver_one(any_loop()));
      case 8:
      case 9:
        return end_dial();
      case 10:
        if (!plain_) close_some_wire();
        return;
      case 11:
        return static_cast<void>(world_.event_one(any_loop()));
      case 12:
        return inspect();
      case 13:
        world_.now += milliseconds(pick(10));
        return;
      case 14:
        return static_cast<void>(wake(false));
      default:
        world_.on(any_loop());
        directory_->sweep(world_.now);
    }
  }

  void act(TestBorrower& borrower) {
    switch (borrower.state) {
      case State::idle:
      case State::refused:
        return borrow(borrower);
      case State::waiting:
        if (chance(15)) borrower.cancel();
        return;
      case State::leased:
        return give_back(borrower);
    }
  }

  void borrow(TestBorrower& borrower) {
    pool::BorrowRequest want;
    if (!plain_) {
      want.new_connection_only = chance(10);
      want.tunnel = chance(10);
      if (chance(20)) want.max_idle = milliseconds(pick(20));
      if (chance(5)) want.max_idle = pool::BorrowRequest::kOnlyNew;
      want.priority_class = static_cast<std::uint8_t>(pick(4));
      want.client = pick(4);
      if (sessions_ && chance(20)) want.kind = pool::ProtocolMask::h1_only;
      if (sessions_ && chance(5)) want.kind = pool::ProtocolMask::h2_only;
    }
    world_.attach_fails = !plain_ && chance(3);
    Destination& destination = *destinations_[pick(static_cast<std::uint32_t>(destinations_.size()))];
    borrower.order = ++asked_;
    borrower.kind = want.kind;
    borrower.only_new = want.max_idle < Duration::zero();
    const State state = borrower.borrow(destination, want);
    turns_.asked(borrower, want);
    world_.attach_fails = false;
    if (state == State::leased) {
      if (want.new_connection_only && !borrower.wire().session()) world_.wrong = "a retry got a connection at once";
      if (!accepts(want.kind, borrower.wire().protocol())) world_.wrong = "lent to one who wanted the other kind";
      if (borrower.wire().session() && borrower.wire().users > borrower.wire().most) world_.wrong = "over its streams";
      if (borrower.wire().session() && borrower.wire().retired) world_.wrong = "lent though it was retired";
      if (destination.cooling(world_.now) && !borrower.lease.trial()) world_.wrong = "lent during a pause";
      if (plain_ && someone_waits_longer(borrower)) world_.wrong = "overtook a waiter";
    }
    if (want.tunnel && state == State::leased && chance(50)) borrower.lease.become_tunnel();
  }

  void give_back(TestBorrower& borrower) {
    FakeConnection& wire = borrower.wire();
    world_.on(borrower.loop());
    if (cooled_ && chance(40)) static_cast<void>(borrower.lease.pass_trial(world_.now));
    if (cooled_ && chance(20)) borrower.destination()->cool_down(milliseconds(pick(60)), 429, world_.now);
    if (plain_ || chance(75)) {
      wire.dirty = !plain_ && chance(3);
      return borrower.release();
    }
    if (chance(5)) return borrower.lose();
    if (chance(20)) return borrower.return_unused();
    borrower.discard(chance(50) ? pool::CloseCause::error : pool::CloseCause::private_);
  }

  void command(std::uint32_t n) {
    world_.on(any_loop());
    Destination& destination = *destinations_[n];
    switch (pick(8)) {
      case 0:
        return destination.pause(world_.now);
      case 1:
        return destination.drain(world_.now);
      case 2:
      case 3:
        return destination.resume(world_.now);
      case 4:
      case 5:
        return destination.reconnect(world_.now);
      default:
        limits_[n].size = 1 + pick(6);
        // Connections borrowed beyond a smaller limit stay until they are released.
        sizes_[n] = std::max(sizes_[n], limits_[n].size);
        destination.set_limits(limits_[n], world_.now);
    }
  }

  // SETTINGS, GOAWAY, and the protocol of a new connection.
  void change_session() {
    world_.next_streams = chance(25) ? 0 : 1 + pick(6);
    if (world_.live.empty()) return;
    FakeConnection& wire = any_wire();
    if (!wire.session()) return;
    Destination& destination = *wire.destination;
    if (chance(40)) return world_.retire(destination, wire, pool::CloseCause::goaway);
    const std::uint32_t most = pick(6);
    if (chance(30)) return world_.first_response(destination, wire);
    world_.set_streams(destination, wire, most);
  }

  // The name resolves to more or fewer addresses, one becomes slow, connections to others are closed (AddressMonitor).
  void change_addresses() {
    if (chance(30)) return world_.addresses.have(*destinations_[0], 1 + pick(5), milliseconds(pick(30)));
    pool::Endpoint& one = world_.addresses.at(pick(static_cast<std::uint32_t>(world_.addresses.count())));
    if (chance(20)) return one.begin(world_.now);
    if (chance(50)) return one.answered(milliseconds(1 + pick(50)));
    leave_addresses();
  }
  // Closes the connections that the balance does not need. Returns true if there was one.
  bool leave_addresses() {
    for (FakeConnection* wire : world_.live) {
      const bool gone = world_.addresses.is_gone(wire->leads_to);
      if (!wire->watched_on || wire == looked_at_ || wire->retired) continue;
      if (!gone && !world_.addresses.needs_connection_of(wire->leads_to)) continue;
      const pool::CloseCause cause = gone ? pool::CloseCause::dns_changed : pool::CloseCause::rebalanced;
      world_.on(*wire->watched_on);
      const pool::EventClaim claim = pool::claim_event(wire->index, wire->generation, *wire->watched_on);
      if (claim.kind != pool::EventClaim::Kind::inspecting && claim.kind != pool::EventClaim::Kind::session) continue;
      if (!gone) destinations_[0]->endpoints().rebalance_done();
      if (claim.kind == pool::EventClaim::Kind::session) {
        world_.retire(*claim.destination, *wire, cause);
      } else {
        pool::close_inspected(wire->index, cause, world_.now);
      }
      return true;
    }
    return false;
  }

  void end_dial() {
    if (world_.dials.empty()) return;
    const std::uint32_t n = pick(static_cast<std::uint32_t>(world_.dials.size()));
    if (chance(failing_)) return world_.dial_failed(n);
    world_.dialed(n);
  }

  // An inspection that takes time: it begins with one event and ends some steps later.
  void inspect() {
    const LoopId loop = any_loop();
    if (looked_at_) return end_inspection();
    for (FakeConnection* wire : world_.live) {
      if (wire->watched_on != loop || !chance(50)) continue;
      world_.on(loop);
      const pool::EventClaim claim = pool::claim_event(wire->index, wire->generation, loop);
      if (claim.kind != pool::EventClaim::Kind::inspecting) continue;
      looked_at_ = wire;
      return;
    }
  }
  void end_inspection() {
    FakeConnection& wire = *std::exchange(looked_at_, nullptr);
    world_.on(*wire.watched_on);
    if (wire.clean_for_reuse()) return pool::keep_inspected(wire.index, world_.now);
    pool::close_inspected(wire.index, pool::CloseCause::peer_closed, world_.now,
                          wire.peer_closed ? pool::OriginClose::in_order : pool::OriginClose::abrupt);
  }
  void close_some_wire() {
    if (world_.live.empty()) return;
    FakeConnection& wire = any_wire();
    if (!wire.peer_closed) world_.close_by_peer(wire);
  }
  bool wake(bool force) {
    for (std::size_t n = 0; n < world_.wakes.size(); ++n) {
      const auto [when, destination] = world_.wakes[n];
      if (force && when > world_.now) world_.now = when;
      if (when > world_.now) continue;
      world_.wakes.erase(world_.wakes.begin() + static_cast<std::ptrdiff_t>(n));
      world_.on(any_loop());
      destination->wake(world_.now);
      return true;
    }
    return false;
  }

  bool someone_waits_longer(const TestBorrower& than) const {
    for (const auto& borrower : borrowers_) {
      if (borrower->destination() != than.destination()) continue;
      if (borrower->state == State::waiting && borrower->order < than.order && world_.mail_empty()) return true;
    }
    return false;
  }

  // ---- oracles ----
  std::string check() {
    if (!world_.wrong.empty()) return world_.wrong;
    if (std::string wrong = turns_.look(); !wrong.empty()) return wrong;
    std::uint64_t all = 0;
    for (std::size_t n = 0; n < destinations_.size(); ++n) {
      const Destination::Snapshot now = destinations_[n]->snapshot(world_.now);
      if (now.opened_total() - now.closed_total() != now.alive()) return "the ledger does not balance";
      if (now.alive() > sizes_[n]) return "the cap was passed";
      if (now.peak > sizes_[n]) return "the peak is above the cap";
      if (std::string wrong = check_shares(now); !wrong.empty()) return wrong;
      all += now.alive();
    }
    if (crowd_ && starvation_.check(destinations_, borrowers_, world_.now))
      return "an origin starves while others are served";
    if (plain_ && !crowd_ && !stopped_ && !world_.closed.empty())
      return "a connection was closed though nothing spoke against it";
    // A session that is closed in the counters remains until its loop disposes of it.
    const std::uint64_t there = world_.live.size() + world_.dials.size();
    if (sessions_ ? all > there : all != there) return "the pool counts other connections than there are";
    if (there > total_) return "the total was passed";
    if (directory_->connections() != there) return "the total counts other connections than there are";
    return check_leases();
  }

  std::string audit_all() const {
    for (const Destination* destination : destinations_) {
      if (std::string wrong = audit(world_, *destination, borrowers_); !wrong.empty()) return wrong;
    }
    return directory_->audit().text();
  }

  // Checks the leases of a class and those below it, unless an operator changes the size they are counted by.
  std::string check_shares(const Destination::Snapshot& now) const {
    std::uint64_t leases = 0;
    for (std::size_t level = now.class_count; level-- > 1;) {
      leases += now.classes[level].leases;
      if (!commanded_ && !sessions_ && leases > now.classes[level].limit) return "a class has more than its share";
    }
    return {};
  }

  std::string check_leases() const {
    std::uint64_t alive = 0, leased = 0, waiting = 0, in_line = 0;
    for (Destination* destination : destinations_) {
      const Destination::Snapshot now = destination->snapshot(world_.now);
      alive += now.borrows - now.restores, in_line += now.waiting;
    }
    for (const auto& borrower : borrowers_) {
      leased += borrower->state == State::leased ? 1 : 0;
      waiting += borrower->state == State::waiting ? 1 : 0;
    }
    if (alive != leased) return "borrows - restores are not the leases alive";
    if (in_line > waiting) return "somebody is in line who does not wait";
    if (waiting != 0 && nothing_happens() && leased == 0) return "a waiter was forgotten";
    return {};
  }

  // Returns true if nothing in progress could still serve a waiter. The destination may be paused.
  bool nothing_happens() const {
    for (const FakeConnection* wire : world_.live) {
      if (wire->session() && !wire->retired && wire->most == 0) return false;  // it may accept borrowers again
    }
    return !commanded_ && world_.mail_empty() && world_.dials.empty() && world_.wakes.empty() && looked_at_ == nullptr;
  }

  // Completes everything in progress; then no borrower may wait and every lease must be released.
  std::string run_to_completion() {
    failing_ = 0;
    if (commanded_) {
      world_.on(any_loop());
      for (Destination* destination : destinations_) destination->resume(world_.now);
    }
    for (FakeConnection* wire : world_.live) {  // one that accepts no streams would justify their waiting
      if (wire->session() && !wire->retired) world_.set_streams(*wire->destination, *wire, 2);
    }
    for (std::uint32_t rounds = 0; rounds < 10000; ++rounds) {
      if (looked_at_ != nullptr) end_inspection();
      bool moved = world_.deliver_all();
      while (!world_.dials.empty()) {
        world_.dialed();
        moved = true;
      }
      for (const auto& borrower : borrowers_) {
        if (borrower->state != State::leased) continue;
        borrower->release();
        moved = true;
      }
      moved |= wake(true);
      std::string wrong = check();
      if (wrong.empty()) wrong = audit_all();
      if (!wrong.empty()) return wrong + " while settling";
      if (!moved) break;
    }
    const auto waits = [](const auto& borrower) { return borrower->state == State::waiting; };
    if (std::any_of(borrowers_.begin(), borrowers_.end(), waits)) return "a waiter is left at the end";
    for (std::size_t n = 0; n < destinations_.size(); ++n) {
      if (destinations_[n]->snapshot(world_.now).alive() > limits_[n].size) return "a smaller size was not obeyed";
    }
    for (Destination* destination : destinations_) {
      const Destination::Snapshot now = destination->snapshot(world_.now);
      for (std::size_t level = 1; level < now.class_count; ++level) {
        if (now.classes[level].leases != 0) return "a share was not given back";
      }
    }
    if (std::string wrong = check_spread(); !wrong.empty()) return wrong;
    stopped_ = true;
    directory_->stop(world_.now);
    world_.deliver_all();
    if (!world_.live.empty()) return "a connection survived the stop";
    if (std::string wrong = check(); !wrong.empty()) return wrong;
    return audit_all();
  }

  // One request after the other, at equally fast addresses: each is given its share. No sweep closes connections that
  // were idle for too long.
  std::string check_spread() {
    const std::size_t count = world_.addresses.count();
    const pool::Limits& own = limits_[0];
    if (!spread_ || own.size < count || own.quarantine != Duration::zero() || own.max_usage != 0) return {};
    const auto learned = [this] { return destinations_[0]->snapshot(world_.now).learned_idle.has_value(); };
    if (own.expire_time != Duration::zero() || learned()) return {};
    destinations_[0]->resume(world_.now);  // nothing is dialed ahead of demand during a pause that the origin requested
    world_.addresses.have(*destinations_[0], count);
    for (std::size_t n = 0; n < count; ++n) world_.addresses.at(n).reset();
    constexpr std::uint32_t kEach = 100, kUntilEven = 64;
    std::vector<std::uint64_t> before;
    for (std::uint32_t n = 0; n < (kUntilEven + kEach) * count; ++n) {
      for (std::size_t a = 0; n == kUntilEven * count && a < count; ++a)
        before.push_back(world_.addresses.at(a).total_leases());
      if (!serve_one()) return "a request waits though nothing else is asked";
    }
    for (std::size_t n = 0; n < count && !learned(); ++n) {
      const std::uint64_t share = world_.addresses.at(n).total_leases() - before[n];
      if (share < kEach * 8 / 10 || share > kEach * 12 / 10) return "the addresses do not share the requests evenly";
      if (world_.addresses.open(n) == 0) return "an address has no connection though requests come";
    }
    return check();
  }
  bool serve_one() {
    TestBorrower& borrower = *borrowers_[0];
    borrower.only_new = false, borrower.kind = pool::ProtocolMask::any, world_.now += milliseconds(1);
    static_cast<void>(borrower.borrow(*destinations_[0]));
    for (bool moved = true; moved;) {
      moved = world_.deliver_all();
      for (; !world_.dials.empty(); moved = true) world_.dialed();
      if (!moved && borrower.state == State::waiting) moved = wake(true);  // the pause after a failed dial has ended
    }
    if (borrower.state == State::waiting) return false;
    if (borrower.state == State::leased) borrower.release();
    leave_addresses();
    world_.deliver_all();
    for (std::size_t loop = 0; loop < world_.events.size(); ++loop) {
      while (world_.event_one(static_cast<LoopId>(loop))) {
      }
    }
    return true;
  }
  std::mt19937_64 random_;
  FakeEnvironment world_;
  std::unique_ptr<pool::Directory> directory_;
  std::vector<Destination*> destinations_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::unique_ptr<TestBorrower>> borrowers_;
  FairTurns turns_;
  Starvation starvation_;
  std::uint64_t total_ = 0, asked_ = 0;
  std::uint32_t failing_ = 0;  // percent of dials
  FakeConnection* looked_at_ = nullptr;
  bool stopped_ = false, commanded_ = false, cooled_ = false;  // by commands of the operator; origins request pauses
  std::vector<pool::Limits> limits_;
  bool sessions_ = false;  // some connections are shared
  bool spread_ = false;    // the origin has several addresses
  bool plain_ = false;     // no failures and no special requests: the order must be exact
  bool crowd_ = false;     // and more origins than the budget has connections for
};

}  // namespace
}  // namespace carpool::test

int main(int argc, char** argv) {
  using namespace carpool::test;
  const Histories asked = histories_of("pool_sim", argc, argv);
  const std::uint64_t done = run_histories<History>(asked, [](const History&) {});
  std::printf("%llu histories from seed %llu: no oracle complained\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(asked.seed));
  return 0;
}
