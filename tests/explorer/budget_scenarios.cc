// Scenarios of the connection budget: slots that are freed while origins become starved.
#include "tests/explorer/scenarios.h"
#include "tests/explorer/stage.h"

namespace carpool::explore {
namespace {

// One slot for two origins: the starved one is woken when the other's connection becomes idle or is closed.
class ReleaseMeetsHunger : public Stage {
 public:
  ReleaseMeetsHunger() : Stage(2, cap(1), 1) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    hungry_.borrow(destination(1));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& hungry_ = asker(1);
};
class EndMeetsHunger : public Stage {
 public:
  EndMeetsHunger() : Stage(2, cap(1), 1) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.discard(pool::CloseCause::error);
    hungry_.borrow(destination(1));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& hungry_ = asker(1);
};

// The same when the origin was listed as having an idle connection: the searcher finds none and removes it from the
// list while a connection becomes idle there.
class OfferMeetsHunger : public Stage {
 public:
  OfferMeetsHunger() : Stage(2, cap(1), 1) {
    holder_.release();
    holder_.borrow(destination());
  }
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    hungry_.borrow(destination(1));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& hungry_ = asker(1);
};
// Two origins are starved when the only slot is freed.
class EndMeetsTwoHungers : public Stage {
 public:
  EndMeetsTwoHungers() : Stage(3, cap(1), 1) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.discard(pool::CloseCause::error);
    hungry_[thread - 1]->borrow(destination(thread));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower* const hungry_[2] = {&asker(1), &asker(2)};
};

}  // namespace

std::vector<Named> budget_scenarios() {
  return {named<ReleaseMeetsHunger>("a release meets hunger for the total"),
          named<EndMeetsHunger>("an end meets hunger for the total"),
          named<OfferMeetsHunger>("an offer that is withdrawn meets hunger for the total"),
          named<EndMeetsTwoHungers>("an end meets two hungers for the total")};
}

}  // namespace carpool::explore
