// Unit tests of AddressSet: which of an origin's addresses is dialed, skipped or ejected.
#include "proxy/net/address_set.h"

#include <gtest/gtest.h>

#include <map>

namespace carpool::proxy::net {
namespace {

std::vector<Address> some(std::initializer_list<const char*> texts) {
  std::vector<Address> all;
  for (const char* text : texts) all.push_back(*Address::parse(text));
  return all;
}

struct ABook : ::testing::Test {
  void fail(const Address& address, std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) book.failed(address, now);
  }
  // The distribution of dials when each becomes a connection that stays open.
  std::map<std::string, int> dial(const std::vector<Address>& addresses, int times) {
    std::map<std::string, int> first;
    for (int i = 0; i < times; ++i) {
      const Address chosen = book.order(addresses, now).front();
      ++first[chosen.text()];
      book.opened(chosen);
      book.dial_ended(chosen, true, now);
    }
    return first;
  }
  AddressSet book;
  const AddressRules rules{};
  Instant now{std::chrono::seconds(1000)};
  const std::vector<Address> three = some({"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"});
};

TEST_F(ABook, SpreadsConnectionsEvenly) {
  book.learn(three, now);
  for (const auto& [address, count] : dial(three, 300)) EXPECT_NEAR(count, 100, 5) << address;
}

TEST_F(ABook, FillsUpAnAddressThatIsNew) {
  const std::vector<Address> two = some({"10.0.0.1:80", "10.0.0.2:80"});
  book.learn(two, now);
  dial(two, 4000);
  book.learn(three, now);
  // Two thirds of the draws select it, plus or minus 18; a random choice would select it in a third.
  EXPECT_GE(dial(three, 1500)["10.0.0.3:80"], 850) << "of two drawn it wins whenever it is one of them";
}

TEST_F(ABook, KeepsEveryAddressInTheList) {
  book.learn(three, now);
  for (int i = 0; i < 20; ++i) {
    std::vector<Address> ordered = book.order(three, now);
    ASSERT_EQ(ordered.size(), 3U);
    for (const Address& address : three) EXPECT_NE(std::find(ordered.begin(), ordered.end(), address), ordered.end());
  }
}

TEST_F(ABook, StaysWithTheFamilyThatTheSystemPrefers) {
  const std::vector<Address> mixed = some({"[fd00::1]:80", "10.0.0.1:80", "[fd00::2]:80", "10.0.0.2:80"});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(book.order(mixed, now).front().family(), mixed.front().family());
}

TEST_F(ABook, LeavesOutAnAddressThatOnlyFails) {
  book.learn(three, now);
  fail(three[0], rules.eject_after);
  for (int i = 0; i < 50; ++i) {
    const std::vector<Address> ordered = book.order(three, now);
    EXPECT_NE(ordered.front(), three[0]);
    EXPECT_EQ(ordered.back(), three[0]) << "tried when the others fail, too";
  }
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::ejected);
  now += rules.eject_time;
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep) << "and comes back";
}

TEST_F(ABook, EjectsLongerEachTime) {
  book.learn(three, now);
  fail(three[0], rules.eject_after);
  now += rules.eject_time;
  fail(three[0], rules.eject_after);
  now += rules.eject_time;
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::ejected);
  now += rules.eject_time;
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep);
}

TEST_F(ABook, EjectsForNoLongerThanTheLongestTime) {
  book.learn(three, now);
  for (int times = 0; times < 100; ++times) {
    fail(three[0], rules.eject_after);
    ASSERT_EQ(book.judge(three[0], now), AddressSet::Verdict::ejected) << times;
    now += AddressSet::kMaxEjection;
    ASSERT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep) << times;
  }
}

TEST_F(ABook, ForgetsFailuresAtTheFirstSuccess) {
  book.learn(three, now);
  fail(three[0], rules.eject_after - 1);
  book.answered(three[0]);
  fail(three[0], rules.eject_after - 1);
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep);
}

TEST_F(ABook, NeverEjectsMoreThanHalf) {
  book.learn(three, now);
  for (const Address& address : three) fail(address, 3 * rules.eject_after);
  int ejected = 0;
  for (const AddressSet::Info& one : book.all(now)) ejected += one.ejected ? 1 : 0;
  EXPECT_EQ(ejected, 1);
  AddressSet alone;
  alone.learn(some({"10.0.0.9:80"}), now);
  for (int i = 0; i < 100; ++i) alone.failed(*Address::parse("10.0.0.9:80"), now);
  EXPECT_EQ(alone.judge(*Address::parse("10.0.0.9:80"), now), AddressSet::Verdict::keep);
}

