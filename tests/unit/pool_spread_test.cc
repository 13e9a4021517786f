// Unit tests of the spreading over several addresses: which one gets the next request, and when a connection is opened
// or given up for it.
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kSpreadStart{std::chrono::hours(1)};
constexpr Duration kSlowStart = seconds(10);

class TwoAddresses : public testing::Test {
 protected:
  // `count` requests, one after the other; returns how many went to one_.
  int requests(int count, Instant now = kSpreadStart + std::chrono::hours(1)) {
    int first = 0;
    for (int n = 0; n < count; ++n) {
      drawn_ = next_in_sequence(drawn_);
      Endpoint& chosen = n % 2 == 0 ? Endpoint::choose(one_, other_, kSlowStart, now, drawn_ >> 16)
                                    : Endpoint::choose(other_, one_, kSlowStart, now, drawn_ >> 16);
      chosen.lent();
      first += &chosen == &one_ ? 1 : 0;
      chosen.returned();
    }
    return first;
  }
  static void respond(Endpoint& address, Duration took) {
    for (int n = 0; n < 500; ++n) address.answered(took);
  }
  Endpoint one_, other_;
  std::uint32_t drawn_ = 1;
};

TEST_F(TwoAddresses, ShareRequestsEvenly) {
  EXPECT_EQ(requests(1000), 500);
  respond(one_, milliseconds(19));
  respond(other_, milliseconds(10));
  EXPECT_EQ(requests(1000), 500) << "less than twice as slow is no difference";
  respond(one_, milliseconds(5));
  respond(other_, std::chrono::microseconds(200));
  EXPECT_EQ(requests(1000), 500) << "nor are a few milliseconds";
}

TEST_F(TwoAddresses, ServeAtTheOneWithLessThanHalfOfTheRequestsInProgress) {
  for (int n = 0; n < 3; ++n) one_.lent();
  other_.lent();
  for (int n = 0; n < 9; ++n) other_.passed_over();
  EXPECT_EQ(&Endpoint::choose(one_, other_, kSlowStart, kSpreadStart, 0), &other_);
  EXPECT_EQ(&Endpoint::choose(other_, one_, kSlowStart, kSpreadStart, 0), &other_);
  one_.returned();
  EXPECT_EQ(&Endpoint::choose(one_, other_, kSlowStart, kSpreadStart, 0), &one_) << "twice as many are chance";
  EXPECT_EQ(&Endpoint::choose(other_, one_, kSlowStart, kSpreadStart, 0), &one_);
  other_.returned();
  EXPECT_EQ(&Endpoint::choose(one_, other_, kSlowStart, kSpreadStart, 0), &other_) << "none is fewer than any";
}

TEST_F(TwoAddresses, GiveTheTimesSlowerOneTheSmallerShare) {
  respond(one_, milliseconds(100));
  respond(other_, milliseconds(10));
  EXPECT_NEAR(requests(10000), 1250, 200) << "a quarter of its turns";
  respond(one_, seconds(100));
  EXPECT_NEAR(requests(10000), 10000 / 32, 100) << "and some always: it may have recovered";
  respond(one_, milliseconds(10));
  EXPECT_NEAR(requests(1000), 500, 30) << "then it gets its share, and nothing that it missed";
}

TEST_F(TwoAddresses, LetTheShareOfANewOneGrow) {
  one_.begin(kSpreadStart);
  EXPECT_NEAR(requests(10000, kSpreadStart), 10000 / 32, 100);
  EXPECT_NEAR(requests(10000, kSpreadStart + kSlowStart / 2), 2500, 200);
  EXPECT_NEAR(requests(1000, kSpreadStart + kSlowStart), 500, 30);
}

TEST_F(TwoAddresses, DoNotPayBackMoreThanAFewTurns) {
  for (int n = 0; n < 100000; ++n) other_.passed_over();
  EXPECT_LE(requests(500), 252);
}

TEST_F(TwoAddresses, PayBackUnderLoadWhatOneMissedInAMoment) {
  const Instant loaded = kSpreadStart + milliseconds(100), later = loaded + milliseconds(100);
  requests(2, kSpreadStart);
  for (int n = 0; n < 1000; ++n) other_.lent();
  for (int n = 0; n < 1000; ++n) other_.returned();
  EXPECT_EQ(requests(1000, loaded), 750) << "half of what the other one served in twice that time";
  for (int n = 0; n < 1000; ++n) other_.passed_over();
  EXPECT_LE(requests(500, later + seconds(10)), 252) << "but not after the load";
}

