// Unit tests of ConnectionBudget: which destination gets the next slot, at what cost, and how deep the calls nest.
#include "pool/queue/connection_budget.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pool/directory/directory.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using test::FakeEnvironment;
using test::origin_named;

// Runs on a stack as small as that of the program's own threads.
void on_a_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{256} * 1024);
  pthread_t thread{};
  const auto run = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

class UnderTheBudget : public testing::Test {
 protected:
  ~UnderTheBudget() override { EXPECT_EQ(world.wrong, ""); }
  void budget(std::uint32_t connections) {
    limits.max_connections = connections;
    directory_ = std::make_unique<Directory>(limits, world, 2);
  }
  Destination& at(const std::string& host, const Limits& own) {
    Result<Destination*> found = directory_->at(origin_named(host), own, world.now);
    EXPECT_TRUE(found);
    return **found;
  }
  static Limits sized(std::uint32_t size) {
    Limits own;
    own.size = size;
    own.max_waiting = 100'000;
    return own;
  }
  TestBorrower& borrower_on() { return borrowers_.emplace_back(world, LoopId{0}); }
  void run_until_idle() {
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
  }
  // `count` leased connections of `destination`.
  std::vector<TestBorrower*> leased(Destination& destination, unsigned count) {
    std::vector<TestBorrower*> all;
    for (unsigned n = 0; n < count; ++n) all.push_back(&wishing(destination));
    run_until_idle();
    for (TestBorrower* one : all) EXPECT_EQ(one->state, State::leased);
    return all;
  }
  TestBorrower& wishing(Destination& destination) {
    TestBorrower& one = borrower_on();
    one.borrow(destination);
    return one;
  }
  static void give_back(const std::vector<TestBorrower*>& all) {
    for (TestBorrower* one : all) one->release();
  }
  // Each borrower with a connection releases it and asks again; returns how many did.
  unsigned hand_off(std::deque<TestBorrower>& busy, Destination& destination) {
    unsigned count = 0;
    for (TestBorrower& one : busy) {
      if (one.state != State::leased) continue;
      one.release();
      one.borrow(destination);
      ++count;
    }
    world.deliver_all();
    return count;
  }
  void TearDown() override {
    for (int rounds = 0; rounds < 1000; ++rounds) {
      run_until_idle();
      bool more = false;
      for (TestBorrower& one : borrowers_) {
        if (one.state != State::leased) continue;
        one.release();
        more = true;
      }
      if (!more) break;
    }
    for (TestBorrower& one : borrowers_) EXPECT_NE(one.state, State::waiting) << "forgotten";
    EXPECT_EQ(directory_->connections(), world.live.size());
  }

  FakeEnvironment world{2};
  DirectoryLimits limits;
  std::deque<TestBorrower> borrowers_;
  std::unique_ptr<Directory> directory_;
};

TEST_F(UnderTheBudget, TwoThousandWaitersAreServedFromAnothersIdleConnectionsOnASmallStack) {
  constexpr unsigned kMany = 2000;
  budget(kMany + 1);
  Destination& idle = at("idle", sized(kMany));
  give_back(leased(idle, kMany));
  Destination& wanting = at("wanting", sized(kMany + 1));
  leased(wanting, 1);  // it is known to be reachable
  wanting.pause(world.now);
  for (unsigned n = 0; n < kMany; ++n) wishing(wanting);
  on_a_small_stack([&] { wanting.resume(world.now); });
  EXPECT_EQ(world.dials.size(), kMany);
  EXPECT_EQ(directory_->connections(), kMany + 1);
}

TEST_F(UnderTheBudget, TwoThousandWaitersOfAnOriginWhoseStreamsAreUnknownAreServedOnASmallStack) {
  constexpr unsigned kMany = 2000;
  budget(kMany);
  Destination& idle = at("idle", sized(kMany));
  give_back(leased(idle, kMany));
  Limits unknown = sized(kMany);
  unknown.expected_streams = 0;
  Destination& wanting = at("wanting", unknown);
  for (unsigned n = 0; n < kMany; ++n) wishing(wanting);
  ASSERT_FALSE(world.dials.empty());
  on_a_small_stack([&] { world.dialed(); });
  EXPECT_EQ(world.dials.size(), kMany - 1);
}

