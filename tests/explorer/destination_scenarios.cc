// Scenarios of Destination: concurrent releases, borrows, takeovers, events, closes and mail.
#include "tests/explorer/destination_scenario.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

using std::chrono::milliseconds;

// The lost wake-up: the only connection is released while a borrower asks for one.
class ReleaseMeetsBorrower : public DestinationScenario {
 public:
  explicit ReleaseMeetsBorrower(unsigned borrowers = 1) : DestinationScenario(1 + borrowers, cap(1)) {
    for (unsigned n = 0; n < borrowers; ++n) waiting_.push_back(&borrower_on(static_cast<LoopId>(n + 1)));
  }
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    waiting_[thread - 1]->borrow(destination());
    pump();
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    return wrong.empty() && opened() != 1 ? "contention opened a connection" : wrong;
  }

 protected:
  TestBorrower& holder_ = leased(0);

 private:
  std::vector<TestBorrower*> waiting_;
};
struct ReleaseMeetsTwoBorrowers : ReleaseMeetsBorrower {
  ReleaseMeetsTwoBorrowers() : ReleaseMeetsBorrower(2) {}
};

// The same when the connection was borrowed before, so that its bitmap bit is still set: the borrower follows the bit
// to a borrowed entry and clears it while the connection is released.
struct ReturnMeetsSearches : ReleaseMeetsTwoBorrowers {
  ReturnMeetsSearches() {
    holder_.release();
    holder_.borrow(destination());
  }
};

// One of a session's two streams is released while a borrower acquires the other and a third borrower asks: the
// acquirer hides the session for a moment, and no borrower may wait beside the spare stream because of it.
class StreamMeetsBorrower : public DestinationScenario {
 public:
  StreamMeetsBorrower() : DestinationScenario(3, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    TestBorrower& one = thread == 1 ? taking_ : waiting_;
    one.borrow(destination());
    pump();
  }
  std::string verdict() override {
    world.deliver_all();
    const bool both = taking_.state == State::leased && waiting_.state == State::leased;
    const std::string wrong = run_to_completion();
    return wrong.empty() && !both ? "a waiter stood beside a spare stream" : wrong;
  }

 private:
  TestBorrower& on_session() {
    world.next_streams = 2;
    return leased(0);
  }
  TestBorrower& holder_ = on_session();
  TestBorrower& taking_ = borrower_on(1);
  TestBorrower& waiting_ = borrower_on(2);
};

// The same pair when the session was full, so that its bit may be stale: both streams come back, and both are lent.
class FullSessionMeetsBorrower : public DestinationScenario {
 public:
  FullSessionMeetsBorrower() : DestinationScenario(3, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) {
      holder_.release();
      return second_.release();
    }
    TestBorrower& one = thread == 1 ? taking_ : waiting_;
    one.borrow(destination());
    pump();
  }
  std::string verdict() override {
    world.deliver_all();
    const bool both = taking_.state == State::leased && waiting_.state == State::leased;
    const std::string wrong = run_to_completion();
    return wrong.empty() && !both ? "a waiter stood beside a spare stream" : wrong;
  }

 private:
  TestBorrower& on_session() {
    world.next_streams = 2;
    return leased(0);
  }
  TestBorrower& holder_ = on_session();
  TestBorrower& second_ = leased(0);
  TestBorrower& taking_ = borrower_on(1);
  TestBorrower& waiting_ = borrower_on(2);
};

// The same pair when the slot itself becomes free.
class DiscardMeetsBorrower : public DestinationScenario {
 public:
  DiscardMeetsBorrower() : DestinationScenario(2, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.discard(pool::CloseCause::error);
    waiting_.borrow(destination());
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& waiting_ = borrower_on(1);
};

class FailedDialMeetsBorrower : public DestinationScenario {
 public:
  FailedDialMeetsBorrower() : DestinationScenario(2, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return world.dial_failed();
    waiting_.borrow(destination());
    pump();
  }