TEST_F(TwoAddresses, DoNotJudgeByOneSlowResponse) {
  respond(one_, milliseconds(10));
  respond(other_, milliseconds(10));
  one_.answered(seconds(60));
  EXPECT_LT(one_.response_time(), milliseconds(12));
  EXPECT_EQ(requests(1000), 500);
}

TEST_F(TwoAddresses, DoNotJudgeByTheFirstResponse) {
  respond(other_, milliseconds(10));
  one_.answered(seconds(1));
  EXPECT_EQ(one_.response_time(), seconds(1)) << "it is all that is known";
  EXPECT_EQ(requests(1000), 500);
  one_.answered(milliseconds(10));
  EXPECT_EQ(one_.response_time(), milliseconds(10));
  Endpoint slow;
  slow.answered(seconds(2));
  slow.answered(seconds(1));
  EXPECT_EQ(slow.response_time(), seconds(1));
  EXPECT_EQ(slow.share_against(other_, kSlowStart, kSpreadStart + kSlowStart), Endpoint::kLeast) << "two are enough";
}

TEST(TheAddressesOfAnOrigin, AreDrawnInAllPairs) {
  Endpoints all;
  EXPECT_EQ(all.draw(7).one, nullptr) << "there is none";
  std::vector<Endpoint> five(5);
  std::vector<Endpoint*> reached;
  for (Endpoint& one : five) reached.push_back(&one);
  all.reach(reached);
  std::map<std::pair<Endpoint*, Endpoint*>, int> pairs;
  std::uint32_t drawn = 1;
  for (int n = 0; n < 2000; ++n) {
    drawn = next_in_sequence(drawn);
    const Endpoints::Pair pair = all.draw(drawn);
    ASSERT_NE(pair.one, pair.other);
    ++pairs[{pair.one, pair.other}];
  }
  EXPECT_EQ(pairs.size(), 20U);
  for (const auto& [pair, times] : pairs) EXPECT_NEAR(times, 100, 40);
  all.reach({reached.data(), 1});
  EXPECT_EQ(all.draw(drawn).one, reached[0]);
  EXPECT_EQ(all.draw(drawn).other, nullptr);
}

class ThreeAddresses : public test::PoolScene {
 protected:
  ThreeAddresses() : PoolScene(6) {}
  void spread(std::size_t count = 3) { world.addresses.have(destination(), count); }
  // One request and its effects.
  void serve() {
    TestBorrower& one = leased();
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
    one.release();
    rest(milliseconds(10));
  }
  std::vector<std::uint64_t> served(std::size_t count = 3) {
    std::vector<std::uint64_t> all;
    for (std::size_t n = 0; n < count; ++n) all.push_back(world.addresses.at(n).total_leases());
    return all;
  }
  void expect_even(int requests, std::size_t count = 3) {
    const std::vector<std::uint64_t> before = served(count);
    for (int n = 0; n < requests; ++n) serve();
    const std::vector<std::uint64_t> after = served(count);
    for (std::size_t n = 0; n < count; ++n) {
      EXPECT_NEAR(static_cast<double>(after[n] - before[n]), static_cast<double>(requests) / static_cast<double>(count),
                  8)
          << n;
    }
  }
};

TEST_F(ThreeAddresses, GetAConnectionEachAndAnEvenShareOfRequestsThatFollowEachOther) {
  spread();
  for (int n = 0; n < 3; ++n) serve();
  EXPECT_EQ(snapshot().alive(), 3U);
  EXPECT_EQ(world.opened, (std::vector{OpenCause::first, OpenCause::spread, OpenCause::spread}));
  expect_even(300);
  EXPECT_EQ(snapshot().alive(), 3U) << "and no more than one each";
}

TEST_F(ThreeAddresses, KeepAConnectionEachHoweverLowTheLoad) {
  limits.idle_timeout = seconds(10);
  spread();
  for (int n = 0; n < 250; ++n) {
    serve();
    rest(milliseconds(90));
    world.on(0);
    destination().sweep(world.now);
  }
  EXPECT_EQ(snapshot().alive(), 3U);
  EXPECT_EQ(snapshot().closed_total(), 0U);
}

TEST_F(ThreeAddresses, GetAnEvenShareHoweverUnequalTheirConnectionsAre) {
  limits.size = 80;
  spread(1);
  std::vector<TestBorrower*> all;
  for (int n = 0; n < 78; ++n) all.push_back(&leased());
  for (TestBorrower* one : all) one->release();
  spread(3);
  serve();
  serve();
  for (std::size_t n = 1; n < 3; ++n) ASSERT_EQ(world.addresses.open(n), 1U);
  expect_even(300);
  EXPECT_EQ(world.addresses.open(0), 78U);
}