TEST_F(UnderTheBudget, AnOriginThatKeepsHandingOnDoesNotStarveAnother) {
  budget(2);
  Destination& busy = at("busy", sized(2));
  Destination& other = at("other", sized(2));
  std::deque<TestBorrower> five;
  for (int n = 0; n < 5; ++n) five.emplace_back(world, LoopId{0}).borrow(busy);
  run_until_idle();
  TestBorrower& starved = wishing(other);
  ASSERT_EQ(starved.state, State::waiting);
  unsigned hand_offs = 0;
  for (int rounds = 0; rounds < 1000 && starved.state == State::waiting; ++rounds) {
    hand_offs += hand_off(five, busy);
    run_until_idle();
  }
  EXPECT_EQ(starved.state, State::leased);
  EXPECT_LE(hand_offs, 100U);
  EXPECT_EQ(world.most, 2U);
  for (int rounds = 0; rounds < 10; ++rounds) {
    starved.release();
    for (TestBorrower& one : five) {
      if (one.state == State::leased) one.release();
    }
    run_until_idle();
    if (starved.state != State::leased) break;
  }
  for (int rounds = 0; rounds < 100; ++rounds) {
    for (TestBorrower& one : five) {
      if (one.state == State::leased) one.release();
    }
    run_until_idle();
  }
  for (TestBorrower& one : five) EXPECT_EQ(one.state, State::idle);
}

TEST_F(UnderTheBudget, ASessionThatIsNeverIdleDoesNotStarveAnother) {
  budget(1);
  Limits own = sized(2);
  own.expected_streams = 10;
  Destination& busy = at("busy", own);
  Destination& other = at("other", sized(1));
  world.next_streams = 10;
  TestBorrower& one = wishing(busy);
  run_until_idle();
  world.next_streams = 0;
  TestBorrower& two = wishing(busy);
  ASSERT_EQ(one.state, State::leased);
  ASSERT_EQ(two.state, State::leased);
  TestBorrower& starved = wishing(other);
  unsigned streams = 0;
  for (; streams < 200 && starved.state == State::waiting; ++streams) {
    TestBorrower& next = streams % 2 == 0 ? one : two;
    if (next.state == State::leased) next.release();
    if (next.state == State::idle) next.borrow(busy);
    world.deliver_all();
    for (std::size_t n = 0; n < world.dials.size(); ++n) world.dialed(n);
    world.deliver_all();
  }
  EXPECT_EQ(starved.state, State::leased);
  EXPECT_LE(streams, 100U);
  starved.release();
}