 private:
  TestBorrower& first_ = waiting(0);
  TestBorrower& waiting_ = borrower_on(1);
};

class InspectionMeetsBorrower : public DestinationScenario {
 public:
  explicit InspectionMeetsBorrower(std::uint32_t size = 1) : DestinationScenario(2, cap(size)) {}
  void run(unsigned thread) override {
    if (thread == 0) return handle({wire_.index, wire_.generation, false}, true);
    waiting_.borrow(destination());
    pump();
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    return wrong.empty() && opened() != 1 ? "contention opened a connection" : wrong;
  }

 private:
  FakeConnection& wire_ = idle_connection(0);
  TestBorrower& waiting_ = borrower_on(1);
};

// The same pair with room for a dial: a search that misses the connection under inspection causes none.
struct InspectionMeetsRoom : InspectionMeetsBorrower {
  InspectionMeetsRoom() : InspectionMeetsBorrower(2) {}
};

// An event of loop 0 was dequeued; loop 1 takes the connection over and releases it, loop 0 takes it over again, and
// only then handles the event.
class StaleEvent : public DestinationScenario {
 public:
  StaleEvent() : DestinationScenario(2, cap(1)) {}
  void run(unsigned thread) override {
    TestBorrower& one = borrowers_[thread] == nullptr
                            ? *(borrowers_[thread] = &borrower_on(static_cast<LoopId>(thread)))
                            : *borrowers_[thread];
    if (one.borrow(destination()) == State::leased) one.release();
    if (thread == 0) handle(event_, false);
    pump();
  }

 private:
  FakeConnection& wire_ = idle_connection(0);
  const test::Event event_{wire_.index, wire_.generation, true};
  TestBorrower* borrowers_[2] = {};
};

class TakeoverAgainstEvent : public DestinationScenario {
 public:
  TakeoverAgainstEvent() : DestinationScenario(2, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return handle(event_, false);
    taker_.borrow(destination());
    pump();
  }

 private:
  FakeConnection& wire_ = idle_connection(0);
  const test::Event event_{wire_.index, wire_.generation, true};
  TestBorrower& taker_ = borrower_on(1);
};

// Takeover against close: the sweep finds the connection expired while loop 1, whose clock is behind, acquires it.
class TakeoverAgainstSweep : public DestinationScenario {
 public:
  TakeoverAgainstSweep() : DestinationScenario(2, idle(milliseconds(5))) {}
  void run(unsigned thread) override {
    if (thread == 0) return destination().sweep(late_);
    if (taker_.borrow(destination()) == State::leased) {
      world.now = late_;
      taker_.release();
      rested_again_ = world.closed.empty();
    }
    pump();
  }
  std::string verdict() override {
    if (rested_again_ && !world.closed.empty()) return "closed on a judgement that a use had overtaken";
    return run_to_completion();
  }

 private:
  static pool::Limits idle(Duration time) {
    pool::Limits limits = cap(1);
    limits.idle_timeout = time;
    return limits;
  }
  FakeConnection& wire_ = idle_connection(0);
  TestBorrower& taker_ = borrower_on(1);
  const Instant late_ = world.now + milliseconds(10);
  bool rested_again_ = false;
};

class TakeoverAgainstEviction : public DestinationScenario {
 public:
  TakeoverAgainstEviction() : DestinationScenario(3, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return static_cast<void>(destination().evict(world.now));
    (thread == 1 ? one_ : other_).borrow(destination());
    pump();
  }

 private:
  FakeConnection& wire_ = idle_connection(0);
  TestBorrower& one_ = borrower_on(1);
  TestBorrower& other_ = borrower_on(2);
};

// A connection is handed off to a borrower that cancels while a third borrower asks.
class HandOffAgainstCancel : public DestinationScenario {
 public:
  HandOffAgainstCancel() : DestinationScenario(3, cap(1)) {}
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        return holder_.release();
      case 1:
        waiter_.cancel();
        return pump();
      default:
        third_.borrow(destination());
        return pump();
    }
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& waiter_ = waiting(1);
  TestBorrower& third_ = borrower_on(2);
};