TEST_F(ThreeAddresses, GetAnEvenShareSoonAfterTheyHadUnequalLoads) {
  limits.expected_streams = 100;
  world.next_streams = 100;
  spread();
  for (int n = 0; n < 9; ++n) serve();
  for (int n = 0; n < 1000; ++n) world.addresses.at(1).passed_over();
  expect_even(300);
}

TEST_F(ThreeAddresses, GetASessionEachAndAnEvenShareOfTheStreams) {
  limits.expected_streams = 100;
  world.next_streams = 100;
  spread();
  expect_even(300);
  EXPECT_EQ(snapshot().alive(), 3U);
  // After an idle time, also a request that must not be retried.
  rest(std::chrono::minutes(2));
  for (int n = 0; n < 90; ++n) {
    TestBorrower& post = borrower_on();
    ASSERT_EQ(post.borrow(destination(), {.max_idle = seconds(5)}), State::leased);
    EXPECT_EQ(world.addresses.leases(), 1U);
    post.release();
  }
  for (const std::uint64_t count : served()) EXPECT_NEAR(static_cast<double>(count), 130, 8);
}

TEST_F(ThreeAddresses, ShareWhatIsInProgress) {
  limits.expected_streams = 100;
  world.next_streams = 100;
  spread();
  for (int n = 0; n < 9; ++n) serve();
  for (int n = 0; n < 90; ++n) leased();
  for (std::size_t n = 0; n < 3; ++n) EXPECT_NEAR(world.addresses.at(n).leases(), 30, 1);
}

TEST_F(ThreeAddresses, OpenNothingForRequestsThatAreTooRareToUseIt) {
  limits.idle_timeout = seconds(60);
  spread();
  for (int n = 0; n < 10; ++n) {
    serve();
    rest(seconds(20));
  }
  EXPECT_EQ(snapshot().alive(), 2U) << "the first request cannot know";
}

TEST_F(ThreeAddresses, GetOneDialAtATime) {
  spread();
  TestBorrower& first = leased();
  EXPECT_EQ(world.dials.size(), 1U);
  first.release();
  TestBorrower& next = leased();
  EXPECT_EQ(world.dials.size(), 1U) << "it has not ended";
  world.dialed();
  next.release();
  leased();
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(ThreeAddresses, GiveANewOneAConnectionAtOnce) {
  spread(2);
  for (int n = 0; n < 6; ++n) serve();
  spread(3);
  serve();
  serve();
  EXPECT_EQ(world.addresses.open(2), 1U);
  expect_even(300);
}

TEST_F(ThreeAddresses, MakeRoomForANewOneWhereThePoolIsFull) {
  spread(2);
  std::vector<TestBorrower*> all;
  for (int n = 0; n < 6; ++n) all.push_back(&leased());
  for (TestBorrower* one : all) one->release();
  EXPECT_EQ(world.addresses.open(0), 3U);
  spread(3);
  EXPECT_FALSE(destination().endpoints().needs_rebalance());
  serve();
  EXPECT_TRUE(destination().endpoints().needs_rebalance());
  for (FakeConnection* wire : world.live) {
    if (!world.addresses.needs_connection_of(wire->leads_to)) continue;
    world.on(*wire->watched_on);
    ASSERT_EQ(claim_event(wire->index, wire->generation, 0).kind, EventClaim::Kind::inspecting);
    destination().endpoints().rebalance_done();
    close_inspected(wire->index, CloseCause::rebalanced, world.now);
    break;
  }
  serve();
  EXPECT_EQ(world.addresses.open(2), 1U);
  EXPECT_EQ(world.closed, std::vector{CloseCause::rebalanced});
  EXPECT_EQ(world.opened.back(), OpenCause::spread);
  EXPECT_EQ(snapshot().alive(), 6U);
}

TEST_F(ThreeAddresses, CountNoLeaseOfAGrantThatNobodyTook) {
  limits.size = 1;
  spread(2);
  TestBorrower& holder = leased();
  TestBorrower& waiter = waiting();
  holder.release();
  EXPECT_EQ(world.addresses.leases(), 1U) << "a grant counts";
  waiter.cancel();
  world.deliver_all();
  EXPECT_EQ(world.addresses.leases(), 0U);
}

TEST_F(ThreeAddresses, LeaveTheChoiceToTheStrategyIfThereIsOnlyOne) {
  limits.strategy = Strategy::first;
  spread(1);
  TestBorrower& one = leased();
  TestBorrower& other = leased();
  FakeConnection* last = &other.wire();
  one.release();
  other.release();
  for (int n = 0; n < 9; ++n) {
    TestBorrower& next = leased();
    EXPECT_EQ(&next.wire(), last);
    next.release();
  }
}

}  // namespace
}  // namespace carpool::pool
