// Scenarios of searches in Destination: what they found has changed before they act on it.
#include "tests/explorer/destination_scenario.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

using std::chrono::milliseconds;

// The only connection is released while a borrower asks that accepts only one in use a moment ago: the one that comes
// back is no connection to close for its dial.
class ReleaseMeetsBorrowerOfFresh : public DestinationScenario {
 public:
  ReleaseMeetsBorrowerOfFresh() : DestinationScenario(2, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    pool::BorrowRequest want;
    want.max_idle = milliseconds(5);
    waiting_.borrow(destination(), want);
    pump();
  }
  std::string verdict() override {
    std::string wrong = run_to_completion();
    return wrong.empty() && opened() != 1 ? "contention opened a connection" : wrong;
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& waiting_ = borrower_on(1);
};

// A borrower finds that a session in use has expired, while the session ends and has a successor in its place.
class SearchMeetsSuccessor : public DestinationScenario {
 public:
  SearchMeetsSuccessor() : DestinationScenario(2, life()) { world.now += milliseconds(150); }
  void run(unsigned thread) override {
    if (thread == 0) {
      asking_.borrow(destination());
      return pump();
    }
    holder_.discard(pool::CloseCause::error);
    pump();
    next_.borrow(destination());
    if (!world.dials.empty() && world.dials.front().loop == world.here()) world.dialed();
    pump();
  }
  std::string verdict() override {
    world.deliver_all();
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
    const bool both = asking_.state == State::leased && next_.state == State::leased;
    std::string wrong = opened() > 2 ? "a session was closed as its predecessor had expired" : "";
    if (wrong.empty() && !both) wrong = "a waiter stood beside a spare stream";
    const std::string end = run_to_completion();
    return wrong.empty() ? end : wrong;
  }

 private:
  static pool::Limits life() {
    pool::Limits limits = cap(1);
    limits.expire_time = milliseconds(100);
    return limits;
  }
  TestBorrower& on_session() {
    world.next_streams = 2;
    return leased(1);
  }
  TestBorrower& holder_ = on_session();
  TestBorrower& asking_ = borrower_on(0);
  TestBorrower& next_ = borrower_on(1);
};

}  // namespace

std::vector<Named> search_scenarios() {
  return {named<ReleaseMeetsBorrowerOfFresh>("a release meets a borrower of a connection in use a moment ago"),
          named<SearchMeetsSuccessor>("a search that finds an expired session meets its successor")};
}

}  // namespace carpool::explore
