// Unit tests of AddressSet: which of an origin's addresses is dialed, skipped or ejected.
#include "proxy/net/address_set.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <map>

namespace carpool::proxy::net {
namespace {

std::vector<Address> some(std::initializer_list<const char*> texts) {
  std::vector<Address> all;
  for (const char* text : texts) all.push_back(*Address::parse(text));
  return all;
}

struct AnAddressSet : ::testing::Test {
  void fail(const Address& address, std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) address_set.failed(address, now);
  }
  // The distribution of dials when each becomes a connection that stays open.
  std::map<std::string, int> dial(const std::vector<Address>& addresses, int times) {
    std::map<std::string, int> first;
    for (int i = 0; i < times; ++i) {
      const Address chosen = address_set.order(addresses, now).front();
      ++first[chosen.text()];
      address_set.opened(chosen);
      address_set.dial_ended(chosen, true, now);
    }
    return first;
  }
  AddressSet address_set;
  const AddressRules rules{};
  Instant now{std::chrono::seconds(1000)};
  const std::vector<Address> three = some({"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"});
};

TEST_F(AnAddressSet, SpreadsConnectionsEvenly) {
  address_set.learn(three, now);
  for (const auto& [address, count] : dial(three, 300)) EXPECT_NEAR(count, 100, 5) << address;
}

TEST_F(AnAddressSet, FillsUpAnAddressThatIsNew) {
  const std::vector<Address> two = some({"10.0.0.1:80", "10.0.0.2:80"});
  address_set.learn(two, now);
  dial(two, 4000);
  address_set.learn(three, now);
  // Two thirds of the draws select it, plus or minus 18; a random choice would select it in a third.
  EXPECT_GE(dial(three, 1500)["10.0.0.3:80"], 850) << "of two drawn it wins whenever it is one of them";
}

TEST_F(AnAddressSet, KeepsEveryAddressInTheList) {
  address_set.learn(three, now);
  for (int i = 0; i < 20; ++i) {
    std::vector<Address> ordered = address_set.order(three, now);
    ASSERT_EQ(ordered.size(), 3U);
    for (const Address& address : three) EXPECT_NE(std::find(ordered.begin(), ordered.end(), address), ordered.end());
  }
}

TEST_F(AnAddressSet, StaysWithTheFamilyThatTheSystemPrefers) {
  const std::vector<Address> mixed = some({"[fd00::1]:80", "10.0.0.1:80", "[fd00::2]:80", "10.0.0.2:80"});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(address_set.order(mixed, now).front().family(), mixed.front().family());
}

TEST_F(AnAddressSet, LeavesOutAnAddressThatOnlyFails) {
  address_set.learn(three, now);
  fail(three[0], rules.eject_after);
  for (int i = 0; i < 50; ++i) {
    const std::vector<Address> ordered = address_set.order(three, now);
    EXPECT_NE(ordered.front(), three[0]);
    EXPECT_EQ(ordered.back(), three[0]) << "tried when the others fail, too";
  }
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::ejected);
  now += rules.eject_time;
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep) << "and comes back";
}

TEST_F(AnAddressSet, EjectsLongerEachTime) {
  address_set.learn(three, now);
  fail(three[0], rules.eject_after);
  now += rules.eject_time;
  fail(three[0], rules.eject_after);
  now += rules.eject_time;
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::ejected);
  now += rules.eject_time;
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep);
}

TEST_F(AnAddressSet, EjectsForNoLongerThanTheLongestTime) {
  address_set.learn(three, now);
  for (int times = 0; times < 100; ++times) {
    fail(three[0], rules.eject_after);
    ASSERT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::ejected) << times;
    now += AddressSet::kMaxEjection;
    ASSERT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep) << times;
  }
}

TEST_F(AnAddressSet, ForgetsFailuresAtTheFirstSuccess) {
  address_set.learn(three, now);
  fail(three[0], rules.eject_after - 1);
  address_set.answered(three[0]);
  fail(three[0], rules.eject_after - 1);
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep);
}

TEST_F(AnAddressSet, NeverEjectsMoreThanHalf) {
  address_set.learn(three, now);
  for (const Address& address : three) fail(address, 3 * rules.eject_after);
  int ejected = 0;
  for (const AddressSet::Info& one : address_set.all(now)) ejected += one.ejected ? 1 : 0;
  EXPECT_EQ(ejected, 1);
  AddressSet alone;
  alone.learn(some({"10.0.0.9:80"}), now);
  for (int i = 0; i < 100; ++i) alone.failed(*Address::parse("10.0.0.9:80"), now);
  EXPECT_EQ(alone.verdict(*Address::parse("10.0.0.9:80"), now), AddressSet::Verdict::keep);
}

