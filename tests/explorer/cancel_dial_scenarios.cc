// Scenarios of dials that no borrower waits for: a cancelled one, by the message to its loop, against borrowers and
// against its own end, and one for min_idle.
#include "tests/explorer/destination_scenario.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

// Two unneeded dials of loop 0, which a sweep has seen.
class SurplusDials : public DestinationScenario {
 protected:
  explicit SurplusDials(unsigned loops) : DestinationScenario(loops, cap(2)) {
    TestBorrower& one = waiting(0);
    TestBorrower& other = waiting(0);
    one.cancel();
    other.cancel();
    world.now += std::chrono::seconds(2);
    destination().sweep(world.now);
    if (world.dials.size() != 2) world.wrong = "the stage was not set";
  }
};

// An unneeded dial is cancelled on its loop while a borrower of another loop begins to need it.
class CancelMeetsBorrower : public SurplusDials {
 public:
  CancelMeetsBorrower() : SurplusDials(2) {
    destination().sweep(world.now);
    if (world.mail[0].empty()) world.wrong = "the stage was not set";
  }
  void run(unsigned thread) override {
    if (thread == 1) waiting_.borrow(destination());
    pump();
  }

 private:
  TestBorrower& waiting_ = borrower_on(1);
};

// A sweep cancels a dial that ends at that moment, and a borrower of a third loop dials into its place.
class CancelMeetsNextDial : public SurplusDials {
 public:
  CancelMeetsNextDial() : SurplusDials(3) {}
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        world.dialed(1);
        if (taker_.borrow(destination()) == State::leased) taker_.discard(pool::CloseCause::error);
        return pump();
      case 1:
        first_.borrow(destination());
        second_.borrow(destination());
        return pump();
      default:
        return destination().sweep(world.now);
    }
  }

 private:
  TestBorrower& taker_ = borrower_on(0);
  TestBorrower& first_ = borrower_on(1);
  TestBorrower& second_ = borrower_on(1);
};

class MinIdleScenario : public DestinationScenario {
 public:
  std::string verdict() override {
    std::string wrong = run_to_completion();
    return wrong.empty() && opened() != 1 ? "dialed twice for min_idle" : wrong;
  }

 protected:
  MinIdleScenario() : DestinationScenario(2, ready()) {}

 private:
  static pool::Limits ready() {
    pool::Limits limits = cap(2);
    limits.min_idle = 1;
    return limits;
  }
};

// A sweep looks for what min_idle lacks while the dial for it succeeds.
class DialMeetsMinIdle : public MinIdleScenario {
 public:
  DialMeetsMinIdle() { destination().sweep(world.now); }
  void run(unsigned thread) override {
    if (thread == 0) return world.dialed();
    destination().sweep(world.now);
  }
};

// A sweep looks for what min_idle lacks while a warm-up dials it.
class WarmUpMeetsMinIdle : public MinIdleScenario {
 public:
  WarmUpMeetsMinIdle() { destination(); }
  void run(unsigned thread) override {
    thread == 0 ? static_cast<void>(destination().warm_up(1, 1, world.now)) : destination().sweep(world.now);
  }
};

}  // namespace

std::vector<Named> cancel_dial_scenarios() {
  return {named<CancelMeetsBorrower>("a cancelled dial meets a borrower"),
          named<CancelMeetsNextDial>("a cancelled dial meets the next dial in its place"),
          named<DialMeetsMinIdle>("a dial for min_idle meets the sweep"),
          named<WarmUpMeetsMinIdle>("a warm-up meets the sweep that dials for min_idle")};
}

}  // namespace carpool::explore