TEST_F(ABook, RetiresConnectionsToAnAddressThatIsGoneOneByOne) {
  const std::vector<Address> two = some({"10.0.0.2:80", "10.0.0.3:80"});
  book.learn(three, now);
  for (int i = 0; i < 3; ++i) book.opened(three[0]);
  const std::uint64_t before = book.version();
  EXPECT_FALSE(book.learn(two, now)) << "one answer without it means little";
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep);
  EXPECT_EQ(book.version(), before);
  now += rules.gone_after;
  EXPECT_TRUE(book.learn(two, now));
  EXPECT_NE(book.version(), before);
  EXPECT_EQ(book.judge(three[1], now), AddressSet::Verdict::keep);
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::gone);
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep_for_now);
  now += rules.retire_every;
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::gone);
  EXPECT_TRUE(book.learn(three, now));
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep) << "it came back";
}

TEST_F(ABook, KeepsAddressesOfANameThatTellsOnlyAPartEachTime) {
  book.learn(three, now);
  for (int i = 0; i < 60; ++i) {
    book.learn({three[static_cast<std::size_t>(i) % 3]}, now);
    book.opened(three[0]);
    now += std::chrono::seconds(5);
    for (const Address& address : three) EXPECT_EQ(book.judge(address, now), AddressSet::Verdict::keep);
  }
}

TEST_F(ABook, BeginsAnewWithWhoeverWentWellForLong) {
  book.learn(three, now);
  for (int i = 0; i < 3; ++i) {
    fail(three[0], rules.eject_after);
    EXPECT_EQ(book.judge(three[0], now + rules.eject_time - Duration(1)), AddressSet::Verdict::ejected);
    EXPECT_EQ(book.judge(three[0], now + rules.eject_time), AddressSet::Verdict::keep);
    now += rules.eject_time + AddressSet::kMaxEjection;
  }
  EXPECT_EQ(book.ejections(), 3U);
}

TEST_F(ABook, EjectsNobodyWhereThatIsSwitchedOff) {
  AddressRules never;
  never.eject_after = 0;
  book.follow(never);
  book.learn(three, now);
  fail(three[0], 100);
  EXPECT_EQ(book.judge(three[0], now), AddressSet::Verdict::keep);
}

TEST_F(ABook, SaysWhetherConnectionsAreStillToGo) {
  book.learn(three, now);
  book.opened(three[0]);
  EXPECT_FALSE(book.has_retiring(now));
  fail(three[0], rules.eject_after);
  EXPECT_TRUE(book.has_retiring(now));
  EXPECT_FALSE(book.has_retiring(now + rules.eject_time));
  now += rules.gone_after;
  book.learn({three[1], three[2]}, now);
  EXPECT_TRUE(book.has_retiring(now));
  EXPECT_EQ(book.count(now).gone, 1U);
  book.closed(three[0]);
  EXPECT_FALSE(book.has_retiring(now));
}

TEST_F(ABook, KeepsTheNumberOfAddressesWithinItsBound) {
  std::vector<Address> many;
  for (int i = 0; i < 300; ++i)
    many.push_back(*Address::parse("10.1." + std::to_string(i / 200) + "." + std::to_string(i % 200) + ":80"));
  book.learn(many, now);
  EXPECT_EQ(book.order(many, now).size(), AddressSet::kMax);
  EXPECT_LE(book.all(now).size(), AddressSet::kMax);
}

TEST_F(ABook, RemembersNoAddressThatNobodyNeeds) {
  for (int i = 0; i < 200; ++i) {
    book.learn(some({("10.0.1." + std::to_string(i) + ":80").c_str()}), now);
    now += rules.gone_after;
  }
  EXPECT_LE(book.all(now).size(), 2U);
}

TEST_F(ABook, OfNothingOrdersNothing) {
  EXPECT_TRUE(book.order({}, now).empty());
}

// Tests of the endpoints that the pool sees, and of connections that are closed for others.
struct ABookOfAPool : ABook {
  using Balance = pool::Endpoints::Balance;
  ABookOfAPool() : ABook() { told.learn(three, now); }
  pool::Endpoint& open(const Address& address) {
    told.order({address}, now);
    pool::Endpoint& endpoint = told.opened(address);
    told.dial_ended(address, true, now);
    return endpoint;
  }
  pool::Endpoints endpoints;
  AddressSet told{&endpoints};
};

TEST_F(ABookOfAPool, SaysWhetherAnAddressLacksConnections) {
  EXPECT_EQ(endpoints.count(), 3U);
  EXPECT_EQ(endpoints.balance(), Balance::lacking);
  EXPECT_NE(&open(three[0]), &open(three[1]));
  EXPECT_EQ(endpoints.balance(), Balance::lacking);
  told.order({three[2]}, now);
  EXPECT_EQ(endpoints.balance(), Balance::even) << "a dial counts";
  told.dial_ended(three[2], true, now);
  told.opened(three[2]);
  open(three[0]);
  EXPECT_EQ(endpoints.balance(), Balance::even);
  open(three[0]);
  EXPECT_EQ(endpoints.balance(), Balance::uneven);
  told.closed(three[0]);
  EXPECT_EQ(endpoints.balance(), Balance::even);
}