// A connection is handed off while it is valid and expires before it is delivered.
class HandOffAgainstExpiry : public DestinationScenario {
 public:
  HandOffAgainstExpiry() : DestinationScenario(2, life(milliseconds(100))) {}
  void run(unsigned thread) override {
    if (thread == 0) {
      holder_.release();
      world.now += milliseconds(200);
      return destination().sweep(world.now);
    }
    pump();
    second_.borrow(destination());
    pump();
  }

 private:
  static pool::Limits life(Duration time) {
    pool::Limits limits = cap(1);
    limits.expire_time = time;
    return limits;
  }
  TestBorrower& holder_ = leased(0);
  TestBorrower& waiter_ = waiting(1);
  TestBorrower& second_ = borrower_on(1);
};

// stop() while a dial ends, a borrower asks and another one releases.
class StopAgainstAll : public DestinationScenario {
 public:
  StopAgainstAll() : DestinationScenario(3, cap(2)) {}
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        return destination().stop(world.now);
      case 1:
        world.dialed();
        return pump();
      default:
        holder_.release();
        asking_.borrow(destination());
        return pump();
    }
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    if (wrong.empty() && !world.live.empty()) return "a connection survived the stop";
    return wrong;
  }

 private:
  TestBorrower& holder_ = leased(2);
  TestBorrower& waiter_ = waiting(1);
  TestBorrower& asking_ = borrower_on(2);
};

// A new borrower does not overtake a waiting one, not even to a connection that was just published.
class NoBorrowerOvertakesAWaiter : public DestinationScenario {
 public:
  NoBorrowerOvertakesAWaiter() : DestinationScenario(3, cap(1)) {}
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        return holder_.release();
      case 1:
        first_.borrow(destination());
        in_line_ = first_.state == State::waiting;
        return pump();
      default:
        const bool late = in_line_;
        later_.borrow(destination());
        if (late && later_.state == State::leased && in_line_ && first_.state == State::waiting && !served()) {
          world.wrong = "barged past the line";
        }
        return pump();
    }
  }

 private:
  // The grant is posted or delivered.
  bool served() const { return !world.mail[1].empty() || first_.leases != 0; }
  TestBorrower& holder_ = leased(0);
  TestBorrower& first_ = borrower_on(1);
  TestBorrower& later_ = borrower_on(2);
  bool in_line_ = false;
};

// The limit falls below the number of open connections while one of them is released and a borrower asks.
class LimitFalls : public DestinationScenario {
 public:
  LimitFalls() : DestinationScenario(3, cap(2)) {}
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        return destination().set_limits(cap(1), world.now);
      case 1:
        return holder_.release();
      default:
        asking_.borrow(destination());
        return pump();
    }
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    if (wrong.empty() && destination().snapshot(world.now).alive() > 1) return "more survive than the limit allows";
    return wrong;
  }

 private:
  TestBorrower& holder_ = leased(1);
  TestBorrower& other_ = leased(2);
  TestBorrower& asking_ = borrower_on(2);
};

// An inspection that is about to begin fails because of an acquirer, while a borrower asks that would have waited for
// the inspection's end.
class LostInspectionMeetsBorrower : public DestinationScenario {
 public:
  LostInspectionMeetsBorrower() : DestinationScenario(3, cap(2)) {}
  void run(unsigned thread) override {
    if (thread == 0) return handle({wire_.index, wire_.generation, false}, true);
    (thread == 1 ? taker_ : waiting_).borrow(destination());
    pump();
  }
  std::string verdict() override {
    world.deliver_all();
    const bool served = waiting_.state == State::leased && taker_.state == State::leased;
    const bool stands = !served && world.dials.empty();
    std::string wrong = run_to_completion();
    return wrong.empty() && stands ? "a waiter stood beside room for a dial" : wrong;
  }

