// Scenarios of the connection budget: slots that are freed while origins become starved.
#include "tests/explorer/destination_scenario.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

// One slot of the connection budget. The destinations exist before the run: the directory's lock is not part of the
// model.
class OneSlot : public DestinationScenario {
 protected:
  explicit OneSlot(unsigned threads) : DestinationScenario(threads, cap(1), 1) { destination(threads - 1); }
};

// Two origins share the slot: the starved one is woken when the other's connection becomes idle or is closed.
class ReleaseMeetsStarved : public OneSlot {
 public:
  ReleaseMeetsStarved() : OneSlot(2) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    starved_.borrow(destination(1));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& starved_ = borrower_on(1);
};
class EndMeetsStarved : public OneSlot {
 public:
  EndMeetsStarved() : OneSlot(2) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.discard(pool::CloseCause::error);
    starved_.borrow(destination(1));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& starved_ = borrower_on(1);
};

// The same when the origin was listed as having an idle connection: the searcher finds none and removes it from the
// list while a connection becomes idle there.
class OfferMeetsStarved : public OneSlot {
 public:
  OfferMeetsStarved() : OneSlot(2) {
    holder_.release();
    holder_.borrow(destination());
  }
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    starved_.borrow(destination(1));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& starved_ = borrower_on(1);
};
// Two origins are starved when the only slot is freed.
class EndMeetsTwoStarved : public OneSlot {
 public:
  EndMeetsTwoStarved() : OneSlot(3) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.discard(pool::CloseCause::error);
    starved_[thread - 1]->borrow(destination(thread));
    pump();
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower* const starved_[2] = {&borrower_on(1), &borrower_on(2)};
};

// A session is being disposed of, beside an idle connection, when another origin becomes starved: the place of the
// session suffices.
class DisposalMeetsHunger : public DestinationScenario {
 public:
  DisposalMeetsHunger() : DestinationScenario(2, cap(2), 2) {
    destination(1);
    world.next_streams = 2;
    TestBorrower& on_session = leased(0);
    idle_.release();
    on_session.discard(pool::CloseCause::error);
    world.next_streams = 0;
    if (world.mail[0].empty() || !destination().has_idle()) world.wrong = "the stage was not set";
  }
  void run(unsigned thread) override {
    if (thread == 1) starved_.borrow(destination(1));
    pump();
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    return wrong.empty() && world.closed.size() != 1 ? "an idle connection closed for a slot that was coming" : wrong;
  }

 private:
  TestBorrower& idle_ = leased(0);
  TestBorrower& starved_ = borrower_on(1);
};

}  // namespace

std::vector<Named> budget_scenarios() {
  return {named<ReleaseMeetsStarved>("a release meets a starved destination"),
          named<EndMeetsStarved>("an end meets a starved destination"),
          named<OfferMeetsStarved>("an offer that is withdrawn meets a starved destination"),
          named<EndMeetsTwoStarved>("an end meets two starved destinations"),
          named<DisposalMeetsHunger>("a disposal meets a starved destination")};
}

}  // namespace carpool::explore