// A session of an origin that lowers its stream limit to 0 and keeps it there occupies its slot uselessly.
TEST_F(UnderTheBudget, AnIdleSessionThatTakesNobodyMakesRoomForAStarvedOrigin) {
  budget(1);
  Limits own = sized(1);
  own.expected_streams = 5;
  Destination& holder = at("holder", own);
  world.next_streams = 5;
  TestBorrower& first = *leased(holder, 1).front();
  FakeConnection& session = first.wire();
  first.release();
  world.next_streams = 0;
  world.set_streams(holder, session, 0);
  TestBorrower& starved = wishing(at("other", sized(1)));
  world.deliver_all();
  run_until_idle();
  EXPECT_EQ(starved.state, State::leased);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(UnderTheBudget, ASessionThatBecomesIdleTakingNobodyMakesRoomForAStarvedOrigin) {
  budget(1);
  Limits own = sized(1);
  own.expected_streams = 5;
  Destination& holder = at("holder", own);
  world.next_streams = 5;
  TestBorrower& first = *leased(holder, 1).front();
  world.next_streams = 0;
  world.set_streams(holder, first.wire(), 0);
  TestBorrower& starved = wishing(at("other", sized(1)));
  run_until_idle();
  ASSERT_EQ(starved.state, State::waiting);
  first.release();
  world.deliver_all();
  run_until_idle();
  EXPECT_EQ(starved.state, State::leased);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(UnderTheBudget, CountsTheOriginsThatWaitForASlot) {
  budget(1);
  TestBorrower& holder = *leased(at("holder", sized(1)), 1).front();
  EXPECT_EQ(directory_->starved(), 0U);
  for (const char* host : {"first", "second"}) wishing(at(host, sized(1)));
  EXPECT_EQ(directory_->starved(), 2U);
  holder.release();
  run_until_idle();
  EXPECT_EQ(directory_->starved(), 1U);
}

TEST_F(UnderTheBudget, ClosesOneIdleConnectionWhereTheSystemIsShortAndSparesWhatWasUsedOfLate) {
  budget(10);
  Destination &old = at("old", sized(2)), &recent = at("recent", sized(2));
  for (Destination* destination : {&recent, &old}) {
    for (TestBorrower* one : leased(*destination, 2)) one->release();
  }
  EXPECT_TRUE(directory_->close_one(world.now));  // the cursor has passed both
  world.now += std::chrono::seconds(1);
  leased(recent, 1).front()->release();
  while (old.has_idle()) {
    ASSERT_TRUE(directory_->close_one(world.now));
    ASSERT_TRUE(recent.has_idle());
  }
  while (recent.has_idle()) ASSERT_TRUE(directory_->close_one(world.now));
  EXPECT_FALSE(directory_->close_one(world.now)) << "nothing is idle";
  EXPECT_EQ(directory_->connections(), 0U);
  leased(recent, 1).front()->release();
  EXPECT_TRUE(directory_->close_one(world.now)) << "it offers again";
}

TEST_F(UnderTheBudget, StarvedOriginsAreServedInTheOrderInWhichTheyCame) {
  budget(1);
  TestBorrower& holder = *leased(at("holder", sized(1)), 1).front();
  std::vector<TestBorrower*> line;
  for (const char* host : {"first", "second", "third"}) line.push_back(&wishing(at(host, sized(1))));
  TestBorrower* last = &holder;
  for (TestBorrower* next : line) {
    last->discard(CloseCause::error);
    run_until_idle();
    ASSERT_EQ(next->state, State::leased);
    last = next;
  }
}

TEST_F(UnderTheBudget, ASlotThatComesFreeIsNotTakenPastTheStarved) {
  budget(1);
  Destination& busy = at("busy", sized(1));
  TestBorrower& holder = *leased(busy, 1).front();
  TestBorrower& starved = wishing(at("other", sized(1)));
  TestBorrower& own = wishing(busy);
  holder.discard(CloseCause::error);
  run_until_idle();
  EXPECT_EQ(starved.state, State::leased);
  EXPECT_EQ(own.state, State::waiting);
  starved.release();
  run_until_idle();
  EXPECT_EQ(own.state, State::leased);
}

TEST_F(UnderTheBudget, TwoOriginsThatBothLackSlotsDoNotExchangeThemForEver) {
  budget(4);
  Destination& one = at("one", sized(4));
  Destination& two = at("two", sized(4));
  std::deque<TestBorrower> of_one, of_two;
  for (int n = 0; n < 8; ++n) of_one.emplace_back(world, LoopId{0}).borrow(one);
  run_until_idle();
  for (int n = 0; n < 8; ++n) of_two.emplace_back(world, LoopId{0}).borrow(two);
  for (int rounds = 0; rounds < 500; ++rounds) {
    hand_off(of_one, one);
    hand_off(of_two, two);
    run_until_idle();
  }
  EXPECT_EQ(one.snapshot(world.now).alive(), 2U);
  EXPECT_EQ(two.snapshot(world.now).alive(), 2U);
  EXPECT_LE(world.closed.size(), 4U) << "each half, and then nothing moves";
  for (int rounds = 0; rounds < 100; ++rounds) {
    for (std::deque<TestBorrower>* all : {&of_one, &of_two}) {
      for (TestBorrower& borrower : *all) {
        if (borrower.state == State::leased) borrower.release();
      }
    }
    run_until_idle();
  }
}

TEST_F(UnderTheBudget, WhoeverNoLongerWaitsCostsNobodyAConnection) {
  budget(1);
  Destination& busy = at("busy", sized(1));
  std::deque<TestBorrower> two;
  for (int n = 0; n < 2; ++n) two.emplace_back(world, LoopId{0}).borrow(busy);
  run_until_idle();
  wishing(at("other", sized(1))).cancel();
  for (int rounds = 0; rounds < 200; ++rounds) hand_off(two, busy);
  EXPECT_TRUE(world.closed.empty());
  for (int rounds = 0; rounds < 3; ++rounds) {
    for (TestBorrower& one : two) {
      if (one.state == State::leased) one.release();
    }
    world.deliver_all();
  }
}

// The waiters leave while the actions that were decided for them are performed.
class LeavingWorld final : public FakeEnvironment {
 public:
  LeavingWorld() : FakeEnvironment(1) {}
  void dial(Destination& destination, Reservation reservation) override {
    FakeEnvironment::dial(destination, std::move(reservation));
    for (TestBorrower* one : std::exchange(leaving, {})) one->cancel();
  }
  std::vector<TestBorrower*> leaving;
};

TEST(AStarvedDestination, CostsNobodyASlotWhenItsWaitersLeaveAtThatMoment) {
  LeavingWorld world;
  Directory directory({8, 1}, world, 1);
  Limits limits;
  limits.size = 2;
  const Result<Destination*> found = directory.at(origin_named("left"), limits, world.now);
  ASSERT_TRUE(found);
  Destination& destination = **found;
  destination.pause(world.now);
  TestBorrower one(world, 0), two(world, 0);
  ASSERT_EQ(one.borrow(destination), State::waiting);
  ASSERT_EQ(two.borrow(destination), State::waiting);
  world.leaving = {&one, &two};
  destination.resume(world.now);
  EXPECT_TRUE(world.leaving.empty()) << "there was a slot for one of them";
  EXPECT_EQ(directory.starved(), 0U);
  world.deliver_all();
  EXPECT_EQ(world.recalled, 0U);
  while (!world.dials.empty()) world.dialed();
  directory.stop(world.now);
  EXPECT_EQ(world.wrong, "");
}

TEST_F(UnderTheBudget, AWaiterForHttp11IsServedWhereBusySessionsUseUpTheTotal) {
  budget(2);
  Limits own = sized(8);
  own.expected_streams = 0;
  Destination& mixed = at("mixed", own);
  world.next_streams = 2;
  std::deque<TestBorrower> busy;
  for (int n = 0; n < 4; ++n) {
    busy.emplace_back(world, LoopId{0}).borrow(mixed);
    run_until_idle();
  }
  ASSERT_EQ(world.live.size(), 2U);
  BorrowRequest want;
  want.kind = ProtocolMask::h1_only;
  TestBorrower& plain = borrower_on();
  ASSERT_EQ(plain.borrow(mixed, want), State::waiting);
  for (int rounds = 0; rounds < 100 && plain.state == State::waiting; ++rounds) {
    hand_off(busy, mixed);
    run_until_idle();
  }
  EXPECT_EQ(plain.state, State::leased);
  if (plain.state == State::leased) plain.release();
  for (int rounds = 0; rounds < 100; ++rounds) {
    for (TestBorrower& one : busy) {
      if (one.state == State::leased) one.release();
    }
    run_until_idle();
  }
  for (TestBorrower& one : busy) EXPECT_EQ(one.state, State::idle);
}

TEST_F(UnderTheBudget, AnIdleConnectionOfAnOriginThatWasUsedSinceIsSpared) {
  budget(2);
  Destination& often = at("often", sized(1));
  Destination& once = at("once", sized(1));
  give_back(leased(often, 1));
  give_back(leased(once, 1));
  world.now += seconds(1);
  give_back(leased(often, 1));
  leased(at("new", sized(1)), 1);
  EXPECT_TRUE(often.has_idle());
  EXPECT_FALSE(once.has_idle());
}

TEST_F(UnderTheBudget, TheLeastRecentlyUsedOriginGivesItsConnectionWhateverItsEarlierUse) {
  budget(3);
  Destination &twice = at("twice", sized(1)), &once = at("once", sized(1)), &late = at("late", sized(1));
  give_back(leased(twice, 1));
  world.now += seconds(1);
  give_back(leased(twice, 1));
  world.now += seconds(1);
  give_back(leased(once, 1));
  world.now += seconds(1);
  give_back(leased(late, 1));
  leased(at("first", sized(1)), 1);
  EXPECT_FALSE(twice.has_idle());
  EXPECT_TRUE(once.has_idle());
  leased(at("second", sized(1)), 1);
  EXPECT_FALSE(once.has_idle());
  EXPECT_TRUE(late.has_idle());
}

// ---- the budget alone ----

struct Pretended final : BudgetWaiter {
  void on_slot(Instant) override { ++slots_offered; }
  bool give_slot(Instant) override {
    ++asked;
    return false;
  }
  Instant last_use() const override { return {}; }
  std::uint32_t slots() const override { return 1; }
  int slots_offered = 0, asked = 0;
};

struct Donor final : BudgetWaiter {
  void on_slot(Instant) override {}
  bool give_slot(Instant) override { return ++given != 0; }
  Instant last_use() const override { return used; }
  std::uint32_t slots() const override { return 1; }
  Instant used{};
  unsigned given = 0;
};

TEST(AConnectionBudget, ComparesADifferentPartOfManyOffersEachTime) {
  ConnectionBudget budget(1);
  std::deque<Donor> all(4 * ConnectionBudget::kCompared);
  for (Donor& one : all) {
    one.used = Instant(seconds(&one == &all.front() || &one == &all.back() ? 1 : 2));
    budget.offer(one);
  }
  for (int evictions = 0; evictions < 4; ++evictions) EXPECT_TRUE(budget.free_one({}));
  EXPECT_EQ(all.front().given, 1U);
  EXPECT_EQ(all.back().given, 1U);
  for (Donor& one : all) budget.forget(one);
}

TEST(AConnectionBudget, AsksEachDestinationThatHasNothingToGiveOnce) {
  ConnectionBudget budget(1);
  std::deque<Pretended> all(10'000);
  Pretended holder, starved;
  ASSERT_TRUE(budget.acquire(holder));
  for (Pretended& one : all) budget.offer(one);
  ASSERT_FALSE(budget.acquire(starved));
  budget.register_starved(starved);
  for (int events = 0; events < 100; ++events) budget.release_for_starved({});
  for (Pretended& one : all) EXPECT_LE(one.asked, 2);
  budget.put_back();
  budget.release_for_starved({});
  EXPECT_EQ(starved.slots_offered, 1);
  EXPECT_EQ(budget.taken(), 0U) << "a slot that nobody used is free again";
  budget.forget(starved);
}

}  // namespace
}  // namespace carpool::pool
