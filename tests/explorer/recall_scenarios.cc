// Scenarios of cancelled dials: the message to the dial's loop against borrowers and against the dial's own end.
#include "tests/explorer/scenarios.h"
#include "tests/explorer/stage.h"

namespace carpool::explore {
namespace {

// Two unneeded dials of loop 0, which a sweep has seen.
class SurplusDials : public Stage {
 protected:
  explicit SurplusDials(unsigned loops) : Stage(loops, cap(2)) {
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
class RecallMeetsWish : public SurplusDials {
 public:
  RecallMeetsWish() : SurplusDials(2) {
    destination().sweep(world.now);
    if (world.mail[0].empty()) world.wrong = "the stage was not set";
  }
  void run(unsigned thread) override {
    if (thread == 1) wishing_.borrow(destination());
    pump();
  }

 private:
  TestBorrower& wishing_ = asker(1);
};

// A sweep cancels a dial that ends at that moment, and a borrower of a third loop dials into its place.
class RecallMeetsNextDial : public SurplusDials {
 public:
  RecallMeetsNextDial() : SurplusDials(3) {}
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
  TestBorrower& taker_ = asker(0);
  TestBorrower& first_ = asker(1);
  TestBorrower& second_ = asker(1);
};

}  // namespace

std::vector<Named> recall_scenarios() {
  return {named<RecallMeetsWish>("a recall meets a wish"),
          named<RecallMeetsNextDial>("a recall meets the next dial in its place")};
}

}  // namespace carpool::explore