TEST_F(AnAddressSet, RetiresConnectionsToAnAddressThatIsGoneOneByOne) {
  const std::vector<Address> two = some({"10.0.0.2:80", "10.0.0.3:80"});
  address_set.learn(three, now);
  for (int i = 0; i < 3; ++i) address_set.opened(three[0]);
  const std::uint64_t before = address_set.version();
  EXPECT_FALSE(address_set.learn(two, now)) << "one answer without it means little";
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep);
  EXPECT_EQ(address_set.version(), before);
  now += rules.gone_after;
  EXPECT_TRUE(address_set.learn(two, now));
  EXPECT_NE(address_set.version(), before);
  EXPECT_EQ(address_set.verdict(three[1], now), AddressSet::Verdict::keep);
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::gone);
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep_for_now);
  now += rules.retire_every;
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::gone);
  EXPECT_TRUE(address_set.learn(three, now));
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep) << "it came back";
}

TEST_F(AnAddressSet, KeepsAddressesOfANameThatTellsOnlyAPartEachTime) {
  address_set.learn(three, now);
  for (int i = 0; i < 60; ++i) {
    address_set.learn({three[static_cast<std::size_t>(i) % 3]}, now);
    address_set.opened(three[0]);
    now += std::chrono::seconds(5);
    for (const Address& address : three) EXPECT_EQ(address_set.verdict(address, now), AddressSet::Verdict::keep);
  }
}

TEST_F(AnAddressSet, BeginsAnewWithWhoeverWentWellForLong) {
  address_set.learn(three, now);
  for (int i = 0; i < 3; ++i) {
    fail(three[0], rules.eject_after);
    EXPECT_EQ(address_set.verdict(three[0], now + rules.eject_time - Duration(1)), AddressSet::Verdict::ejected);
    EXPECT_EQ(address_set.verdict(three[0], now + rules.eject_time), AddressSet::Verdict::keep);
    now += rules.eject_time + AddressSet::kMaxEjection;
  }
  EXPECT_EQ(address_set.ejections(), 3U);
}

TEST_F(AnAddressSet, EjectsNobodyWhereThatIsSwitchedOff) {
  AddressRules never;
  never.eject_after = 0;
  address_set.follow(never);
  address_set.learn(three, now);
  fail(three[0], 100);
  EXPECT_EQ(address_set.verdict(three[0], now), AddressSet::Verdict::keep);
}

TEST_F(AnAddressSet, SaysWhetherConnectionsAreStillToGo) {
  address_set.learn(three, now);
  address_set.opened(three[0]);
  EXPECT_FALSE(address_set.has_retiring(now));
  fail(three[0], rules.eject_after);
  EXPECT_TRUE(address_set.has_retiring(now));
  EXPECT_FALSE(address_set.has_retiring(now + rules.eject_time));
  now += rules.gone_after;
  address_set.learn({three[1], three[2]}, now);
  EXPECT_TRUE(address_set.has_retiring(now));
  EXPECT_EQ(address_set.count(now).gone, 1U);
  address_set.closed(three[0]);
  EXPECT_FALSE(address_set.has_retiring(now));
}

TEST_F(AnAddressSet, KeepsTheNumberOfAddressesWithinItsBound) {
  std::vector<Address> many;
  for (int i = 0; i < 300; ++i)
    many.push_back(*Address::parse("10.1." + std::to_string(i / 200) + "." + std::to_string(i % 200) + ":80"));
  address_set.learn(many, now);
  EXPECT_EQ(address_set.order(many, now).size(), AddressSet::kMax);
  EXPECT_LE(address_set.all(now).size(), AddressSet::kMax);
}

TEST_F(AnAddressSet, UsesEachOfManyAddresses) {
  std::vector<Address> many;
  for (int i = 0; i < 100; ++i) many.push_back(*Address::parse("10.0.1." + std::to_string(i) + ":80"));
  address_set.learn(many, now);
  EXPECT_EQ(dial(many, 100).size(), 100U);
}

TEST_F(AnAddressSet, LeavesOutNoFamilyBecauseTheOtherHasManyAddresses) {
  std::vector<Address> mixed;
  for (int i = 0; i < 100; ++i) mixed.push_back(*Address::parse("[fd00::" + std::to_string(i) + "]:80"));
  mixed.push_back(three.front());
  address_set.learn(mixed, now);
  const std::vector<Address> ordered = address_set.order(mixed, now);
  EXPECT_NE(std::find(ordered.begin(), ordered.end(), three.front()), ordered.end());
}

TEST_F(AnAddressSet, DistinguishesTheInterfacesOfAnAddress) {
  sockaddr_in6 raw{};
  raw.sin6_family = AF_INET6;
  ASSERT_EQ(::inet_pton(AF_INET6, "fe80::1", &raw.sin6_addr), 1);
  std::vector<Address> two;
  for (raw.sin6_scope_id = 1; raw.sin6_scope_id <= 2; ++raw.sin6_scope_id)
    two.emplace_back(reinterpret_cast<const sockaddr*>(&raw), sizeof raw);
  address_set.learn(two, now);
  for (int i = 0; i < 2; ++i) fail(two[1], 1);
  const std::vector<AddressSet::Info> all = address_set.all(now);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].failures + all[1].failures, 2U);
  EXPECT_EQ(all[0].failures * all[1].failures, 0U);
}