TEST_F(ABookOfAPool, DialsAnAddressWithoutConnectionsFirst) {
  for (int i = 0; i < 20; ++i) {
    open(three[0]);
    open(three[2]);
  }
  EXPECT_EQ(told.order(three, now).front(), three[1]);
}

TEST_F(ABookOfAPool, WaitsWithAnAddressThatADialMissed) {
  open(three[0]);
  open(three[1]);
  told.order({three[2]}, now);
  told.dial_ended(three[2], false, now);
  EXPECT_EQ(endpoints.balance(), Balance::even);
  now += rules.eject_time;
  told.review(now);
  EXPECT_EQ(endpoints.balance(), Balance::lacking);
}

TEST_F(ABookOfAPool, CountsNoAddressThatIsEjectedOrGoneOrOfTheOtherFamily) {
  for (std::uint32_t i = 0; i < rules.eject_after; ++i) told.failed(three[0], now);
  EXPECT_EQ(endpoints.count(), 2U);
  now += rules.eject_time;
  told.review(now);
  EXPECT_EQ(endpoints.count(), 3U);
  std::vector<Address> mixed = three;
  mixed.push_back(*Address::parse("[fd00::1]:80"));
  told.learn(mixed, now);
  EXPECT_EQ(endpoints.count(), 3U);
  now += rules.gone_after;
  told.learn(some({"10.0.0.3:80"}), now);
  EXPECT_EQ(endpoints.count(), 1U);
  EXPECT_FALSE(endpoints.spreads());
}

TEST_F(ABookOfAPool, GivesThePlaceOfOneConnectionToAnAddressThatHasFewer) {
  for (int i = 0; i < 3; ++i) open(three[0]);
  open(three[1]);
  open(three[2]);
  EXPECT_FALSE(told.closes_for_rebalance(three[0], now)) << "nobody asked";
  endpoints.request_rebalance();
  EXPECT_TRUE(told.has_too_many(three[0]));
  EXPECT_FALSE(told.has_too_many(three[1]));
  EXPECT_FALSE(told.closes_for_rebalance(three[1], now));
  EXPECT_TRUE(told.closes_for_rebalance(three[0], now));
  EXPECT_FALSE(told.closes_for_rebalance(three[0], now)) << "one for each time that it was asked";
  endpoints.request_rebalance();
  EXPECT_FALSE(told.closes_for_rebalance(three[0], now)) << "and one in retire_every";
  now += rules.retire_every;
  EXPECT_TRUE(told.closes_for_rebalance(three[0], now));
}

TEST_F(ABookOfAPool, ForgetsARequestForAPlaceWhenNoAddressHasTooMany) {
  for (int i = 0; i < 3; ++i) open(three[0]);
  open(three[1]);
  open(three[2]);
  endpoints.request_rebalance();
  ASSERT_TRUE(endpoints.needs_rebalance());
  open(three[1]);
  open(three[2]);
  EXPECT_FALSE(endpoints.needs_rebalance());
  for (int i = 0; i < 2; ++i) open(three[0]);
  EXPECT_FALSE(told.closes_for_rebalance(three[0], now)) << "nobody asked since";
}

TEST_F(ABookOfAPool, LetsTheShareOfANewAddressGrow) {
  open(three[0]);
  std::vector<Address> four = three;
  four.push_back(*Address::parse("10.0.0.4:80"));
  told.learn(four, now);
  const auto share = [&](std::size_t n) { return told.all(now)[n].share; };
  EXPECT_EQ(share(0), 1);
  EXPECT_EQ(share(3), 1.0 / 16);
  now += rules.slow_start / 2;
  EXPECT_NEAR(share(3), 0.5, 0.01);
  now += rules.slow_start;
  EXPECT_EQ(share(3), 1);
}

TEST_F(ABookOfAPool, LetsTheShareOfAnAddressGrowThatIsBack) {
  const auto share = [this](Instant at) { return book.all(at)[0].share; };
  book.learn(three, now);
  EXPECT_EQ(share(now), 1);
  for (std::uint32_t i = 0; i < rules.eject_after; ++i) book.failed(three[0], now);
  now += rules.eject_time;
  EXPECT_NEAR(share(now + rules.slow_start / 2), 0.5, 0.01) << "it was ejected";
  EXPECT_EQ(share(now + rules.slow_start), 1);
  book.opened(three[0]);
  now += 10 * rules.gone_after;
  book.learn({three[1], three[2]}, now);
  ASSERT_TRUE(book.all(now)[0].gone);
  book.learn(three, now);
  EXPECT_NEAR(share(now + rules.slow_start / 2), 0.5, 0.01) << "no answer named it";
  EXPECT_EQ(share(now + rules.slow_start), 1);
}

TEST_F(ABookOfAPool, TellsNothingIfTheStrategyIsToChoose) {
  AddressRules none;
  none.balance = false;
  told.follow(none);
  EXPECT_FALSE(endpoints.spreads());
  EXPECT_EQ(endpoints.balance(), Balance::even);
}

}  // namespace
}  // namespace carpool::proxy::net