 private:
  FakeConnection& wire_ = idle_connection(0);
  TestBorrower& taker_ = borrower_on(1);
  TestBorrower& waiting_ = borrower_on(2);
};

// A reservation that the connection budget refuses was never opened: no scrape may count it.
class ScrapeAgainstUndone : public DestinationScenario {
 public:
  ScrapeAgainstUndone() : DestinationScenario(2, cap(2), 1) { destination(1); }
  void run(unsigned thread) override {
    if (thread == 0) {
      asking_.borrow(destination(1));
      return pump();
    }
    const pool::Destination::Snapshot now = destination(1).snapshot(world.now);
    if (now.opened_total() - now.closed_total() != now.alive()) world.wrong = "a scrape does not balance";
  }

 private:
  TestBorrower& holder_ = leased(1);
  TestBorrower& asking_ = borrower_on(0);
};

// New settings let the size follow the load while a borrower of another loop notes how long it waited.
class SizeFollowsLoad : public DestinationScenario {
 public:
  SizeFollowsLoad() : DestinationScenario(2, cap(1)) {
    world.now += milliseconds(10);
    holder_.release();
  }
  void run(unsigned thread) override {
    if (thread == 1) return pump();
    pool::Limits limits = cap(1);
    limits.min_size = limits.max_size = 1;
    destination().set_limits(limits, world.now);
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    return wrong.empty() && waiter_.leases != 1 ? "the borrower was not served" : wrong;
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& waiter_ = waiting(1);
};

// The counters of a scrape balance at any moment.
class ScrapeBalances : public DestinationScenario {
 public:
  ScrapeBalances() : DestinationScenario(3, cap(2)) {}
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        return holder_.discard(pool::CloseCause::error);
      case 1:
        asking_.borrow(destination());
        return pump();
      default: {
        const pool::Destination::Snapshot now = destination().snapshot(world.now);
        if (now.opened_total() - now.closed_total() != now.alive()) world.wrong = "a scrape does not balance";
      }
    }
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& asking_ = borrower_on(1);
};

}  // namespace

std::vector<Named> destination_scenarios() {
  return {named<ReleaseMeetsBorrower>("a release meets a borrower"),
          named<ReleaseMeetsTwoBorrowers>("a release meets two borrowers"),
          named<ReturnMeetsSearches>("a release meets two that search for it"),
          named<StreamMeetsBorrower>("a stream that comes back meets a taker and a borrower"),
          named<FullSessionMeetsBorrower>("two streams of a full session meet a taker and a borrower"),
          named<DiscardMeetsBorrower>("a discard meets a borrower"),
          named<FailedDialMeetsBorrower>("a failed dial meets a borrower"),
          named<InspectionMeetsBorrower>("an inspection that ends quietly meets a borrower"),
          named<InspectionMeetsRoom>("an inspection that ends quietly beside room for a dial"),
          named<StaleEvent>("a stale event after takeover, release and taking back"),
          named<TakeoverAgainstEvent>("a takeover against an event that closes"),
          named<TakeoverAgainstSweep>("a takeover against the sweep"),
          named<TakeoverAgainstEviction>("two takeovers against an eviction"),
          named<HandOffAgainstCancel>("a hand-off against a cancel and a third"),
          named<HandOffAgainstExpiry>("a hand-off against expiry"),
          named<StopAgainstAll>("stop against a dial, a release and a borrower"),
          named<LimitFalls>("the limit falls against a release and a borrower"),
          named<NoBorrowerOvertakesAWaiter>("nobody barges past the line"),
          named<LostInspectionMeetsBorrower>("an inspection that loses meets a borrower"),
          named<ScrapeAgainstUndone>("a scrape against a reservation that is undone"),
          named<SizeFollowsLoad>("a size begins to follow the load while a wait is noted"),
          named<ScrapeBalances>("a scrape against an end and a dial")};
}

}  // namespace carpool::explore