TEST_F(AnAddressSet, RemembersNoAddressThatNobodyNeeds) {
  for (int i = 0; i < 200; ++i) {
    address_set.learn(some({("10.0.1." + std::to_string(i) + ":80").c_str()}), now);
    now += rules.gone_after;
  }
  EXPECT_LE(address_set.all(now).size(), 2U);
}

TEST_F(AnAddressSet, OfNothingOrdersNothing) {
  EXPECT_TRUE(address_set.order({}, now).empty());
}

// Tests of the endpoints that the pool sees, and of connections that are closed for others.
struct AnAddressSetOfAPool : AnAddressSet {
  using Balance = pool::Endpoints::Balance;
  AnAddressSetOfAPool() : AnAddressSet() { told.learn(three, now); }
  pool::Endpoint& open(const Address& address) {
    told.order({address}, now);
    pool::Endpoint& endpoint = told.opened(address);
    told.dial_ended(address, true, now);
    return endpoint;
  }
  pool::Endpoints endpoints;
  AddressSet told{&endpoints};
};

TEST_F(AnAddressSetOfAPool, SaysWhetherAnAddressLacksConnections) {
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

TEST_F(AnAddressSetOfAPool, DialsAnAddressWithoutConnectionsFirst) {
  for (int i = 0; i < 20; ++i) {
    open(three[0]);
    open(three[2]);
  }
  EXPECT_EQ(told.order(three, now).front(), three[1]);
}

TEST_F(AnAddressSetOfAPool, WaitsWithAnAddressThatADialMissed) {
  open(three[0]);
  open(three[1]);
  told.order({three[2]}, now);
  told.dial_ended(three[2], false, now);
  EXPECT_EQ(endpoints.balance(), Balance::even);
  now += rules.eject_time;
  told.review(now);
  EXPECT_EQ(endpoints.balance(), Balance::lacking);
}

TEST_F(AnAddressSetOfAPool, CountsNoAddressThatIsEjectedOrGoneOrOfTheOtherFamily) {
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

TEST_F(AnAddressSetOfAPool, LetsThePoolDrawOnlyAddressesThatShareRequestsAndHaveAConnection) {
  EXPECT_EQ(endpoints.draw(1).one, nullptr);
  pool::Endpoint* const first = &open(three[0]);
  pool::Endpoint* const second = &open(three[1]);
  for (const std::uint32_t random : {0U, UINT32_MAX}) {
    const pool::Endpoints::Pair pair = endpoints.draw(random);
    EXPECT_TRUE((pair.one == first && pair.other == second) || (pair.one == second && pair.other == first));
  }
  told.closed(three[0]);
  EXPECT_EQ(endpoints.draw(1).one, second);
  EXPECT_EQ(endpoints.draw(1).other, nullptr);
  for (std::uint32_t i = 0; i < rules.eject_after; ++i) told.failed(three[1], now);
  EXPECT_EQ(endpoints.draw(1).one, nullptr) << "it is ejected";
}

TEST_F(AnAddressSetOfAPool, GivesThePlaceOfOneConnectionToAnAddressThatHasFewer) {
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

TEST_F(AnAddressSetOfAPool, ForgetsARequestForAPlaceWhenNoAddressHasTooMany) {
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

TEST_F(AnAddressSetOfAPool, LetsTheShareOfANewAddressGrow) {
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

TEST_F(AnAddressSetOfAPool, LetsTheShareOfAnAddressGrowThatIsBack) {
  const auto share = [this](Instant at) { return address_set.all(at)[0].share; };
  address_set.learn(three, now);
  EXPECT_EQ(share(now), 1);
  for (std::uint32_t i = 0; i < rules.eject_after; ++i) address_set.failed(three[0], now);
  now += rules.eject_time;
  EXPECT_NEAR(share(now + rules.slow_start / 2), 0.5, 0.01) << "it was ejected";
  EXPECT_EQ(share(now + rules.slow_start), 1);
  address_set.opened(three[0]);
  now += 10 * rules.gone_after;
  address_set.learn({three[1], three[2]}, now);
  ASSERT_TRUE(address_set.all(now)[0].gone);
  address_set.learn(three, now);
  EXPECT_NEAR(share(now + rules.slow_start / 2), 0.5, 0.01) << "no answer named it";
  EXPECT_EQ(share(now + rules.slow_start), 1);
}

TEST_F(AnAddressSetOfAPool, TellsNothingIfTheStrategyIsToChoose) {
  AddressRules none;
  none.balance = false;
  told.follow(none);
  EXPECT_FALSE(endpoints.spreads());
  EXPECT_EQ(endpoints.balance(), Balance::even);
}

}  // namespace
}  // namespace carpool::proxy::net
